"""What a CA is known to answer: by its directory, by a capture of its traffic, or by asking the running one.

All three are read only: a running CA is sent GETs for what it gives to everybody.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal
from urllib.parse import quote

from inspector import inputs
from inspector.capture.store import Capture
from inspector.doctor import ca_settings, cadir
from inspector.doctor.ca_settings import CaSettings
from inspector.doctor.tls_client import Target, Unreachable, open_session
from inspector.errors import InspectorError
from inspector.host import puppetconf
from inspector.model import Exchange, Handshake
from inspector.progress import unwatched, watched
from inspector.protocol import documents as d
from inspector.protocol import endpoints, x509
from inspector.protocol.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from inspector.doctor.cadir import CaDir, InventoryEntry
    from inspector.doctor.tls_client import HttpResponse
    from inspector.model import Record
    from inspector.progress import Watch
    from inspector.protocol.certificates import Certificate, CertificateRequest, RevocationList

ASKED = 500
"""Nodes that a running CA is asked for, with two requests each."""
RECORDED = 200_000
"""Certificates and requests of a capture: any client can invent names and keys."""
TIMEOUT = 10.0
"""Seconds for one request to a running CA."""


@dataclass(frozen=True, slots=True)
class CaView:
    """What is known of a CA. The fields say what is not known, which is never taken for a difference."""

    kind: Literal["directory", "capture", "live"]
    where: str
    """The path or the address."""
    authorities: tuple[Certificate, ...] = ()
    """The bundle that agents download; empty: not known."""
    crls: tuple[RevocationList, ...] | None = None
    """None: not known."""
    certificates: Mapping[str, Certificate] = field(default_factory=dict)
    """The certificate of each node by name; of a capture the latest one that the node showed or was given."""
    requests: Mapping[str, CertificateRequest] = field(default_factory=dict)
    """Signing requests that wait; of a capture all that were sent."""
    asked: frozenset[str] = frozenset()
    """The names that a running CA was asked for: it has no certificate and no request of them but these."""
    serial: int | None = None
    """The next serial number; None: not known, or the CA counts none."""
    inventory: tuple[InventoryEntry, ...] = ()
    shown: tuple[bytes, ...] = ()
    """The chain (DER) that the running server presents."""
    directory: CaDir | None = None
    settings: CaSettings = field(default_factory=CaSettings)
    unknown: tuple[str, ...] = ()
    """What could not be found out, in sentences."""

    @property
    def signing(self) -> Certificate | None:
        """The CA that signs nodes: by its key, else the first of the bundle."""
        if self.directory is not None:
            return self.directory.signing
        return self.authorities[0] if self.authorities else None

    def lacks(self, name: str) -> bool:
        """Whether it is known that the CA has no certificate of this name."""
        if self.directory is not None:  # one that cannot be read is there
            return self.directory.folder.missing(f"signed/{name}.pem")
        return name in self.asked and name not in self.certificates


def of_directory(path: Path, known: dict[bytes, object] | None = None, watch: Watch = unwatched) -> CaView:
    """Return what a CA's directory holds; ``known`` is what was parsed of another one, which may be its copy.

    Raises InspectorError.
    """
    found = cadir.read(path, known=known, watch=watch)
    return CaView(
        kind="directory",
        where=str(path),
        authorities=found.authorities,
        crls=None if "ca_crl.pem" in found.folder.hidden else found.crls,
        certificates=found.signed,
        requests=found.requests,
        serial=found.serial,
        inventory=found.inventory,
        directory=found,
        settings=ca_settings.beside(path),
    )


def of_capture(path: Path, watch: Watch = unwatched) -> CaView:
    """Return what the traffic of a capture shows of its CA. Raises CaptureError."""
    with Capture.open(path) as capture:
        return of_records(str(path), watched(capture.records(), watch, capture.count()))


def of_records(where: str, records: Iterable[Record]) -> CaView:
    """Return what records show of their CA: the latest of each."""
    authorities: tuple[Certificate, ...] = ()
    crls: tuple[RevocationList, ...] | None = None
    certificates: dict[str, Certificate] = {}
    requests: dict[str, CertificateRequest] = {}

    def add[T](to: dict[str, T], name: str | None, one: T) -> None:
        if name and (name in to or len(to) < RECORDED):
            to[name] = one

    for record in records:
        leg = record.agent if isinstance(record, Exchange) else record.leg if isinstance(record, Handshake) else None
        if leg is not None and leg.side == "agent" and leg.peer_chain:
            with suppress(x509.Malformed):
                presented = x509.read_der(leg.peer_chain[0])
                add(certificates, presented.common_name, presented)
        if not isinstance(record, Exchange):
            continue
        found = endpoints.match(record.request.method, record.request.target)
        if found is None or found.endpoint.area != "ca":
            continue
        name = found.certname
        if found.endpoint.kind is Kind.CSR:
            sent = found.endpoint.request(record.request)
            if isinstance(sent, d.CertificateRequest):
                add(requests, name, sent)
        if record.response is None or record.response.status != 200:
            continue
        if found.endpoint.kind not in (Kind.CA_BUNDLE, Kind.CRL, Kind.CERTIFICATE):
            continue
        match found.endpoint.response(record.response):
            case d.Certificates(answered) if found.endpoint.kind is Kind.CA_BUNDLE:
                authorities = tuple(answered)
            case d.Certificates(answered):
                add(certificates, name, answered[0])
            case d.RevocationLists(answered_crls):
                crls = tuple(answered_crls)
    unknown = [f"the {what} in {where}" for what, there in (("CA bundle", authorities), ("CRLs", crls)) if not there]
    return CaView(
        kind="capture",
        where=where,
        authorities=authorities,
        crls=crls,
        certificates=certificates,
        requests=requests,
        unknown=tuple(f"not recorded: {what}" for what in unknown),
    )


def of_live(address: str, names: Iterable[str], watch: Watch = unwatched) -> CaView:
    """Return what a running CA answers everybody: its bundle, its CRLs, the certificates and requests of some nodes.

    Raises InspectorError if no CA answers.
    """
    host, port = puppetconf.split_address(address)
    target = Target(host, port, host, TIMEOUT)
    wanted = list(names)
    unknown = []
    if len(wanted) > ASKED:
        unknown.append(f"{address} was asked for the first {ASKED} of {len(wanted):,} nodes only")
    try:
        session = open_session(target, "/puppet-ca/v1/certificate/ca")
        answer = session.answer
    except Unreachable as error:
        raise InspectorError(
            f"No CA answers at {address}: {error}.", f"`doctor --live {address}` says more."
        ) from error
    authorities = _parsed(answer, x509.read_certificates)
    if authorities is None:
        status = f"status {answer.status}" if answer else str(session.problem)
        raise InspectorError(
            f"{address} does not give a CA bundle: {status}.", f"`doctor --live {address}` says what answers there."
        )
    crls = _parsed(_get(target, "certificate_revocation_list/ca"), x509.read_crls)
    if crls is None:
        unknown.append(f"{address} does not give its CRLs")
    certificates: dict[str, Certificate] = {}
    requests: dict[str, CertificateRequest] = {}
    asked = set()
    for name in watched(wanted[:ASKED], watch, min(len(wanted), ASKED), "asking for node"):
        place = quote(name, safe="")
        given = _get(target, f"certificate/{place}")
        if given is None:  # it does not answer any more: each of the others would wait as long
            break
        if found := _parsed(given, x509.read_certificates):
            certificates[name] = found[0]
        waiting = _get(target, f"certificate_request/{place}")
        if one := _parsed(waiting, lambda data: [x509.read_csr(data)]):
            requests[name] = one[0]
        if waiting and {given.status, waiting.status} <= {200, 404}:
            asked.add(name)
    if refused := [name for name in wanted[:ASKED] if name not in asked]:
        unknown.append(f"{address} does not say of {len(refused):,} nodes what it has, for example of {refused[0]}")
    return CaView(
        kind="live",
        where=address,
        authorities=tuple(authorities),
        crls=None if crls is None else tuple(crls),
        certificates=certificates,
        requests=requests,
        asked=frozenset(asked),
        shown=session.chain,
        unknown=tuple(unknown),
    )


def of_named(text: str, names: Iterable[str], known: dict[bytes, object] | None, watch: Watch = unwatched) -> CaView:
    """Return the view of what a user named: a directory, a capture, or an address, which is asked for some nodes.

    Raises InspectorError.
    """
    path = inputs.expanded(text)
    try:
        directory, there = inputs.is_directory(path), inputs.exists(path)
    except OSError as error:
        raise InspectorError(f"{text} cannot be read: {error.strerror}.", "Run this as root.") from error
    if directory:
        return of_directory(path, known, watch)
    if there:
        return of_capture(path, watch)
    if "/" in text:
        raise InspectorError(f"There is no directory {text}.", "Name a CA's directory, a capture, or HOST[:PORT].")
    return of_live(text, names, watch)


def _get(target: Target, path: str) -> HttpResponse | None:
    try:
        return open_session(target, f"/puppet-ca/v1/{path}").answer
    except Unreachable:
        return None


def _parsed[T](answer: HttpResponse | None, parse: Callable[[bytes], list[T]]) -> list[T] | None:
    """Return what a successful answer contains; None for another one."""
    if answer is None or answer.status != 200:
        return None
    try:
        return parse(answer.body)
    except x509.Malformed:
        return None
