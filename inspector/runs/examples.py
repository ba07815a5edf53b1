"""Conversations for examples and tests: ``talk(ca(), crl(), csr(), issued(), catalog(), report())``.

Each part makes one exchange between an agent and its master. It is well-formed and healthy by default. Certificates are
created on first use and cached. Nothing here is for production use.
"""

from __future__ import annotations

import dataclasses
import datetime
import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import TYPE_CHECKING, Any, Literal
from urllib.parse import quote, urlencode

from inspector.lazily import Lazily
from inspector.model import Exchange, Handshake, Headers, Leg, Record, Request, Response

if TYPE_CHECKING:
    from cryptography.hazmat.primitives import serialization
    from cryptography.x509 import Certificate, CertificateSigningRequest

    from inspector.host import pki
else:
    pki, serialization = Lazily("inspector.host.pki"), Lazily("cryptography.hazmat.primitives.serialization")

NAME = "node1.example"
MASTER = "puppet.example"
_AHEAD = 43_200.0
"""When a conversation starts, in seconds after its CA was made. What is under way then is so still when the examples
are hours old, as in a long session of tests."""

type ExamplePart = Callable[[Scene], Record | None]
type Shown = Literal["own", "foreign"]


@dataclass(slots=True)
class Scene:
    """The agent of a conversation, and its time."""

    version: str
    certificate: bool
    shown: Shown
    time: float
    certname: str = NAME
    address: str = "192.0.2.7"
    connection: str = ""
    """Distinguishes the connections of one conversation from those of another."""
    seq: int = 0
    master_version: str = "7.23.0"

    @property
    def legacy(self) -> bool:
        return int(self.version.partition(".")[0]) < 4


@cache
def authorities() -> tuple[pki.Authority, pki.Authority]:
    """The root CA of all examples, and the intermediate CA that issues certificates."""
    root = pki.make_ca("Sample Root CA")
    return root, pki.make_ca("Sample CA", root)


@cache
def _foreign() -> pki.Authority:
    return pki.make_ca("Foreign CA")


def foreign_ca() -> Certificate:
    """The CA of another installation."""
    return _foreign().certificate


def forged_crl() -> bytes:
    """The CRL bundle, with the issuing CA's CRL signed by another key."""
    root, own = authorities()
    forger = pki.Authority(own.certificate, private_key("forger"))
    return pki.pem(pki.make_crl(forger, last_update=_start()), pki.make_crl(root, last_update=_start()))


@cache
def private_key(_name: str) -> pki.PrivateKey:
    """A key, identified by a name."""
    return pki.new_key()


@cache
def _chain(certname: str, key: str, issuer: str = "own") -> tuple[bytes, ...]:
    # "renewed" is issued by the same CA, but is another certificate.
    authority = _foreign() if issuer == "foreign" else authorities()[1]
    leaf = pki.sign(authority, private_key(key).public_key(), certname)
    return (leaf.public_bytes(serialization.Encoding.DER),)


@cache
def weakly_signed(digest: Literal["md5", "sha1"]) -> CertificateSigningRequest:
    """A signing request whose signature algorithm is given as MD5 or SHA-1; its signature does not verify."""
    from cryptography.x509 import load_der_x509_csr

    strong = pki.make_csr(NAME, pki.new_key(2048)).public_bytes(serialization.Encoding.DER)
    algorithm = bytes.fromhex("2a864886f70d0101")  # PKCS #1; the following byte says which algorithm
    weak = {"md5": b"\x04", "sha1": b"\x05"}[digest]
    return load_der_x509_csr(strong.replace(algorithm + b"\x0b", algorithm + weak))


@cache
def made(
    certname: str = NAME,
    key: str = "",
    *,
    starts: float = -86_400.0,
    ends: float = 5 * 365 * 86_400.0,
    alt_names: tuple[str, ...] = (),
    foreign: bool = False,
    serial: int | None = None,
) -> Certificate:
    """A certificate from the installation's own CA or another; its validity is in seconds from the start of a
    conversation."""
    authority = _foreign() if foreign else authorities()[1]
    start = datetime.datetime.fromtimestamp(_time() + _AHEAD + starts, datetime.UTC)
    return pki.sign(
        authority, private_key(key or certname).public_key(), certname, alt_names, serial=serial, not_before=start,
        lifetime=datetime.timedelta(seconds=ends - starts),
    )  # fmt: skip


def carried(certificate: Certificate) -> tuple[bytes, ...]:
    """A certificate as stored for a connection, for ``altered(..., leg={"peer_chain": carried(made())})``."""
    return (certificate.public_bytes(serialization.Encoding.DER),)


def _time() -> float:
    """A fixed time within the validity of every certificate made here."""
    return authorities()[0].certificate.not_valid_before_utc.timestamp() + 86_500


def _start() -> datetime.datetime:
    return datetime.datetime.fromtimestamp(_time(), datetime.UTC)


def talk(
    *parts: ExamplePart,
    version: str = "7.23.0",
    certificate: bool = True,
    shown: Shown = "own",
    certname: str = NAME,
    address: str = "192.0.2.7",
    after: float = 0.0,
    master_version: str = "7.23.0",
) -> list[Record]:
    """A conversation of one agent: one record per part, numbered from 1, one second apart.

    ``version`` is the agent's version. ``certificate``: whether its run requests carry a certificate. ``shown``: which
    CA issued the certificate presented to the agent as the master's. The conversation starts ``after`` seconds later
    than others.
    """
    scene = Scene(version, certificate, shown, _time() + _AHEAD + after, certname, address, f"{certname}+{after:g}",
                  master_version=master_version)  # fmt: skip
    records: list[Record] = []
    for part in parts:
        scene.time += 1
        scene.seq = len(records) + 1
        record = part(scene)
        if record is not None:
            records.append(dataclasses.replace(record, seq=scene.seq))
    return records


def together(*talks: Sequence[Record]) -> list[Record]:
    """Several conversations in one capture, ordered by time and renumbered."""
    records = sorted((record for one in talks for record in one), key=lambda record: record.time)
    return [dataclasses.replace(record, seq=seq) for seq, record in enumerate(records, 1)]


def wait(seconds: float) -> ExamplePart:
    """A silence of this many seconds."""

    def part(scene: Scene) -> None:
        scene.time += seconds - 1

    return part


def altered(
    part: ExamplePart,
    *,
    leg: Mapping[str, Any] | None = None,
    request: Mapping[str, Any] | None = None,
    response: Mapping[str, Any] | None = None,
    headers: Mapping[str, str | None] | None = None,
    answers: Mapping[str, str | None] | None = None,
    **changes: Any,
) -> ExamplePart:
    """A part with some fields of its records changed.

    ``leg``, ``request`` and ``response`` set fields of the agent's leg and of the messages. ``headers`` and ``answers``
    set headers of the request and the response (None removes a header). ``changes`` sets fields of the exchange.
    """

    def other(scene: Scene) -> Record | None:
        exchange = part(scene)
        if not isinstance(exchange, Exchange):
            return exchange
        asked = dataclasses.replace(exchange.request, **(request or {}))
        asked = dataclasses.replace(asked, headers=_with(asked.headers, headers or {}))
        answer = exchange.response
        if answer is not None:
            answer = dataclasses.replace(answer, **(response or {}))
            answer = dataclasses.replace(answer, headers=_with(answer.headers, answers or {}))
        exchange = dataclasses.replace(
            exchange, agent=dataclasses.replace(exchange.agent, **(leg or {})), request=asked, response=answer
        )
        return dataclasses.replace(exchange, **changes)

    return other


def _with(headers: Headers, wanted: Mapping[str, str | None]) -> Headers:
    remaining = tuple((name, value) for name, value in headers if name not in wanted)
    return remaining + tuple((name, value) for name, value in wanted.items() if value is not None)


def answering_chain(name: str) -> tuple[bytes, ...]:
    """The certificate of a server of this name."""
    return _chain(name, name)


def answered_by(name: str, *parts: ExamplePart) -> list[ExamplePart]:
    """Parts that a server with a certificate of this name answered."""
    leg = Leg(name, "master", "192.0.2.1", 8140, peer_chain=answering_chain(name))
    return [altered(part, master=leg) for part in parts]


def slow(part: ExamplePart, seconds: float) -> ExamplePart:
    """A part whose response starts only after this many seconds."""

    def other(scene: Scene) -> Record | None:
        exchange = part(scene)
        assert isinstance(exchange, Exchange)  # noqa: S101 - a mistake in an example
        assert exchange.response  # noqa: S101
        scene.time += seconds
        answer = dataclasses.replace(exchange.response, started=scene.time, ended=scene.time + 0.1)
        return dataclasses.replace(exchange, response=answer)

    return other


def skewed(part: ExamplePart, seconds: float) -> ExamplePart:
    """A part answered by a master whose clock is this far ahead."""

    def other(scene: Scene) -> Record | None:
        from email.utils import formatdate

        date = formatdate(scene.time + seconds, usegmt=True)
        return altered(part, answers={"Date": date})(scene)

    return other


def unanswered(part: ExamplePart, error: str = "the master closed the connection") -> ExamplePart:
    """A part without a response."""

    def other(scene: Scene) -> Record | None:
        exchange = part(scene)
        assert isinstance(exchange, Exchange)  # noqa: S101 - a mistake in an example
        return dataclasses.replace(exchange, response=None, error=error, failed=scene.time + 0.2)

    return other


def given_up(part: ExamplePart, error: str, seconds: float) -> ExamplePart:
    """A part without a response, which somebody gave up after this many seconds."""

    def other(scene: Scene) -> Record | None:
        exchange = unanswered(part, error)(scene)
        assert isinstance(exchange, Exchange)  # noqa: S101 - a mistake in an example
        scene.time += seconds
        return dataclasses.replace(exchange, failed=scene.time)

    return other


def unconnected(part: ExamplePart, error: str) -> ExamplePart:
    """A part for which no connection to the master was made."""

    def other(scene: Scene) -> Record | None:
        exchange = unanswered(part, error)(scene)
        assert isinstance(exchange, Exchange)  # noqa: S101 - a mistake in an example
        tried = Leg(id=f"{exchange.agent.id}-master", side="master", address="192.0.2.1", port=8140)
        return dataclasses.replace(exchange, master=tried)

    return other


def refused(
    alert: str | None = "certificate_expired",
    *,
    by: Literal["agent", "proxy", "master"] | None = "agent",
    reason: str = "the agent refused the certificate it was shown",
    culprits: tuple[str, ...] = (),
    certificate: bool = False,
    leg: Mapping[str, Any] | None = None,
) -> ExamplePart:
    """A TLS handshake that failed; ``certificate``: the agent had presented its own."""

    def part(scene: Scene) -> Handshake:
        made = _leg(scene, run=certificate, fresh=True)
        return Handshake(dataclasses.replace(made, **(leg or {})), scene.time, reason, alert, by, culprits)

    return part


def _exchange(
    scene: Scene,
    method: str,
    path: str,
    *,
    status: int = 200,
    body: bytes = b"",
    sent: bytes = b"",
    media: str = "text/plain",
    sends: str = "",
    run: bool = False,
    headers: tuple[tuple[str, str], ...] = (),
) -> Exchange:
    leg = _leg(scene, run=run)
    agent = (("X-Puppet-Version", scene.version),) if not scene.legacy else ()
    content = (("Content-Type", sends),) if sends else ()
    request = Request(
        headers=(*agent, ("Accept", media), *content, *headers, ("Host", f"{MASTER}:8140")),
        body=sent,
        method=method,
        target=path,
        started=scene.time,
        ended=scene.time + 0.01,
    )
    response = Response(
        headers=(("Content-Type", media), ("X-Puppet-Version", scene.master_version)),
        body=body,
        status=status,
        started=scene.time + 0.1,
        ended=scene.time + 0.2,
    )
    return Exchange(leg, request, response)


def _leg(scene: Scene, *, run: bool, fresh: bool = False) -> Leg:
    number = scene.seq if fresh or not run else 0
    return Leg(
        id=f"{scene.connection}-{number or 'run'}",
        side="agent",
        address=scene.address,
        port=40_000 + number,
        connected=scene.time - 0.1,
        secured=None if fresh else scene.time - 0.05,
        tls_version="TLSv1.3",
        cipher="TLS_AES_256_GCM_SHA384",
        sni=MASTER,
        peer_chain=_chain(scene.certname, scene.certname) if run and scene.certificate else (),
        own_chain=_chain(MASTER, "master", scene.shown),
    )


def _ca_path(scene: Scene, rest: str) -> str:
    return f"/production/{rest}?" if scene.legacy else f"/puppet-ca/v1/{rest}"


def _master_path(scene: Scene, rest: str, environment: str = "production") -> str:
    return f"/{environment}/{rest}?" if scene.legacy else f"/puppet/v3/{rest}?environment={environment}"


def connection() -> ExamplePart:
    """The request for a connection with the master, to an HTTP proxy."""
    return lambda scene: _exchange(scene, "CONNECT", f"{MASTER}:8140")


def ca(*, refresh: bool = False, status: int = 200) -> ExamplePart:
    """The download of the CA bundle: intermediate and root."""
    root, own = authorities()

    def part(scene: Scene) -> Exchange:
        headers = (("If-Modified-Since", "Thu, 01 Jan 2026 00:00:00 GMT"),) if refresh else ()
        body = pki.pem(own.certificate, root.certificate) if status == 200 else b""
        path = _ca_path(scene, "certificate/ca")
        return _exchange(scene, "GET", path, body=body, status=status, headers=headers)

    return part


def bundle(*certificates: Certificate, status: int = 200, body: bytes | None = None) -> ExamplePart:
    """The download of a CA bundle other than that of ``ca``, made of these certificates or these bytes."""
    return lambda scene: _exchange(
        scene, "GET", _ca_path(scene, "certificate/ca"), status=status,
        body=pki.pem(*certificates) if body is None else body,
    )  # fmt: skip


def crl(
    *,
    status: int = 200,
    expired: bool = False,
    complete: bool = True,
    number: int = 0,
    revoked: Sequence[int] = (),
    starts: float = 0.0,
    ends: float | None = None,
    body: bytes | None = None,
    refresh: bool = False,
) -> ExamplePart:
    """The download of the CRL bundle; ``complete=False`` leaves the root's CRL out.

    ``starts`` and ``ends`` are in seconds from the time of the download (default: 12 hours before, and years after).
    ``number`` and ``revoked`` belong to the issuing CA's CRL.
    """
    root, own = authorities()

    def part(scene: Scene) -> Exchange:
        start = datetime.datetime.fromtimestamp(scene.time + starts, datetime.UTC) if starts else _start()
        until = start + datetime.timedelta(seconds=60) if expired else None
        if ends is not None:
            until = datetime.datetime.fromtimestamp(scene.time + ends, datetime.UTC)
        lists = [pki.make_crl(own, revoked, number, last_update=start, next_update=until)]
        if complete:
            lists.append(pki.make_crl(root, last_update=_start()))
        served = body if body is not None else pki.pem(*lists)
        served = served if status == 200 else b"Could not find certificate_revocation_list ca"
        headers = (("If-Modified-Since", "Thu, 01 Jan 2026 00:00:00 GMT"),) if refresh else ()
        path = _ca_path(scene, "certificate_revocation_list/ca")
        return _exchange(scene, "GET", path, status=status, body=served, headers=headers)

    return part


def csr(
    *,
    key: str = "",
    status: int = 200,
    text: str = "",
    body: bytes | None = None,
    path: str = "",
    made: CertificateSigningRequest | None = None,
    alt_names: Sequence[str] = (),
    attributes: Mapping[str, str] | None = None,
) -> ExamplePart:
    """A signing request; ``text`` is the CA's text after the name in a refusal, ``body`` its whole answer.

    ``key`` names the owner of the key (default: the agent), ``path`` a name in the URL other than the certname,
    ``made`` another signing request.
    """

    def part(scene: Scene) -> Exchange:
        asked = made or pki.make_csr(scene.certname, private_key(key or scene.certname), alt_names, attributes)
        message = f"{scene.certname} {text}; ignoring certificate request".encode() if text else b""
        return _exchange(
            scene,
            "PUT",
            _ca_path(scene, f"certificate_request/{path or scene.certname}").rstrip("?"),
            sent=pki.pem(asked),
            sends="text/plain",
            status=status,
            body=message if body is None else body,
        )

    return part


def asking_for(extensions: Mapping[str, str], certname: str = NAME) -> CertificateSigningRequest:
    """A signing request with extensions (dotted OID and value), as csr_attributes.yaml adds them: ``csr(made=...)``."""
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes

    builder = x509.CertificateSigningRequestBuilder().subject_name(
        x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, certname)])
    )
    for oid, value in extensions.items():
        text = bytes([0x0C, len(value.encode())]) + value.encode()  # DER: a UTF8String
        builder = builder.add_extension(x509.UnrecognizedExtension(x509.ObjectIdentifier(oid), text), critical=False)
    return builder.sign(private_key(certname), hashes.SHA256())


def issued(*, key: str = "", made: Certificate | None = None) -> ExamplePart:
    """The signed certificate for the agent's key or another key; or another certificate."""

    def part(scene: Scene) -> Exchange:
        body = pki.pem(made) if made else _pem(_chain(scene.certname, key or scene.certname))
        return _exchange(scene, "GET", _ca_path(scene, f"certificate/{scene.certname}"), body=body)

    return part


def not_issued() -> ExamplePart:
    """A poll before the certificate was signed."""
    return lambda scene: _exchange(
        scene, "GET", _ca_path(scene, f"certificate/{scene.certname}"), status=404,
        body=f"Could not find certificate {scene.certname}".encode(),
    )  # fmt: skip


def of_openvox_ca(part: ExamplePart, text: str = "") -> ExamplePart:
    """A part as answered by an openvox-ca; ``text`` is its refusal."""
    refusal = {"Content-Type": "text/plain; charset=utf-8", "X-Content-Type-Options": "nosniff"} if text else {}
    response = {"body": f"{text}\n".encode()} if text else {}
    return altered(part, answers={"X-Puppet-Version": None, **refusal}, response=response)


def renewal(*, status: int = 200, key: str = "") -> ExamplePart:
    """The renewal of the agent's certificate (8.2 and later), for the same key or another."""

    def part(scene: Scene) -> Exchange:
        body = _pem(_chain(scene.certname, key or scene.certname, "renewed")) if status == 200 else b"Not found"
        return _exchange(scene, "POST", "/puppet-ca/v1/certificate_renewal", status=status, body=body, run=True)

    return part


def node(*, environment: str = "production", status: int = 200, uuid: str = "") -> ExamplePart:
    """The node request; ``uuid`` is the transaction_uuid, which agents since 3.0 send with it."""

    def part(scene: Scene) -> Exchange:
        body = json.dumps({"name": scene.certname, "environment": environment}).encode()
        path = _master_path(scene, f"node/{scene.certname}") + (f"&transaction_uuid={uuid}" if uuid else "")
        return _exchange(scene, "GET", path, status=status, media="application/json", body=body, run=True)

    return part


def plugins(*, environment: str = "production", status: int = 200, text: str = "") -> ExamplePart:
    """The list of plugins, which is empty."""
    return asked(
        "file_metadatas/plugins", [_metadata("/plugins", ".", None)] if status == 200 else None, status=status,
        text=text, environment=environment, query="&recurse=true",
    )  # fmt: skip


def metadata(
    name: str, content: bytes | None = b"content", *, algorithm: str = "sha256", status: int = 200,
    environment: str = "production",
) -> ExamplePart:  # fmt: skip
    """The metadata of one file, e.g. ``modules/demo/app.conf``; or 404."""
    text = "" if status == 200 else f"Not Found: Could not find file_metadata {name}"
    body = _metadata(f"/srv/{name}", None, content, algorithm) if status == 200 else None
    return asked(f"file_metadata/{name}", body, status=status, text=text, environment=environment)


def listing(name: str, files: Mapping[str, bytes], *, environment: str = "production") -> ExamplePart:
    """The metadata of a directory: the names below it, and their content."""
    body = [_metadata(f"/srv/{name}", kind, content) for kind, content in files.items()]
    return asked(f"file_metadatas/{name}", body, environment=environment, query="&recurse=true")


def content(
    name: str, body: bytes = b"content", *, status: int = 200, environment: str = "production",
    code_id: str | None = None,
) -> ExamplePart:  # fmt: skip
    """A file's content; with ``code_id`` in the version that a static catalog names."""
    below = f"file_content/{name}" if code_id is None else f"static_file_content/{name}"

    def part(scene: Scene) -> Exchange:
        path = _master_path(scene, below, environment) + (f"&code_id={code_id}" if code_id else "")
        return _exchange(
            scene, "GET", path, status=status, media="application/octet-stream", body=body, run=True
        )  # fmt: skip

    return part


def bucket(
    body: bytes = b"content", *, digest_of: bytes | None = None, method: str = "PUT", status: int = 200,
    algorithm: str = "sha256",
) -> ExamplePart:  # fmt: skip
    """A file sent to the filebucket or fetched from it (``method="GET"``), under the digest of ``digest_of``."""
    digest = hashlib.new(algorithm, body if digest_of is None else digest_of, usedforsecurity=False).hexdigest()

    def part(scene: Scene) -> Exchange:
        path = _master_path(scene, f"file_bucket_file/{algorithm}/{digest}//etc/app.conf")
        sent = body if method == "PUT" else b""
        answer = body if method == "GET" else b""
        media = "application/octet-stream"
        return _exchange(
            scene, method, path, status=status, sent=sent, sends=media, media=media, body=answer, run=True
        )  # fmt: skip

    return part


def asked(
    path: str, body: object = None, *, method: str = "GET", status: int = 200, text: str = "", kind: str = "",
    environment: str = "production", query: str = "", run: bool = True, media: str = "application/json",
    sent: object = None,
) -> ExamplePart:  # fmt: skip
    """Any request below the master's prefix, with JSON in both directions; ``text`` is the message of a refusal.

    A path that begins with a slash is used unchanged. ``run=False``: without a certificate, on a separate connection.
    """

    def part(scene: Scene) -> Exchange:
        answer = body
        if text or (status >= 400 and body is None):
            answer = {"message": text, "issue_kind": kind or "RESOURCE_NOT_FOUND"}
        target = path if path.startswith("/") else _master_path(scene, path, environment) + query
        given = b"" if sent is None else json.dumps(sent).encode()
        return _exchange(
            scene, method, target, status=status, media=media, sent=given, sends=media if given else "",
            body=answer if isinstance(answer, bytes) else json.dumps(answer).encode(), run=run,
        )  # fmt: skip

    return part


def catalog(
    *,
    uuid: str | None = "a-1",
    status: int = 200,
    environment: str = "production",
    asks: str = "production",
    facts: Mapping[str, Any] | None = None,
    form: Mapping[str, str] | None = None,
    resources: Sequence[Mapping[str, Any]] = (),
    text: str = "Server Error: no catalog",
    **fields: Any,
) -> ExamplePart:
    """The catalog request with facts, and its answer with resources.

    ``asks`` is the requested environment, ``environment`` the catalog's environment. ``facts`` are added to the agent's
    version, ``form`` to the form's fields, ``fields`` to the catalog's.
    """

    def part(scene: Scene) -> Exchange:
        values = {"puppetversion": scene.version} | dict(facts or {})
        document = {"name": values.pop("name", scene.certname), "values": values}
        given = {"environment": asks, "facts_format": "application/json"} | dict(form or {})
        sent = urlencode(given) + f"&facts={quote(quote(json.dumps(document)))}"
        sent += f"&transaction_uuid={uuid}" if uuid else ""
        body: object = {"name": scene.certname, "environment": environment, "resources": resources} | fields
        if status >= 400:
            body = {"message": text, "issue_kind": "RUNTIME_ERROR"}
        return _exchange(
            scene, "POST", _master_path(scene, f"catalog/{scene.certname}", asks), sent=sent.encode(), status=status,
            sends="application/x-www-form-urlencoded", media="application/json",
            body=json.dumps(body).encode(), run=True,
        )  # fmt: skip

    return part


def report(*, uuid: str | None = "a-1", status: int = 200, result: str = "unchanged", **fields: Any) -> ExamplePart:
    """The report; ``result`` is its run status, ``fields`` are additional fields."""

    def part(scene: Scene) -> Exchange:
        environment = fields.get("environment", "production")
        document = {
            "host": scene.certname, "status": result, "environment": environment, "report_format": 12,
            "transaction_uuid": uuid, "puppet_version": scene.version,
        } | fields  # fmt: skip
        return _exchange(
            scene, "PUT", _master_path(scene, f"report/{scene.certname}", environment),
            sent=json.dumps(document).encode(), sends="application/json", media="application/json", status=status,
            body=b'["store"]', run=True,
        )  # fmt: skip

    return part


STORED: dict[str, tuple[str, dict[str, Any]]] = {
    "replace_facts": ("5", {"values": {"kernel": "Linux"}}),
    "replace_catalog": (
        "9", {"version": "1", "transaction_uuid": "a-1", "edges": [],
              "resources": [{"type": "Notify", "title": "a", "tags": ["notify"], "exported": False, "parameters": {}}]},
    ),
    "store_report": (
        "8", {"transaction_uuid": "a-1", "status": "changed", "logs": [], "metrics": [],
              "resources": [{"resource_type": "Notify", "resource_title": "a", "skipped": False, "events": []}]},
    ),
}  # fmt: skip
"""What a master stores in PuppetDB: the versions of the commands, and their bodies."""
_MASTER = {"X-Puppet-Version": None, "User-Agent": "Puppet/7.23.0 Ruby/2.6.8-p0 (java)"}


def stored(
    command: str = "replace_facts", *, status: int = 200, answer: object = None, version: str = "", **fields: Any
) -> ExamplePart:
    """A command of a master to PuppetDB, for the node ``NAME``; ``fields`` are other fields of its body."""
    usual, body = STORED[command]
    query = f"version={version or usual}&certname={NAME}&command={command}&producer-timestamp=2026-11-29T08:54:18.914Z"
    sent = {"certname": NAME, "environment": "production", "producer": MASTER} | body | fields
    given = {"uuid": "7bb4939e-ffbc-48b7-b7ae-a91a78c7dac7"} if answer is None else answer
    return altered(asked(f"/pdb/cmd/v1?{query}", given, method="POST", status=status, sent=sent), headers=_MASTER)


def querying(query: str = "nodes[certname]{}", answer: object = (), *, status: int = 200) -> ExamplePart:
    """A query of a master to PuppetDB, and its answer."""
    media = "application/json" if status < 400 else "text/plain"
    given = list(answer) if isinstance(answer, tuple) else answer
    part = asked("/pdb/query/v4", given, method="POST", status=status, sent={"query": query}, media=media)
    return altered(part, headers=_MASTER | {"Content-Type": "application/json"})


def _metadata(path: str, relative: str | None, content: bytes | None, algorithm: str = "sha256") -> dict[str, Any]:
    kind = "directory" if content is None else "file"
    digest = "{ctime}2026-01-01 00:00:00 +0000"
    if content is not None:
        digest = f"{{{algorithm}}}{hashlib.new(algorithm, content, usedforsecurity=False).hexdigest()}"
    named = "ctime" if content is None else algorithm
    return {
        "path": path, "relative_path": relative, "links": "follow", "owner": 0, "group": 0, "mode": 420,
        "checksum": {"type": named, "value": digest}, "type": kind, "destination": None,
    }  # fmt: skip


def _pem(chain: tuple[bytes, ...]) -> bytes:
    from cryptography import x509

    return b"".join(x509.load_der_x509_certificate(der).public_bytes(serialization.Encoding.PEM) for der in chain)
