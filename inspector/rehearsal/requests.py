"""The requests of a rehearsal, made of recorded ones. Nothing but reads and compiles is ever sent."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote, urlencode

from inspector import regex
from inspector.analysis.analyzer import retrace
from inspector.model import Exchange, Request
from inspector.protocol import documents as d
from inspector.protocol import endpoints
from inspector.protocol.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from inspector.model import Headers
    from inspector.protocol.certificates import Certificate

V4 = "/puppet/v4/catalog"
HEADERS = ("accept", "x-puppet-version", "user-agent", "content-type", "accept-encoding", "content-encoding")
"""The recorded headers that are sent again."""
_TRUSTED = ("pp_", "1.3.6.1.4.1.34380.1.")
_READS = (Kind.FILE_METADATA, Kind.FILE_LISTING, Kind.FILE_CONTENT, Kind.STATIC_CONTENT)
_CATALOG = regex.compile(r"/(?:puppet/v3|[A-Za-z0-9_]{1,255})/catalog/([A-Za-z0-9_][A-Za-z0-9_.-]{0,254})(?:\?[!-~]*)?")
_FILE = regex.compile(r"/puppet/v3/(?:file_metadatas?|(?:static_)?file_content)/[!-~]*")
_VALUE = regex.compile(r"[ -~\x80-\xff]*")


class Unsendable(Exception):
    """A recorded request cannot be sent to another master; the text is the reason."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The request for a catalog in a recorded run."""

    exchange: Exchange
    document: d.CatalogRequest
    certname: str

    @property
    def facts(self) -> d.Facts:
        """The facts in it. Raises Unsendable."""
        match self.document.facts:
            case d.Facts() as facts:
                return facts
            case d.Undecodable(reason=reason):
                raise Unsendable(f"its facts cannot be read: {reason}")
            case _:
                raise Unsendable("it sent no facts with its request for a catalog")

    @property
    def certificate(self) -> bytes | None:
        """The agent's certificate (DER); None if it was not recorded."""
        return next(iter(self.exchange.agent.peer_chain), None)


def asked(exchanges: Iterable[Exchange]) -> Asked:
    """Return the last request for a catalog among the exchanges of a run. Raises Unsendable."""
    found: Asked | None = None
    for step in retrace(exchanges):
        match = step.match
        if match and step.exchange and match.endpoint.kind is Kind.CATALOG:
            if step.exchange.request.lost:
                raise Unsendable("its request for a catalog was recorded in part (puppet_keep_body)")
            document = step.request if isinstance(step.request, d.CatalogRequest) else d.CatalogRequest()
            found = Asked(step.exchange, document, match.certname or "")
    if found is None:
        raise Unsendable("it asked for no catalog")
    return found


def as_recorded(of: Asked, environment: str | None = None, facts: d.Facts | None = None) -> Request:
    """Return the request for a catalog as it was recorded, byte for byte; with another ``environment`` or other
    ``facts`` only those fields are other ones. Raises Unsendable."""
    request = of.exchange.request
    found = _CATALOG.fullmatch(request.target)
    if found is None or found[1] != of.certname:
        raise Unsendable("its request for a catalog has a path that no agent uses")
    changes: dict[bytes, bytes] = {}
    if environment is not None:
        changes[b"environment"] = environment.encode()
        if of.document.configured_environment is not None:
            changes[b"configured_environment"] = environment.encode()
    if facts is not None:
        changes[b"facts_format"] = b"application/json"
        changes[b"facts"] = quote(quote(_json(_sent(facts)))).encode()
    target, body = request.target, request.body
    if changes:
        if request.header("content-encoding"):
            raise Unsendable("its request for a catalog is compressed, and cannot be changed")
        path, mark, query = target.partition("?")
        target = path + mark + _replaced(query.encode("latin-1"), changes).decode("latin-1")
        body = _replaced(body, changes)
        if environment is not None and not path.startswith("/puppet/"):
            target = f"/{environment}/{target.removeprefix('/').partition('/')[2]}"
    return checked(Request(_headers(request), body, method=request.method, target=target))


def v4(
    of: Asked, certificate: Certificate | None, environment: str | None = None, facts: d.Facts | None = None
) -> Request:
    """Return the request to compile the same without storing anything. Raises Unsendable."""
    document, facts = of.document, facts or of.facts
    trusted: dict[str, Any] = {
        "authenticated": "remote" if certificate else False,
        "certname": of.certname,
        "hostname": of.certname.partition(".")[0],
        "domain": of.certname.partition(".")[2] or None,
        "extensions": _extensions(certificate) if certificate else {},
        "external": {},
    }
    body: dict[str, Any] = {
        "certname": of.certname,
        "environment": environment or document.environment or "production",
        "persistence": {"facts": False, "catalog": False},
        "facts": {"values": facts.values},
        "trusted_facts": {"values": trusted},
        "options": {"capture_logs": True, "log_level": "warning",
                    "prefer_requested_environment": environment is not None},
    }  # fmt: skip
    if document.transaction_uuid:
        body["transaction_uuid"] = document.transaction_uuid
    headers = [(name, value) for name, value in _headers(of.exchange.request)
               if name.lower() not in ("content-type", "accept", "content-encoding")]  # fmt: skip
    headers += [("Accept", "application/json"), ("Content-Type", "application/json")]
    return checked(Request(tuple(headers), _json(body).encode(), method="POST", target=V4))


def _extensions(certificate: Certificate) -> dict[str, str]:
    """The extensions that are trusted facts."""
    return {name: value for name, value in certificate.extensions.items() if name.startswith(_TRUSTED)}


def reading(
    checksum: str,
    environment: str,
    recursive: Iterable[tuple[str, str]] | None = None,
    given: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """Return the query with which an agent asks for metadata; ``recursive`` for a directory with what is in it.
    ``given`` are fields with other values than by default: those of the resource."""
    fields = {"links": "manage", "checksum_type": checksum, "source_permissions": "ignore"} | {**given}
    return urlencode([*(recursive or ()), *fields.items(), ("environment", environment)], quote_via=quote)


def metadata(of: Asked, name: str, query: str) -> Request:
    """Return the request for a file's metadata, as the agent makes it. Raises Unsendable."""
    return _read(of, f"/puppet/v3/file_metadata/{quote(name)}?{query}", "application/json")


def listing(of: Asked, name: str, query: str) -> Request:
    """Return the request for the metadata of what is in a directory. Raises Unsendable."""
    return _read(of, f"/puppet/v3/file_metadatas/{quote(name)}?{query}", "application/json")


def content(of: Asked, name: str, environment: str) -> Request:
    """Return the request for a file's content. Raises Unsendable."""
    target = f"/puppet/v3/file_content/{quote(name)}?environment={quote(environment)}"
    return _read(of, target, "application/octet-stream")


def static_content(of: Asked, path: str, environment: str, code_id: str) -> Request:
    """Return the request for a file's content in the version that a static catalog names. Raises Unsendable."""
    query = urlencode([("environment", environment), ("code_id", code_id)], quote_via=quote)
    return _read(of, f"/puppet/v3/static_file_content/{quote(path)}?{query}", "application/octet-stream")


def is_file(request: Request) -> bool:
    """Whether a request is one for a file."""
    return _FILE.fullmatch(request.target) is not None


def checked(request: Request) -> Request:
    """Return a request that only reads or compiles. Raises Unsendable for any other: a capture may be hostile."""
    match = endpoints.match(request.method, request.target)
    kind = match.endpoint.kind if match else None
    compiles = request.method in ("GET", "POST") and kind is Kind.CATALOG and _CATALOG.fullmatch(request.target)
    reads = request.method == "GET" and kind in _READS and _FILE.fullmatch(request.target) and not request.body
    climbs = {".", ".."} & set(unquote(request.path).split("/"))  # a server may resolve it to another path
    if climbs or not (compiles or reads or _stores_nothing(request)):
        raise Unsendable("only requests that read or compile are sent to another master")
    for name, value in request.headers:
        if name.lower() not in HEADERS or not _VALUE.fullmatch(value):
            raise Unsendable(f"its header {name[:40]!r} cannot be sent")
    return request


def _stores_nothing(request: Request) -> bool:
    if (request.method, request.target) != ("POST", V4):
        return False
    document = json.loads(request.body)
    return bool(document["persistence"] == {"facts": False, "catalog": False})


def _read(of: Asked, target: str, accept: str) -> Request:
    headers = [(name, value) for name, value in _headers(of.exchange.request)
               if name.lower() in ("x-puppet-version", "user-agent")]  # fmt: skip
    return checked(Request((*headers, ("Accept", accept)), target=target))


def _headers(request: Request) -> Headers:
    return tuple((name, value) for name, value in request.headers if name.lower() in HEADERS)


def _replaced(form: bytes, changes: dict[bytes, bytes]) -> bytes:
    """Return a form in which some fields have other values; everything else stays as it is."""

    def fields() -> Iterator[bytes]:
        for field in form.split(b"&"):
            name, equals, _ = field.partition(b"=")
            yield name + equals + quote(changes[name], safe="%").encode() if equals and name in changes else field

    return b"&".join(fields())


def _sent(facts: d.Facts) -> dict[str, Any]:
    document = {"name": facts.name, "values": facts.values}
    return document | {name: value for name in ("timestamp", "expiration") if (value := getattr(facts, name))}


def _json(value: Any) -> str:
    """As JSON; bytes that are no text as Puppet sends them in PSON."""
    return json.dumps(value, default=_other)


def _other(value: object) -> str:
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
