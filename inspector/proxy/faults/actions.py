"""What a fault does, by its name: a row for each kind of fault."""

from __future__ import annotations

import json
import uuid
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from http import HTTPStatus
from typing import TYPE_CHECKING, NamedTuple

from cryptography import x509

from inspector import inputs, regex
from inspector.errors import InspectorError
from inspector.host import pki
from inspector.protocol.kinds import Kind
from inspector.protocol.pem import UNREADABLE
from inspector.proxy import identity
from inspector.proxy.identity import Credentials

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from inspector.protocol.endpoints import Match

OTHER_NAME = "puppet-inspector-fault.invalid"
"""The name in a certificate that is made to be another one (RFC 2606)."""
LONGEST = 24 * 3600.0
"""Seconds of the longest delay."""


@dataclass(frozen=True, slots=True)
class Answer:
    """An answer that the proxy gives in the master's place."""

    status: int
    content_type: str
    body: bytes
    more: tuple[tuple[str, str], ...] = ()
    """Further headers."""

    @property
    def reason(self) -> str:
        """The words after the status."""
        return HTTPStatus(self.status).phrase

    @property
    def fields(self) -> tuple[tuple[bytes, bytes], ...]:
        """All headers."""
        headers = [("Content-Type", self.content_type), *self.more, ("Content-Length", str(len(self.body)))]
        return tuple((name.encode("latin-1"), value.encode("latin-1")) for name, value in headers)

    def assembled(self, method: str) -> bytes:
        """Return the answer to a request with this method as on the wire."""
        lines = [
            f"HTTP/1.1 {self.status} {self.reason}".encode(),
            *(name + b": " + value for name, value in self.fields),
        ]
        return b"\r\n".join([*lines, b"", b"" if method == "HEAD" else self.body])


def failure(status: int, *more: tuple[str, str]) -> Answer:
    """Return an error as a master gives it."""
    text = {"message": "Server Error: a fault injected on purpose (puppet-inspector)", "issue_kind": "RUNTIME_ERROR"}
    return Answer(status, "application/json; charset=utf-8", json.dumps(text).encode(), more)


def no_renewal() -> Answer:
    """Return what a CA answers that does not renew certificates."""
    return Answer(404, "text/plain; charset=utf-8", b"Not Found: this proxy passes no renewal on (puppet-inspector)")


def empty_catalog(match: Match) -> Answer:
    """Return a catalog without resources."""
    environment = match.environment or "production"
    catalog = {
        "tags": [], "name": match.certname or "", "version": 1, "code_id": None, "catalog_uuid": str(uuid.uuid4()),
        "catalog_format": 1, "environment": environment, "resources": [], "edges": [], "classes": [],
    }  # fmt: skip
    if match.dialect == "legacy":
        document = {"document_type": "Catalog", "data": catalog, "metadata": {"api_version": 1}}
        return Answer(200, "text/pson", json.dumps(document).encode())
    return Answer(200, "application/json; charset=utf-8", json.dumps(catalog).encode())


@dataclass(frozen=True, slots=True)
class Action:
    """What is done with one request, or with one connection."""

    note: str
    """What was done, as it is recorded and shown."""
    kind: Kind | None = None
    """The only kind of request that it is for; None: all."""
    answer: Callable[[Match | None], Answer] | None = None
    """Makes the answer in the master's place."""
    delay: float = 0.0
    """Seconds that the request waits before it is passed on."""
    rate: int = 0
    """Bytes of the master's answer that are passed on in a second; 0: all at once."""
    cut: int | None = None
    """Bytes of the answer's body after which the connection is closed."""
    corrupt: bool = False
    """The first byte of the answer's body is replaced."""
    reset: bool = False
    """The connection is reset instead of an answer."""
    refuse: bool = False
    """The handshake is refused."""
    credentials: Credentials | None = None
    """The certificate that is presented in the handshake instead."""

    @property
    def in_handshake(self) -> bool:
        """Whether it concerns a connection before it carries a request."""
        return self.refuse or self.credentials is not None


class ActionKind(NamedTuple):
    """A kind of fault."""

    value: str
    """What its value is; empty: it has none; in brackets: it may be omitted."""
    meaning: str
    shows: str
    """What it shows of an agent."""
    example: str
    make: Callable[[str], Action]


def make(name: str, value: str | None) -> Action:
    """Return the action of a name with a value (None: without one). Raises InspectorError."""
    kind = KINDS[name]
    if value and not kind.value:
        raise InspectorError(f"The fault {name} has no value.", f"As in: {kind.example}")
    if not value and kind.value and not kind.value.startswith("["):
        raise InspectorError(f"The fault {name} needs a value: {kind.value}.", f"As in: {kind.example}")
    try:
        return kind.make(value or "")
    except ValueError as error:
        raise InspectorError(
            f"The value of the fault {name} cannot be {value!r}.", f"It is {kind.value.strip('[]')}: {kind.example}"
        ) from error


def _busy(value: str) -> Action:
    if not value:
        return Action("answered 503", answer=lambda _: failure(503))
    later = _number(value.removesuffix("s"))
    return Action(f"answered 503 with Retry-After: {later}", answer=lambda _: failure(503, ("Retry-After", str(later))))


def _delayed(value: str) -> Action:
    seconds = duration(value)
    if seconds > LONGEST:
        raise ValueError("too long")
    return Action(f"delayed by {seconds:g} s", delay=seconds)


def _throttled(value: str) -> Action:
    rate = _bytes(value)
    if not rate:
        raise ValueError("no byte would be passed on")
    return Action(f"answer throttled to {rate} bytes a second", rate=rate)


def _cut(value: str) -> Action:
    size = _bytes(value)
    return Action(f"answer cut off after {size} bytes", cut=size)


def _certificate(value: str) -> Action:
    cadir = _cadir(value)
    if cadir is None:
        path = inputs.expanded(value)
        credentials = identity.load(path, path)
    else:
        authority, key = pki.read_authority(cadir), pki.new_key()
        leaf = pki.sign(authority, key.public_key(), OTHER_NAME)
        credentials = Credentials((leaf, authority.certificate), key)
    name = ascii(pki.certname_of(credentials.chain[0]))[1:-1]
    return Action(f"presented another certificate ({name})", credentials=credentials)


def _crl(value: str) -> Action:
    cadir = _cadir(value)
    path = inputs.expanded(value) if cadir is None else cadir / "ca_crl.pem"
    try:
        data = inputs.read(path)
        crls = x509.load_pem_x509_crl(data), *_crls(data)[1:]
    except (OSError, *UNREADABLE) as error:
        reason = getattr(error, "strerror", None) or "it contains no CRL in PEM format"
        raise InspectorError(f"Cannot read the CRL {path}: {reason}.", "Give a file in PEM format.") from error
    if cadir is not None:
        data = _expired(pki.read_authority(cadir), crls)
    what = "an expired CRL" if cadir is not None else "another CRL"
    return Action(f"answered with {what}", kind=Kind.CRL, answer=lambda _: Answer(200, "text/plain", data))


def _crls(data: bytes) -> list[x509.CertificateRevocationList]:
    end = b"-----END X509 CRL-----"
    return [x509.load_pem_x509_crl(block + end) for block in data.split(end)[:-1]]


def _expired(authority: pki.Authority, crls: tuple[x509.CertificateRevocationList, ...]) -> bytes:
    """Return these CRLs, that of the authority issued anew so that it has expired."""
    own = [crl for crl in crls if crl.issuer == authority.certificate.subject]
    now = datetime.now(UTC)
    expired = pki.renew_crl(authority, own, now - timedelta(days=60), now - timedelta(days=30))
    return pki.pem(expired, *(crl for crl in crls if crl not in own))


def _empty_catalog(_: str) -> Action:
    def answer(match: Match | None) -> Answer:
        assert match is not None  # noqa: S101 - of that kind only
        return empty_catalog(match)

    return Action("answered with an empty catalog", kind=Kind.CATALOG, answer=answer)


def duration(text: str) -> float:
    """Return the seconds of ``5s``, ``0.5s``, ``10m``, ``1h`` or ``5``. Raises ValueError."""
    found = regex.fullmatch(r"([0-9]{1,9}(?:\.[0-9]{1,3})?)(s|m|h|)", text)
    if found is None:
        raise ValueError(text)
    return float(found[1]) * {"": 1, "s": 1, "m": 60, "h": 3600}[found[2]]


def _number(text: str) -> int:
    if not regex.fullmatch("[0-9]{1,9}", text):
        raise ValueError(text)
    return int(text)


def _bytes(text: str) -> int:
    found = regex.fullmatch("([0-9]{1,9})([kKmM]?)", text)
    if found is None:
        raise ValueError(text)
    return int(found[1]) * {"": 1, "k": 1000, "m": 1_000_000}[found[2].lower()]


def _cadir(value: str) -> Path | None:
    """Return the directory of ``mint:CADIR``; None for a file."""
    directory = value.removeprefix("mint:")
    if directory == value:
        return None
    if not directory:
        raise ValueError(value)
    return inputs.expanded(directory)


KINDS: dict[str, ActionKind] = {
    "503": ActionKind(
        "[SECONDS]", "answers 503 without asking the master, with Retry-After if SECONDS are given",
        "whether it waits so long, and asks again", "503=10 agent:web1.example phase:catalog nth:1", _busy,
    ),
    "500": ActionKind(
        "", "answers 500 without asking the master", "whether it falls back to a cached catalog, or fails",
        "500 agent:web1.example phase:catalog",
        lambda _: Action("answered 500", answer=lambda _: failure(500)),
    ),
    "delay": ActionKind(
        "DURATION", "passes the request on later (5s, 2m)", "its timeouts, and what it does when one has passed",
        "delay=5s agent:web1.example endpoint:file_content share:30% seed:7", _delayed,
    ),
    "throttle": ActionKind(
        "BYTES", "passes on so many bytes of the answer in a second (500, 10k)", "how it gets on over a slow line",
        "throttle=10k agent:web1.example phase:catalog", _throttled,
    ),
    "cut": ActionKind(
        "BYTES", "closes the connection after so many bytes of the answer's body",
        "whether it notices, and asks again", "cut=1000 agent:web1.example phase:catalog nth:1", _cut,
    ),
    "reset": ActionKind(
        "", "resets the connection instead of an answer", "whether it asks again over another connection",
        "reset agent:web1.example method:POST nth:1",
        lambda _: Action("connection reset instead of an answer", reset=True),
    ),
    "corrupt": ActionKind(
        "", "replaces the first byte of the answer's body, so that it is no JSON",
        "whether it notices, and what it then does", "corrupt agent:web1.example phase:catalog",
        lambda _: Action("first byte of the answer replaced", corrupt=True),
    ),
    "empty-catalog": ActionKind(
        "", "answers with a catalog without resources, without asking the master",
        "that it takes it for success: nothing is managed any more", "empty-catalog agent:web1.example",
        _empty_catalog,
    ),
    "crl": ActionKind(
        "FILE or mint:CADIR",
        "answers requests for the CRL with that of a PEM file, or with one of this CA that has expired",
        "whether it checks it, and what it still does without a valid one",
        "crl=mint:/etc/puppetlabs/puppetserver/ca agent:192.0.2.7", _crl,
    ),
    "certificate": ActionKind(
        "FILE or mint:CADIR",
        "presents the certificate of a PEM file with its key, or one of this CA for another name",
        "whether it verifies its master",
        "certificate=mint:/etc/puppetlabs/puppetserver/ca agent:192.0.2.7 nth:1", _certificate,
    ),
    "refuse": ActionKind(
        "", "refuses the handshake", "whether it tries again, or uses another server",
        "refuse agent:192.0.2.7 for:10m",
        lambda _: Action("handshake refused", refuse=True),
    ),
}  # fmt: skip
"""The kinds of faults."""
