"""What a capture has shown so far of names, keys, certificates and lists: for deviations that span runs.

Everything in it is bounded: whoever can reach the CA can invent names.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Protocol

from inspector.clocks import DAY
from inspector.model import Exchange, Handshake
from inspector.protocol import documents as d
from inspector.protocol.kinds import Kind
from inspector.runs.run_history import Fleet

if TYPE_CHECKING:
    from inspector.model import Record
    from inspector.protocol.endpoints import Match
    from inspector.runs.run import Run

NAMES = 10_000
"""Certnames that are remembered; who was silent for longest is forgotten first."""
KEYS = 8
"""Different keys that are remembered of one certname."""
MASTERS = 100
"""Names under which agents call their master, of which the CA bundle is remembered."""
ISSUERS = 100
"""CAs whose revocation list is remembered."""
SERIALS = 200_000
"""Revoked serial numbers that are remembered of one CA."""
REFUSED = DAY
"""Seconds after which a failed handshake no longer counts as one of a series."""


class Understood(Protocol):
    """The part of an analyzer's step that rules read."""

    record: Record
    match: Match | None
    request: d.Document | None
    response: d.Document | None
    certname: str | None
    client: d.Certificate | None
    """The certificate that the agent presented on its connection."""


@dataclass(slots=True)
class CsrSeen:
    """A signing request with one key, sent once or many times."""

    key: str
    seq: int
    time: float
    """Of the first one."""
    last_seq: int
    last_time: float
    status: int | None
    """What the last one was answered."""
    taken: bool = False
    """The CA took one of them: it waits there, or is signed."""
    times: int = 1


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate that was served for a name."""

    seq: int
    time: float
    certificate: d.Certificate


@dataclass(slots=True)
class Presented:
    """A client certificate in use: the last one of a name."""

    seq: int
    time: float
    last_time: float
    certificate: d.Certificate
    address: str | None
    last_seq: int = 0
    accepted: int | None = None
    """The last request with it that the master did not refuse."""


@dataclass(slots=True)
class NameHistory:
    """What was seen of one certname."""

    csrs: dict[str, CsrSeen] = field(default_factory=dict)
    """By key, in the order in which the keys were last used."""
    issued: Issued | None = None
    """The last certificate that was served for it."""
    renewed: Issued | None = None
    """The last certificate that it got by renewal."""
    presented: Presented | None = None
    first_presented: tuple[int, float] | None = None
    """The first request with a certificate of this name, and when."""


@dataclass(frozen=True, slots=True)
class BundleSeen:
    """A CA bundle that the master handed out."""

    seq: int
    time: float
    certificates: tuple[d.Certificate, ...]


@dataclass(frozen=True, slots=True)
class CrlSeen:
    """A CA's revocation list, where it was seen first."""

    seq: int
    time: float
    digest: bytes
    issuer: str
    number: int | None
    last_update: float
    next_update: float | None
    revoked: frozenset[int]


@dataclass(frozen=True, slots=True)
class Refusals:
    """Handshakes of one agent that failed one after the other, in the same way."""

    alert: str | None
    by: str | None
    side: str
    seqs: tuple[int, ...]
    """The latest ones."""
    times: int
    time: float
    """Of the last one."""


@dataclass(slots=True)
class Ledger:
    """The memory of an analyzer."""

    names: dict[str, NameHistory] = field(default_factory=dict)
    keys: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Public keys of signing requests: the certname that used it first, and where."""
    bundles: dict[str, BundleSeen] = field(default_factory=dict)
    """The last CA bundle, by the name under which the master was called."""
    crls: dict[tuple[str, str | None], CrlSeen] = field(default_factory=dict)
    """The last revocation list of each CA, by its name and key identifier."""
    refusals: dict[str, Refusals] = field(default_factory=dict)
    """By certname; by address for an agent that had not shown its certificate yet."""
    fleet: Fleet = field(default_factory=Fleet)
    now: float = 0.0
    """The latest moment that a record told of."""

    def known(self, certname: str | None) -> NameHistory:
        """What was seen of a name; empty if nothing was."""
        return self.names.get(certname or "") or NameHistory()

    def bundle(self, exchange: Exchange) -> BundleSeen | None:
        """The last CA bundle that was handed out under the name by which this request calls the master."""
        return self.bundles.get(master_name(exchange))

    def list_of(self, crl: d.RevocationList) -> CrlSeen | None:
        """The last revocation list that the same CA made."""
        return self.crls.get((crl.issuer, crl.authority_key_identifier))

    def revoked(self, certificate: d.Certificate) -> CrlSeen | None:
        """The revocation list that names a certificate."""
        for (issuer, key), crl in self.crls.items():
            same = None in (key, certificate.authority_key_identifier) or key == certificate.authority_key_identifier
            if issuer == certificate.issuer and same and certificate.serial in crl.revoked:
                return crl
        return None

    def refused(self, agent: str, handshake: Handshake) -> Refusals:
        """The series of failed handshakes that one more makes."""
        before = self.refusals.get(agent)
        kind = (handshake.alert, handshake.alert_by, handshake.leg.side)
        if before and (before.alert, before.by, before.side) == kind and handshake.time - before.time <= REFUSED:
            return Refusals(*kind, (*before.seqs[-2:], handshake.seq), before.times + 1, handshake.time)
        return Refusals(*kind, (handshake.seq,), 1, handshake.time)

    def remember(self, run: Run, step: Understood) -> None:
        """Take in a step, after the rules were asked about it."""
        record, match = step.record, step.match
        self.now = max(self.now, record.ended)
        if isinstance(record, Handshake):
            agent = agent_of(record, step.certname)
            _keep(self.refusals, agent, self.refused(agent, record), NAMES)
        if not isinstance(record, Exchange):
            return
        if step.client and step.client.common_name:
            self._present(self._name(step.client.common_name), record, step.client)
        if match is None or match.endpoint.area != "ca":
            return
        if isinstance(step.request, d.CertificateRequest) and match.certname and run.csrs:
            status = record.response.status if record.response else None
            self._ask(match.certname, step.request.key, record, status)
        if isinstance(step.response, d.RevocationLists):
            for crl in sorted(step.response.crls[:ISSUERS], key=lambda crl: crl.last_update):
                self._list(record, crl)
        elif isinstance(step.response, d.Certificates):
            self._hand_out(match, record, step.response.certificates, step.client)

    def _hand_out(
        self, match: Match, record: Exchange, given: list[d.Certificate], client: d.Certificate | None
    ) -> None:
        issued = Issued(record.seq, record.time, given[0])
        match match.endpoint.kind:
            case Kind.CA_BUNDLE:
                _keep(self.bundles, master_name(record), BundleSeen(record.seq, record.time, tuple(given)), MASTERS)
            case Kind.CERTIFICATE if match.certname:
                self._name(match.certname).issued = issued
            case Kind.RENEWAL if client and client.common_name:
                self._name(client.common_name).renewed = issued

    def _list(self, record: Exchange, crl: d.RevocationList) -> None:
        digest, known = hashlib.sha256(crl.der).digest(), self.list_of(crl)
        if known is None or known.digest != digest:
            revoked = frozenset(islice(crl.revoked, SERIALS))
            entry = CrlSeen(record.seq, record.time, digest, crl.issuer, crl.number, crl.last_update, crl.next_update,
                           revoked)  # fmt: skip
            _keep(self.crls, (crl.issuer, crl.authority_key_identifier), entry, ISSUERS)

    def _name(self, certname: str) -> NameHistory:
        known = self.names.pop(certname, None) or NameHistory()
        if len(self.names) >= NAMES:
            del self.names[next(iter(self.names))]
        self.names[certname] = known
        return known

    def _ask(self, certname: str, key: str, record: Exchange, status: int | None) -> None:
        csrs = self._name(certname).csrs
        csr = csrs.pop(key, None)
        if csr is None:
            csr = CsrSeen(key, record.seq, record.time, record.seq, record.time, status, times=0)
            if len(csrs) >= KEYS:
                del csrs[next(iter(csrs))]
        csrs[key] = csr
        csr.taken = csr.taken or (status is not None and status < 400)
        csr.last_seq, csr.last_time, csr.status, csr.times = record.seq, record.time, status, csr.times + 1
        if key not in self.keys:
            if len(self.keys) >= NAMES:
                del self.keys[next(iter(self.keys))]
            self.keys[key] = (certname, record.seq)

    def _present(self, known: NameHistory, record: Exchange, certificate: d.Certificate) -> None:
        now = known.presented
        if now is None or now.certificate.der != certificate.der:
            address = record.agent.address
            now = known.presented = Presented(record.seq, record.time, record.ended, certificate, address)
        known.first_presented = known.first_presented or (record.seq, record.time)
        now.last_time, now.last_seq = record.ended, record.seq
        if record.response and record.response.status not in (401, 403):
            now.accepted = record.seq
            if self.refusals:
                self.refusals.pop(certificate.common_name or "", None)
                self.refusals.pop(record.agent.address or "", None)


def agent_of(handshake: Handshake, certname: str | None) -> str:
    """Whose handshake failed: a certname, or else an address."""
    return certname or handshake.leg.address or ""


def master_name(exchange: Exchange) -> str:
    """The name by which a request calls the master."""
    host = exchange.request.header("host") or ""
    return (exchange.agent.sni or host.rpartition(":")[0] or host).lower()[:255]


def _keep[K, V](memory: dict[K, V], key: K, value: V, most: int) -> None:
    """Remember one thing more; what was longest untouched goes first."""
    memory.pop(key, None)
    if len(memory) >= most:
        del memory[next(iter(memory))]
    memory[key] = value
