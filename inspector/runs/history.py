"""What a capture has shown so far of names, keys, certificates and CRLs: for deviations that span runs.

All tables are bounded, because any client that reaches the CA can invent names.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple, Protocol

from inspector import regex
from inspector.clocks import DAY
from inspector.model import Exchange, Handshake
from inspector.protocol import documents as d
from inspector.protocol import puppetdb
from inspector.protocol.kinds import PUPPETDB, Kind
from inspector.runs import servers
from inspector.runs.run_history import Fleet

if TYPE_CHECKING:
    from inspector.model import Record
    from inspector.protocol.ca_service import CaService
    from inspector.protocol.endpoints import Match
    from inspector.runs.run import Run

NAMES = 10_000
"""Maximum number of certnames; the one that was silent longest is dropped first."""
KEYS = 8
"""Maximum number of different keys per certname."""
MASTERS = 100
"""Maximum number of master names (as called by agents) whose CA bundle is remembered."""
ISSUERS = 100
"""Maximum number of CAs whose CRL is remembered."""
ENVIRONMENTS, ENVIRONMENT = 1000, 255
"""Maximum number of environments whose latest catalog is remembered, and of characters of their names."""
CODE, LISTED = 100, 5000
"""Maximum number of answers of servers that are remembered as their code, and of files in one."""
SERIALS = 200_000
"""Maximum number of revoked serial numbers per CA."""
REFUSED = DAY
"""Seconds after which a failed handshake is no longer part of a series."""


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
class ObservedCsr:
    """A signing request with one key, sent once or several times."""

    key: str
    seq: int
    time: float
    """Number and time of the first one."""
    last_seq: int
    last_time: float
    status: int | None
    """The answer to the latest request."""
    taken: bool = False
    """Whether the CA accepted one of them, and none with another key since: it is pending there, or signed."""
    times: int = 1


@dataclass(frozen=True, slots=True)
class Issued:
    """A certificate that was served for a name."""

    seq: int
    time: float
    certificate: d.Certificate


@dataclass(slots=True)
class Presented:
    """A client certificate in use: the latest one of a certname."""

    seq: int
    time: float
    last_time: float
    certificate: d.Certificate
    address: str | None
    last_seq: int = 0
    accepted: int | None = None
    """The latest request with it that the master did not refuse."""


class Unserved(NamedTuple):
    """A request of a master to PuppetDB that PuppetDB did not serve."""

    seq: int
    time: float
    status: int | None
    """The answer's; None without one."""


@dataclass(slots=True)
class NameHistory:
    """What is known of one certname."""

    csrs: dict[str, ObservedCsr] = field(default_factory=dict)
    """By key, ordered by when the key was last used."""
    issued: Issued | None = None
    """The latest certificate served for the certname."""
    renewed: Issued | None = None
    """The latest certificate that the agent got by renewal."""
    presented: Presented | None = None
    first_presented: tuple[int, float] | None = None
    """The first request with a certificate of this certname, and its time."""
    unserved: Unserved | None = None
    """The latest one that was about it."""


@dataclass(frozen=True, slots=True)
class ObservedBundle:
    """A CA bundle served by the master."""

    seq: int
    time: float
    certificates: tuple[d.Certificate, ...]


@dataclass(frozen=True, slots=True)
class ObservedCrl:
    """A CA's CRL, and where it was first seen."""

    seq: int
    time: float
    digest: bytes
    server: str
    """The name of the server that served it; empty: not known."""
    issuer: str
    number: int | None
    last_update: float
    next_update: float | None
    revoked: frozenset[int]


@dataclass(frozen=True, slots=True)
class Code:
    """What a server's latest answer shows of its code: the plugins that it lists, or the version of a catalog."""

    server: str
    """Its name."""
    seq: int
    since: float
    """When it answered so first."""
    time: float
    """When it answered so last."""
    content: frozenset[str]
    """The files with their checksums, or the version."""


@dataclass(frozen=True, slots=True)
class Refusals:
    """Consecutive failed handshakes of one agent, all with the same error."""

    alert: str | None
    by: str | None
    side: str
    seqs: tuple[int, ...]
    """The latest records."""
    times: int
    time: float
    """Of the latest record."""


@dataclass(slots=True)
class Ledger:
    """The memory of an analyzer."""

    names: dict[str, NameHistory] = field(default_factory=dict)
    keys: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Public keys of signing requests: the certname that used the key first, and the record."""
    bundles: dict[str, ObservedBundle] = field(default_factory=dict)
    """The latest CA bundle, by the name under which the master was called."""
    crls: dict[tuple[str, str | None], ObservedCrl] = field(default_factory=dict)
    """The latest CRL of each CA, by its name and key identifier."""
    services: dict[str, CaService] = field(default_factory=dict)
    """The program of a CA, by its name, where its answers showed it."""
    versioned: dict[str, int] = field(default_factory=dict)
    """The latest catalog of each environment for which a static one was requested, where it is one."""
    code: dict[tuple[str, str], dict[str, Code]] = field(default_factory=dict)
    """What each server answered last, by what was asked."""
    refusals: dict[str, Refusals] = field(default_factory=dict)
    """By certname; by address for an agent that has not presented a certificate yet."""
    fleet: Fleet = field(default_factory=Fleet)
    now: float = 0.0
    """The latest time in any record."""

    def known(self, certname: str | None) -> NameHistory:
        """What is known of a certname; empty if nothing is known."""
        return self.names.get(certname or "") or NameHistory()

    def bundle(self, exchange: Exchange) -> ObservedBundle | None:
        """The latest CA bundle served under the name by which this request calls the master."""
        return self.bundles.get(master_name(exchange))

    def list_of(self, crl: d.RevocationList) -> ObservedCrl | None:
        """The latest CRL of the same CA."""
        return self.crls.get((crl.issuer, crl.authority_key_identifier))

    def revoked(self, certificate: d.Certificate) -> ObservedCrl | None:
        """The CRL that lists a certificate."""
        for (issuer, key), crl in self.crls.items():
            same = None in (key, certificate.authority_key_identifier) or key == certificate.authority_key_identifier
            if issuer == certificate.issuer and same and certificate.serial in crl.revoked:
                return crl
        return None

    def refused(self, agent: str, handshake: Handshake) -> Refusals:
        """The series of failed handshakes after adding this one."""
        before = self.refusals.get(agent)
        kind = (handshake.alert, handshake.alert_by, handshake.leg.side)
        if before and (before.alert, before.by, before.side) == kind and handshake.time - before.time <= REFUSED:
            return Refusals(*kind, (*before.seqs[-2:], handshake.seq), before.times + 1, handshake.time)
        return Refusals(*kind, (handshake.seq,), 1, handshake.time)

    def remember(self, run: Run, step: Understood) -> None:
        """Add a step, after the rules have looked at it."""
        record, match = step.record, step.match
        self.now = max(self.now, record.ended)
        if isinstance(record, Handshake):
            agent = agent_of(record, step.certname)
            _keep(self.refusals, agent, self.refused(agent, record), NAMES)
        if not isinstance(record, Exchange):
            return
        self._serve(run, step)
        if (shown := code_of(record, match, step.response)) and record.master:
            known = self.code.pop(shown.asked, {})
            key, name = servers.key_of(record.master), servers.name_of(record.master)
            last, ended = known.pop(key, None), record.ended
            if last is None or last.content != shown.content:
                known[key] = Code(name, record.seq, ended, ended, shown.content)
            else:
                known[key] = replace(last, seq=record.seq, time=ended)
            while len(known) > servers.MOST:
                del known[next(iter(known))]
            _keep(self.code, shown.asked, known, CODE // 10)
        if step.client and step.client.common_name:
            self._present(self._name(step.client.common_name), record, step.client)
        asked = isinstance(step.request, d.CatalogRequest) and step.request.static_catalog
        if asked and isinstance(step.response, d.Catalog):
            self._compile(record.seq, step.response)
        if match is not None and match.endpoint.kind in PUPPETDB and (node := puppetdb.node(match)):
            status = record.response.status if record.response else None
            not_stored_yet = status == 404 and record.request.method == "GET"
            if status is None or (status >= 400 and not not_stored_yet):
                self._name(node).unserved = Unserved(record.seq, record.time, status)
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

    def _serve(self, run: Run, step: Understood) -> None:
        """Remember the program of the run's CA, or add to the run what an earlier one showed of the same CA."""
        leaf = step.client
        if (leaf is None or leaf.is_ca) and isinstance(step.response, d.Certificates):
            leaf = next(iter(step.response.certificates), None)
        if leaf is None or leaf.is_ca:
            return
        if run.ca_service and isinstance(step.response, d.ErrorDocument):
            return  # the certificate may be of another CA
        if run.ca_service:
            _keep(self.services, leaf.issuer, run.ca_service, ISSUERS)
        else:
            run.ca_service = self.services.get(leaf.issuer)

    def _compile(self, seq: int, catalog: d.Catalog) -> None:
        environment = (catalog.environment or "")[:ENVIRONMENT]
        if catalog.static:
            _keep(self.versioned, environment, seq, ENVIRONMENTS)
        else:
            self.versioned.pop(environment, None)

    def _hand_out(
        self, match: Match, record: Exchange, given: list[d.Certificate], client: d.Certificate | None
    ) -> None:
        issued = Issued(record.seq, record.time, given[0])
        match match.endpoint.kind:
            case Kind.CA_BUNDLE:
                _keep(self.bundles, master_name(record), ObservedBundle(record.seq, record.time, tuple(given)), MASTERS)
            case Kind.CERTIFICATE if match.certname:
                self._name(match.certname).issued = issued
            case Kind.RENEWAL if client and client.common_name:
                self._name(client.common_name).renewed = issued

    def _list(self, record: Exchange, crl: d.RevocationList) -> None:
        digest, known = hashlib.sha256(crl.der).digest(), self.list_of(crl)
        if known is None or known.digest != digest:
            revoked = frozenset(islice(crl.revoked, SERIALS))
            server = servers.name_of(record.master) if record.master else ""
            entry = ObservedCrl(record.seq, record.time, digest, server, crl.issuer, crl.number, crl.last_update,
                                crl.next_update, revoked)  # fmt: skip
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
            csr = ObservedCsr(key, record.seq, record.time, record.seq, record.time, status, times=0)
            if len(csrs) >= KEYS:
                del csrs[next(iter(csrs))]
        csrs[key] = csr
        if status is not None and status < 400:
            for other in csrs.values():
                other.taken = False
            csr.taken = True
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


class ShownCode(NamedTuple):
    """What an answer shows of its server's code."""

    asked: tuple[str, str]
    """What was asked: ``plugins`` with the request, or ``catalog`` with the environment."""
    content: frozenset[str]


def code_of(record: Exchange, match: Match | None, answered: d.Document | None) -> ShownCode | None:
    """Return what an answer shows of its server's code; None if nothing that two servers must have in common."""
    if match is None or record.master is None:
        return None
    if isinstance(answered, d.FileMetadatas) and match.endpoint.kind is Kind.PLUGIN_LISTING:
        # Checksums of directories are times.
        files = (file for file in answered.files[:LISTED] if file.type != "directory")
        named = (f"{file.checksum.digest} {file.relative_path}" for file in files if file.checksum)
        return ShownCode(("plugins", record.request.target[:1000]), frozenset(named))
    if isinstance(answered, d.Catalog):
        version = answered.code_id or str(answered.version or "")
        # Without a config_version it is the time when the code was read.
        if version and not regex.fullmatch(r"\d{10,13}(?:\.\d+)?", version):
            return ShownCode(
                ("catalog", (answered.environment or "")[:ENVIRONMENT]), frozenset({version[:ENVIRONMENT]})
            )
    return None


def agent_of(handshake: Handshake, certname: str | None) -> str:
    """The client of a failed handshake: its certname, or else its address."""
    return certname or handshake.leg.address or ""


def master_name(exchange: Exchange) -> str:
    """The name by which a request calls the master."""
    host = exchange.request.header("host") or ""
    return (exchange.agent.sni or host.rpartition(":")[0] or host).lower()[:255]


def _keep[K, V](memory: dict[K, V], key: K, value: V, most: int) -> None:
    """Store a value; the entry that was unchanged longest is dropped first."""
    memory.pop(key, None)
    if len(memory) >= most:
        del memory[next(iter(memory))]
    memory[key] = value
