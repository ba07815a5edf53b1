"""A Puppet master on loopback, with its own CA and access rules; the rest is replayed from a recorded run.

Node, plugins, catalog and files get the recorded answers of a real puppetserver. Certificates, reports and the
filebucket are implemented. The master compiles nothing and checks no parameters. It stores its requests in
``received``, where a test can compare them with what the agent sent.
"""

from __future__ import annotations

import gzip
import json
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Self
from urllib.parse import parse_qs, unquote

from inspector import regex
from inspector.lab.server import LabServer
from inspector.model import Headers, Request, Response
from inspector.protocol.endpoints import match
from inspector.protocol.kinds import Access

if TYPE_CHECKING:
    import ssl
    from collections.abc import Sequence

    from inspector.host.pki import SslDirPaths
    from inspector.lab.ca import LabCA
    from inspector.model import Exchange

type RequestKey = tuple[str, str, str]
"""Method, decoded path without its certname, and ``recurse`` (the plugins are listed in two ways)."""

_VERSION = ("X-Puppet-Version", "7.23.0")
_JSON = ("Content-Type", "application/json;charset=utf-8")
_BINARY = ("Content-Type", "application/octet-stream")

_NAMED = regex.compile(r"(/puppet/v3/(?:catalog|node|report|facts)/)([^/]+)")
_CA = "/puppet-ca/v1/"


@dataclass(frozen=True, slots=True)
class Received:
    """A request as the master received it."""

    request: Request
    certname: str | None
    """The authenticated caller; None: not authenticated."""


class LabMaster:
    """The master; it serves while its context is entered.

    ``place`` is its complete ssldir. ``trust_headers`` is puppetserver's ``allow-header-cert-info``.
    """

    def __init__(
        self, ca: LabCA, place: SslDirPaths, answers: Sequence[Exchange] = (), *, trust_headers: bool = False
    ) -> None:
        self.ca = ca
        self.trust_headers = trust_headers
        self.received: list[Received] = []
        self.instead: dict[tuple[str, str], Response] = {}
        """Answers that replace the normal ones, by method and decoded path: they break the master on purpose."""
        self._recorded: dict[RequestKey, tuple[str, Response]] = {}
        for exchange in answers:
            if exchange.response:
                key, certname = _key(exchange.request)
                self._recorded.setdefault(key, (certname, exchange.response))
        self._bucket: set[str] = set()
        self._place = place
        self._server = LabServer(self.context, self.answer)
        self.address = self._server.address

    def __enter__(self) -> Self:
        self._server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.close()

    def context(self) -> ssl.SSLContext:
        """Return the TLS context of a new connection."""
        return self.ca.server_context(self._place)

    # -- answering ------------------------------------------------------------------------------------

    def answer(self, request: Request, certname: str | None) -> Response:
        """Answer a request; ``certname`` is the authenticated caller."""
        path = unquote(request.path)
        if self.trust_headers:  # the certificate of the connection is ignored then
            verified = request.header("X-Client-Verify") == "SUCCESS"
            certname = (request.header("X-Client-DN") or "").removeprefix("CN=") if verified else None
        self.received.append(Received(request, certname))
        if not path.startswith(("/puppet/", "/puppet-ca/", "/status/")):
            return Response(status=404)  # Jetty's own
        if not allowed(request, certname):
            text = f"Forbidden request: {path} (method :{request.method.lower()}). "
            return _text(403, text + "Please see the server logs for details.", typed=False)
        if instead := self.instead.get((request.method, path)):
            return instead
        if path.startswith(_CA):
            return self._certificates(request, path.removeprefix(_CA))
        if path.startswith("/puppet/v3/file_bucket_file/"):
            return self._filebucket(request.method, path)
        if request.method == "PUT":  # a report, or facts
            return Response(status=200, headers=(_JSON, _VERSION), body=b'["store"]')
        return self._replay(request, certname or "")

    def _certificates(self, request: Request, path: str) -> Response:
        kind, _, name = path.partition("/")
        if request.method == "PUT":
            status, text = self.ca.submit(name, request.body)
            return _text(status, text)
        body: bytes | None
        if kind == "certificate_request":
            body = self.ca.request(name)
        elif kind == "certificate_revocation_list":
            body = self.ca.crl_bundle
        else:
            body = self.ca.ca_bundle if name == "ca" else self.ca.certificate(name)
        if body is None:
            return _text(404, f"Could not find {kind} {name}")
        headers: Headers = (("Content-Type", "text/plain"), _VERSION, ("Vary", "Accept-Encoding, User-Agent"))
        if "gzip" in (request.header("Accept-Encoding") or ""):
            return Response(
                status=200,
                headers=(*headers, ("Content-Encoding", "gzip")),
                body=gzip.compress(body, mtime=0),
            )
        return Response(status=200, headers=headers, body=body)

    def _filebucket(self, method: str, path: str) -> Response:
        digest = "/".join(path.split("/")[4:6])  # sha256/<hex>; the rest is the path of the file
        if method == "PUT":
            self._bucket.add(digest)
        elif digest not in self._bucket:
            return _not_found("file_bucket_file", digest)
        return Response(status=200, headers=(_BINARY, _VERSION))

    def _replay(self, request: Request, certname: str) -> Response:
        key, _ = _key(request)
        recorded_for, response = self._recorded.get(key, ("", None))
        if response is None:
            kind, _, name = unquote(request.path).removeprefix("/puppet/v3/").partition("/")
            return _not_found(kind, name)
        if recorded_for and recorded_for != certname:
            response = _rename(response, recorded_for, certname)
        return response


def _key(request: Request) -> tuple[RequestKey, str]:
    """Return the key of a recorded answer, and the certname in the path, which is not part of the key."""
    path, recurse = unquote(request.path), parse_qs(request.query).get("recurse", [""])[0]
    if named := _NAMED.fullmatch(path):
        return (request.method, named[1], recurse), named[2]
    return (request.method, path, recurse), ""


def _rename(response: Response, old: str, new: str) -> Response:
    """Replace a certname in an answer, in titles and contents too; the encoding stays."""
    zipped = response.header("Content-Encoding") == "gzip"
    body = gzip.decompress(response.body) if zipped else response.body
    body = body.replace(old.encode(), new.encode())
    return replace(response, body=gzip.compress(body, mtime=0) if zipped else body)


def allowed(request: Request, certname: str | None) -> bool:
    """Whether the default auth.conf allows a caller a request; paths without a rule are denied."""
    matched = match(request.method, request.target)
    if matched is None or matched.dialect != "v3":
        return False
    match matched.endpoint.access:
        case Access.ANYBODY:
            return True
        case Access.CERTIFICATE:
            return certname is not None
        case Access.OWN:
            return certname is not None and matched.certname == certname
    return False


def _text(status: int, text: str, *, typed: bool = True) -> Response:
    headers = (("Content-Type", "text/plain;charset=utf-8" if status == 400 else "text/plain"), _VERSION)
    return Response(status=status, headers=headers if typed else (_VERSION,), body=text.encode())


def _not_found(kind: str, name: str) -> Response:
    document = {"message": f"Not Found: Could not find {kind} {name}", "issue_kind": "RESOURCE_NOT_FOUND"}
    return Response(status=404, headers=(_JSON, _VERSION), body=json.dumps(document).encode())
