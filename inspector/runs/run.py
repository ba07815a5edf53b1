"""One run of an agent: the facts that views and rules need; bodies stay in the capture.

``segmenter`` decides which step belongs to which run.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from inspector import clocks, columns
from inspector.model import Exchange, Finding, Gap, Handshake, Phase
from inspector.protocol import ca_service, kinds
from inspector.protocol import documents as d
from inspector.protocol.certificates import SIGNED
from inspector.protocol.kinds import FILES as FILE_REQUESTS
from inspector.protocol.kinds import Kind
from inspector.runs import commands, servers
from inspector.runs.observations import (
    FILES,
    RETAINED,
    Bounded,
    Bundle,
    CatalogAnswer,
    CertificateAnswer,
    CsrSent,
    LegUse,
    ObservedFiles,
    PhaseSpan,
    Polling,
    ReportSent,
    RequestSent,
    Unanswered,
    is_redirect,
    merge,
)
from inspector.runs.snapshot import RunSnapshot, Span

if TYPE_CHECKING:
    from collections.abc import Callable

    from inspector.clocks import Offset
    from inspector.model import Record, Side
    from inspector.protocol.ca_service import CaService
    from inspector.protocol.endpoints import Dialect, Endpoint, Match
    from inspector.runs.commands import Command
    from inspector.runs.servers import Server, Servers
    from inspector.runs.snapshot import Activity, Generation, Outcome, VersionSource, Wait

WORD = 255
"""Maximum length of a name stored for a run: headers can contain anything."""
NAMES = 50
"""Maximum number of names and extensions in a signing request that are stored."""
LEGS = 8
"""Connections by which a run is found among those that are open."""
PAUSE = 0.05
"""Seconds of silence that count as a wait; shorter pauses are normal for an agent."""


@dataclass(slots=True, eq=False)
class Run:
    """One run of one agent, from its first certificate request to its report."""

    address: str | None
    certname: str | None = None
    dialect: Dialect | None = None
    agent_version: str | None = None
    agent_version_from: VersionSource | None = None
    """Where the agent's version was found: ``header``, ``user agent``, ``facts`` or ``report``."""
    tool: str | None = None
    """The name of a client that is not an agent (``curl/7.88.1``): a tool that calls an agent's endpoints."""
    server: str | None = None
    """The agent's name for the master: SNI, or the Host header."""
    presented: bytes | None = None
    """The certificate that the agent was presented as the master's, in DER; None if it is not known."""
    own_proxy: bool = False
    """The proxy is on the node, as with `run`: both have one clock."""
    certificate_of_master: bytes | None = None
    """The certificate that the master presented, in DER; None if it is not known."""
    stranger: bool = False
    """Its requests need a certificate, and the client showed none: whoever sent them, the names in them are claims."""
    master_versions: dict[str, int] = field(default_factory=dict)
    """X-Puppet-Version of the responses, each with its first record."""
    ca_service: CaService | None = None
    """The program that the CA is, where its answers show it."""
    answering: Servers = field(default_factory=dict)
    """The servers that answered."""
    compilers: dict[str, int] = field(default_factory=dict)
    """X-Puppet-Compiler-Name of the catalogs (7 and later), each with its first record."""
    environment_asked: str | None = None
    """The first environment that the agent requested."""
    environment: str | None = None
    """The final environment."""
    transaction_uuid: str | None = None
    key: str | None = None
    """Digest of the agent's public key, from its CSR or its certificate."""
    started: float = 0.0
    ended: float = 0.0
    latest: float = 0.0
    """When its latest request began."""
    spans: dict[Phase, PhaseSpan] = field(default_factory=dict)
    seqs: array[int] = field(default_factory=lambda: array("Q"))
    """The numbers of its records, in order."""
    kinds: set[Kind | None] = field(default_factory=set)
    forbidden: dict[str, Endpoint] = field(default_factory=dict)
    """The endpoints that the master refused to this agent although it presented its certificate, by name."""
    """The kinds of its requests; with None if there are some that are not Puppet's."""
    single: bool = False
    """It began with a request that belongs to no agent's run: only its own connection can continue it."""
    cas: Bounded[Bundle[d.Certificate]] = field(default_factory=Bounded)
    crls: Bounded[Bundle[d.RevocationList]] = field(default_factory=Bounded)
    csrs: Bounded[CsrSent] = field(default_factory=Bounded)
    certificates: Bounded[CertificateAnswer] = field(default_factory=Bounded)
    catalogs: Bounded[CatalogAnswer] = field(default_factory=Bounded)
    reports: Bounded[ReportSent] = field(default_factory=Bounded)
    handshakes: Bounded[Handshake] = field(default_factory=Bounded)
    anonymous: Bounded[RequestSent] = field(default_factory=Bounded)
    """Requests on connections without a client certificate."""
    denied: Bounded[RequestSent] = field(default_factory=Bounded)
    """Requests necessary for a run that were answered 401 or 403."""
    authenticated: int | None = None
    """The first request with a client certificate."""
    answered: int = 0
    """How many requests were answered."""
    chosen: tuple[int, str] | None = None
    """The server of the agent's server_list that is up, and the record in which it said so."""
    unanswered: Bounded[Unanswered] = field(default_factory=Bounded)
    """Requests that had no answer, nor when they were sent again."""
    delayed: Bounded[RequestSent] = field(default_factory=Bounded)
    """Requests that were answered 503."""
    files: ObservedFiles = field(default_factory=ObservedFiles)
    changed: frozenset[str] = frozenset()
    """How many resources are changed, according to the report."""
    failed: frozenset[str] = frozenset()
    """The resources that failed, according to the report."""
    file_environments: dict[str, int] = field(default_factory=dict)
    """The environments in which files of the latest catalog were requested, each with the first request."""
    findings: list[Finding] = field(default_factory=list)
    matches: dict[str, Bounded[int]] = field(default_factory=dict)
    """The records that a site's own rules count, by rule."""
    injected: dict[int, str] = field(default_factory=dict)
    """The faults that the proxy injected on purpose, by record: the first ones and the latest."""
    ignored: int = 0
    """How many findings were dropped because of a site's rules.yaml."""
    beyond: dict[str, int] = field(default_factory=dict)
    """How many findings per rule came after the first ``analyzer.FINDINGS``; only those are stored."""
    closed: bool = False
    cut: bool = False
    """It is closed only because the records end."""
    statuses: dict[int, int] = field(default_factory=dict)
    """How many requests were answered with each status; 0: without an answer."""
    phase: Phase = Phase.OTHER
    """The current phase."""
    listings: dict[str, int | None] = field(default_factory=dict)
    """Plugin lists of the current round (target without query -> status)."""
    place: int = 0
    """Its position among everything that started in the capture, including calls of tools."""
    joined: Run | None = None
    """The run that it turned out to be part of."""
    number: int | None = None
    """The run number shown to users; None until it contains part of an agent run."""
    waits: dict[Wait, float] = field(default_factory=dict)
    """Seconds of silence, by the agent's activity during them."""
    sent: int = 0
    received: int = 0
    """Bytes of bodies as on the wire, from the agent and to it, including bytes that the capture does not contain."""
    legs: dict[str, LegUse] = field(default_factory=dict)
    """The agent's latest connections; ``connections`` counts all of them."""
    connections: int = 0
    clocks: dict[Side, Offset] = field(default_factory=dict)
    """How far the clocks of both ends are ahead of the proxy's clock."""

    # -- what a person would say ------------------------------------------------------------------

    @property
    def generation(self) -> Generation | None:
        """The dialect by version: it determines the bootstrap and what the agent sends."""
        return None if self.tool else _generation(self.major)

    @property
    def master_version(self) -> str | None:
        """The latest one."""
        return next(reversed(self.master_versions), None)

    @property
    def compiler(self) -> str | None:
        """The compiler of the latest catalog."""
        return next(reversed(self.compilers), None)

    @property
    def servers(self) -> tuple[Server, ...]:
        """The servers that answered, as they are now: in the order of their first answers."""
        return servers.copies(self.answering)

    @property
    def compile_time(self) -> float | None:
        """Seconds from the latest catalog request to the first byte of its answer; None: none could be applied."""
        return next((answer.waited for answer in reversed(self.catalogs) if answer.usable), None)

    @property
    def real(self) -> bool:
        """False for a single probe or a tool's call: it has no phase of a run and no handshake."""
        return bool(self.handshakes) or any(phase is not Phase.OTHER for phase in self.spans)

    @property
    def command(self) -> Command | None:
        """The ``puppet`` command whose requests these are; None for an agent's run, and for another client's."""
        return commands.of(self)

    @property
    def bootstrapping(self) -> bool:
        """True until the agent does something that needs its certificate."""
        if self.kinds == {Kind.CONNECTION}:
            return False  # nothing says what it was for
        return self.authenticated is None and all(phase in (Phase.CERTIFICATES, Phase.OTHER) for phase in self.spans)

    @property
    def records(self) -> int:
        """How many records it has."""
        return len(self.seqs)

    @property
    def duration(self) -> float:
        return max(0.0, self.ended - self.started)

    @property
    def major(self) -> tuple[int, int]:
        """The agent's version as (major, minor); (0, 0) if unknown, (3, 0) for an unknown legacy agent."""
        return _major(self.agent_version, self.dialect)

    @property
    def fails_to_wait(self) -> bool:
        """True for agents that fail instead of repeating a request that was answered 503 with Retry-After (S24)."""
        return (6, 29) <= self.major < (7, 26) or (8, 0) <= self.major < (8, 2)

    @property
    def old_engine(self) -> bool:
        """True for agents that verify nothing during bootstrap (``Puppet::SSL::Host``, up to 6.3)."""
        return (0, 0) < self.major < (6, 4)

    @property
    def certificate(self) -> d.Certificate | None:
        """The agent's certificate as served by the master, if its key is that of the latest CSR."""
        for answer in reversed(self.certificates):
            if answer.certificate and (not self.csrs or answer.certificate.key == self.csrs[-1].key):
                return answer.certificate
        return None

    def signed_meanwhile(self, request: CsrSent) -> bool:
        """Whether the CA refused a request only because it has signed its key: it gave the certificate for the key
        afterwards, or gave none, and accepted a request with the key before."""
        if SIGNED not in request.text:
            return False
        given = [
            answer.certificate.key for answer in self.certificates if answer.seq > request.seq and answer.certificate
        ]
        if given:
            return request.key in given
        return any(
            earlier.key == request.key and earlier.status == 200 for earlier in self.csrs if earlier.seq < request.seq
        )

    @property
    def polling(self) -> Polling | None:
        """How an agent waits for its certificate; None if it does not wait, or is only started from time to time."""
        return None if self.tool else Polling.of(self.certificates)

    @property
    def outcome(self) -> Outcome:
        """The outcome; the first that fits (documented in docs/json/runs.schema.json)."""
        report = self.reports[-1] if self.reports else None
        body = report.report if report else None
        catalog = self.catalogs[-1] if self.catalogs else None
        cached = body is not None and body.cached
        got_on = (catalog.seq if catalog and catalog.usable else 0) or (report.seq if report and cached else 0)
        taken = report is not None and report.status is not None and 200 <= report.status < 300
        done = report.seq if report and taken and got_on else got_on
        if any(denied.seq > got_on for denied in self.denied) or any(
            handshake.seq > done for handshake in self.handshakes
        ):
            return "refused"
        if (
            (self.csrs or self.certificates)
            and not self.authenticated
            and not self.certificate
            and (self.csrs or self.certificates[-1].certificate is None)
        ):
            return "waiting"
        # A followed redirect may lead to a catalog that was not recorded; then the report says that it was applied.
        applied = body is not None and body.status in ("changed", "unchanged")
        redirected = catalog is not None and catalog.status is not None and is_redirect(catalog.status)
        if catalog and not catalog.usable and not cached and not (redirected and applied):
            return "failed"
        if body and body.status == "failed":
            return "failed"
        if taken:
            return "complete"
        command = self.command
        return self._answer if command and command.certain else "unfinished"

    @property
    def _answer(self) -> Outcome:
        """The outcome of a command: how the master answered its latest request."""
        status = next((leg.status for leg in reversed(self.legs.values())), None)
        if status is None:
            return "unfinished"
        return "complete" if status < 400 else "refused" if status in (401, 403) else "failed"

    @property
    def activity(self) -> Activity:
        """What the agent does after the latest record, as far as the run goes on."""
        last = self.seqs[-1] if self.seqs else 0
        if self.handshakes and self.handshakes[-1].seq == last:
            return "refused"
        if self.delayed and self.delayed[-1].seq == last:
            return "retry"
        if self.bootstrapping:
            if self.certificate or not (self.csrs or self.cas or self.crls):
                return "other"
            return "certificate" if self.csrs else "key"
        if self.phase in (Phase.CATALOG, Phase.FILES):
            latest = self.catalogs[-1] if self.catalogs else None
            # With a reason beside it, the answer did not reach the agent.
            return "applying" if latest is None or (latest.usable and not latest.text) else "uncompiled"
        return "facts" if self.phase in (Phase.CERTIFICATES, Phase.NODE, Phase.PLUGINS) else "other"

    def snapshot(self) -> RunSnapshot:
        """Return the current facts of the run: its attributes by name, and copies of those that change later."""
        command = self.command
        facts: dict[str, Any] = {name: getattr(self, name) for name in _FACTS}
        return RunSnapshot(
            **facts
            | {
                "tool": self.tool or (command.name if command and command.certain else None),
                "spans": tuple(Span(span.phase, span.exchanges, span.duration) for span in self.spans.values()),
                "legs": tuple(islice(reversed(self.legs), LEGS))[::-1],
                "statuses": dict(self.statuses),
                "waits": dict(self.waits),
                "clocks": dict(self.clocks),
                "findings": tuple(self.findings),
                "injected": tuple(islice(self.injected, RETAINED)),
            }
        )

    # -- adding steps -----------------------------------------------------------------------------

    def add(self, placed: Placed) -> None:
        """Add a step to this run."""
        record, phase = placed.record, placed.phase
        time, ended = record.time, record.ended
        if not self.seqs:
            self.started, self.ended = time, ended
        self.seqs.append(record.seq)
        span = self.spans.get(phase)
        if span is None:
            span = self.spans[phase] = PhaseSpan(phase)
        span.exchanges += 1
        self._add_wait(record, phase)
        if placed.leg_id:
            self._use(placed.leg_id, record, phase)
        self.tool, self.stranger = placed.tool, placed.stranger
        self.single = self.single or placed.single
        began = self.ended if phase is self.phase and span.exchanges > 1 else time
        span.duration += max(0.0, ended - began)
        self.started = min(self.started, time)
        self.latest = max(self.latest, time)
        before, self.ended = self.ended, max(self.ended, ended)
        if phase is not Phase.OTHER:
            self.phase = phase
        self.certname = self.certname or placed.certname
        self.key = placed.key or self.key
        if not isinstance(record, Gap) and record.injected:
            self._note_injected({record.seq: record.injected})
        for leg in record.legs:
            if leg.node:
                self.own_proxy = True
        if isinstance(record, Handshake):
            self.handshakes.append(record)
            if record.leg.tunnelled:
                self.server = self.server or record.leg.sni
            if (ahead := record.master_ahead) is not None:
                self._read_clock("master", clocks.Offset(ahead - 1, ahead + 1))
        elif isinstance(record, Exchange):
            self.kinds.add(placed.match.endpoint.kind if placed.match else None)
            self.server = self.server or _server(record)
            if not record.agent.for_one_run:
                self.presented = next(iter(record.agent.own_chain), self.presented)
            if record.master:
                self.certificate_of_master = next(iter(record.master.peer_chain), self.certificate_of_master)
            status = record.response.status if record.response else 0
            self.statuses[status] = self.statuses.get(status, 0) + 1
            self.sent += record.request.size
            self.received += record.response.size if record.response else 0
            if placed.match:
                self._add_exchange(record, placed.match, placed)
                self._read_clocks(record, placed, before if len(self.seqs) > 1 else None)

    def _note_injected(self, more: dict[int, str]) -> None:
        self.injected = dict(sorted((self.injected | more).items()))
        while len(self.injected) > 2 * RETAINED:
            del self.injected[next(islice(self.injected, RETAINED, None))]

    def _use(self, leg_id: str, record: Record, phase: Phase) -> None:
        use = self.legs.get(leg_id)
        if use is None:
            use = self.legs[leg_id] = LegUse(record.seq, record.time, record.time, phase)
            self.connections += 1
            if len(self.legs) > RETAINED:
                del self.legs[next(iter(self.legs))]
        if isinstance(record, Exchange):
            use.requests += 1
            use.idle, use.ended = max(0.0, record.time - use.ended), max(use.ended, record.ended)
            use.after, use.status = use.status, record.response.status if record.response else None

    def _add_wait(self, record: Record, phase: Phase) -> None:
        pause = record.time - self.ended
        if len(self.seqs) < 2 or pause < PAUSE:
            return
        wait: Wait = "other"
        if self.phase is phase is Phase.CERTIFICATES:
            wait = "certificate"
        elif phase is Phase.CATALOG:
            wait = "facts"
        elif self.phase in (Phase.CATALOG, Phase.FILES) and phase in (Phase.FILES, Phase.REPORT):
            # Without a catalog there is nothing to apply: the agent waits before a retry, or gives up.
            wait = "applying" if not self.catalogs or self.catalogs[-1].usable else "other"
        self.waits[wait] = self.waits.get(wait, 0.0) + pause

    def _read_clocks(self, exchange: Exchange, placed: Placed, before: float | None) -> None:
        request, response = exchange.request, exchange.response
        if response:
            date = clocks.of_date_header(response.header("date"), request.ended, response.started)
            # With a date of its own, a CRL of the future says when its CA's clock was ahead, not that the master's is.
            if date is None and isinstance(placed.response, d.RevocationLists):
                latest = max(crl.last_update for crl in placed.response.crls)
                date = clocks.at_least(latest, response.started)
            self._read_clock("master", date)
        request_document = placed.request
        # Facts are gathered after the previous request.
        if isinstance(request_document, d.CatalogRequest) and isinstance(request_document.facts, d.Facts):
            self._read_clock("agent", clocks.of_timestamp(request_document.facts.timestamp, before, request.started))
        elif isinstance(request_document, d.Report):
            self._read_clock("agent", clocks.at_least(clocks.moment(request_document.time), request.started))

    def _read_clock(self, side: Side, offset: Offset | None) -> None:
        combined = clocks.combined(self.clocks.get(side), offset)
        if combined:
            self.clocks[side] = combined

    def _add_exchange(self, exchange: Exchange, match: Match, placed: Placed) -> None:
        response, endpoint = exchange.response, match.endpoint
        status = response.status if response else None
        self.dialect = self.dialect or match.dialect
        if self.agent_version is None and placed.agent_version:
            self.agent_version, self.agent_version_from = placed.agent_version, placed.agent_version_from
        if response:
            self.answered += 1
            if version := response.header("x-puppet-version"):
                self.master_versions.setdefault(version[:WORD], exchange.seq)
            servers.note(self.answering, exchange, match, placed.response)
            self.ca_service = self.ca_service or ca_service.of(match, response, placed.response)
            if compiler := response.header("x-puppet-compiler-name"):
                self.compilers.setdefault(compiler[:WORD], exchange.seq)
            if endpoint.kind is Kind.SERVER_STATUS and response.status < 300:
                self.chosen = exchange.seq, (exchange.request.header("host") or "")[:WORD]
            if self.unanswered:
                self._note_repeated(exchange)
        else:
            use = self.legs.get(exchange.agent.id)
            idle = use.idle if use and use.requests > 1 else 0.0
            self.unanswered.append(_unanswered(exchange, endpoint, idle))
        self.transaction_uuid = self.transaction_uuid or placed.transaction_uuid
        if match.environment and endpoint.area != "ca":
            self.environment = match.environment
            self.environment_asked = self.environment_asked or match.environment
        if exchange.agent.peer_chain:
            self.authenticated = self.authenticated or exchange.seq
        elif endpoint.phase is not Phase.OTHER:
            self.anonymous.append(_request(exchange, endpoint))
        if status is not None and status >= 400 and endpoint.kind in FILE_REQUESTS:
            self.files.refuse(status, match, placed.response, exchange.seq)
        if status in (401, 403) and exchange.agent.peer_chain:
            self.forbidden.setdefault(endpoint.name, endpoint)
        if endpoint.needed and status in (401, 403):
            self.denied.append(_request(exchange, endpoint))
        if status == 503:
            self.delayed.append(_request(exchange, endpoint))
        if match.environment and self.catalogs and endpoint.phase is Phase.FILES:
            self.file_environments.setdefault(match.environment[:WORD], exchange.seq)
        if add := _BY_KIND.get(endpoint.kind):
            add(self, exchange, match, placed, status)

    def _note_repeated(self, exchange: Exchange) -> None:
        target = _sent_to(exchange)
        self.unanswered[:] = [failed for failed in self.unanswered if failed.target != target]

    def _add_ca_bundle(self, exchange: Exchange, match: Match, placed: Placed, status: int | None) -> None:
        answered = placed.response
        bundle = answered.certificates if isinstance(answered, d.Certificates) else None
        self.cas.append(Bundle(exchange.seq, exchange.time, status, bundle, _refreshes(exchange)))

    def _add_crl(self, exchange: Exchange, match: Match, placed: Placed, status: int | None) -> None:
        answered = placed.response
        lists = answered.crls if isinstance(answered, d.RevocationLists) else None
        self.crls.append(Bundle(exchange.seq, exchange.time, status, lists, _refreshes(exchange)))

    def _add_csr(self, exchange: Exchange, match: Match, placed: Placed, status: int | None) -> None:
        request, response = placed.request, placed.response
        read = request if isinstance(request, d.CertificateRequest) else None
        text = response.message if isinstance(response, d.ErrorDocument) else ""
        self.csrs.append(
            CsrSent(
                exchange.seq, exchange.time, read.key if read else None, status, text, read.fingerprint if read else "",
                _requested(read),
            )
        )  # fmt: skip

    def _add_certificate(self, exchange: Exchange, match: Match, placed: Placed, status: int | None) -> None:
        answered = placed.response
        issued = answered.certificates[0] if isinstance(answered, d.Certificates) else None
        self.certificates.append(CertificateAnswer(exchange.seq, exchange.time, status, issued))

    def _add_listing(self, exchange: Exchange, match: Match, placed: Placed, status: int | None) -> None:
        self.listings[listing(match)] = status
        self.files.add(exchange, match, placed.response)

    def _add_file(self, exchange: Exchange, match: Match, placed: Placed, status: int | None) -> None:
        self.files.add(exchange, match, placed.response)

    def _add_catalog(self, exchange: Exchange, match: Match, placed: Placed, status: int | None) -> None:
        request, document, response = placed.request, placed.response, exchange.response
        catalog = document if isinstance(document, d.Catalog) and not document.unreadable else None
        if catalog:
            self.files.add_catalog(exchange.seq, catalog)
        environment = catalog.environment if catalog else None
        # One that was answered and not recorded (puppet_keep_body) is no failure of the master's.
        known = catalog is not None or (response is not None and response.lost > 0)
        # Of one that arrives after its agent has left nothing is applied.
        usable = known and exchange.error is None and status is not None and 200 <= status < 300
        wanted = request.environment if isinstance(request, d.CatalogRequest) else None
        wanted = wanted or match.environment
        text = _reason(exchange, document)
        uuid = placed.transaction_uuid
        waited = max(0.0, (response.started or 0.0) - (exchange.request.ended or exchange.time)) if response else 0.0
        without = isinstance(request, d.CatalogRequest) and request.facts is None
        self.catalogs.append(
            CatalogAnswer(exchange.seq, exchange.time, status, usable, wanted, environment, text, uuid, waited, without)
        )
        self.file_environments = {}
        self.environment = environment or self.environment
        self.listings = {}

    def _add_report(self, exchange: Exchange, match: Match, placed: Placed, status: int | None) -> None:
        document = placed.request
        report = _brief(document) if isinstance(document, d.Report) else None
        if isinstance(document, d.Report):
            self.changed = frozenset(islice((r for r, s in document.resource_statuses.items() if s.changed), FILES))
            self.failed = frozenset(islice((r for r, s in document.resource_statuses.items() if s.failed), FILES))
        self.reports.append(ReportSent(exchange.seq, status, report, exchange.request.size))

    def absorb(self, other: Run) -> None:
        """Merge an earlier stretch that turned out to belong to this run (its certname was unknown)."""
        self.seqs[:] = array("Q", sorted(self.seqs + other.seqs))
        for phase, span in other.spans.items():
            total = self.spans.setdefault(phase, PhaseSpan(phase))
            total.exchanges += span.exchanges
            total.duration += span.duration
        self.kinds |= other.kinds
        self.forbidden = other.forbidden | self.forbidden
        merge(self.cas, other.cas)
        merge(self.crls, other.crls)
        merge(self.csrs, other.csrs)
        merge(self.certificates, other.certificates)
        merge(self.handshakes, other.handshakes)
        merge(self.anonymous, other.anonymous)
        merge(self.denied, other.denied)
        merge(self.unanswered, other.unanswered)
        merge(self.delayed, other.delayed)
        self.findings.extend(other.findings)
        self._note_injected(other.injected)
        if other.authenticated is not None:
            self.authenticated = min(self.authenticated or other.authenticated, other.authenticated)
        for ident, seqs in other.matches.items():
            before = self.matches.get(ident, Bounded())
            self.matches[ident] = Bounded(sorted([*before, *seqs]))
            self.matches[ident].total = before.total + seqs.total
        self.started = min(self.started, other.started)
        self.ended = max(self.ended, other.ended)
        self.latest = max(self.latest, other.latest)
        self.sent, self.received = self.sent + other.sent, self.received + other.received
        self.legs = other.legs | self.legs
        self.connections += other.connections
        self.answered += other.answered
        self.chosen = self.chosen or other.chosen
        for status, number in other.statuses.items():
            self.statuses[status] = self.statuses.get(status, 0) + number
        for wait, pause in other.waits.items():
            self.waits[wait] = self.waits.get(wait, 0.0) + pause
        if self.agent_version is None:
            self.agent_version, self.agent_version_from = other.agent_version, other.agent_version_from
        self.master_versions = other.master_versions | self.master_versions
        self.compilers = other.compilers | self.compilers
        self.answering = servers.merge(self.answering, other.answering)
        self.ca_service = self.ca_service or other.ca_service
        self.dialect = self.dialect or other.dialect
        self.server, self.presented = self.server or other.server, self.presented or other.presented
        self.own_proxy = self.own_proxy or other.own_proxy
        self.certificate_of_master = self.certificate_of_master or other.certificate_of_master
        # Steps that still refer to the other run see the whole run.
        other.certname, other.seqs, other.findings = self.certname, self.seqs, self.findings
        other.number, other.joined = self.number, self


_JUDGED = {column.name for column in columns.of(RunSnapshot) if column.judged}
_FACTS = tuple(name for name in RunSnapshot.__struct_fields__ if name not in _JUDGED)
"""What a snapshot copies by name; what is judged is added by those who judge."""
_BY_KIND: dict[Kind, Callable[[Run, Exchange, Match, Placed, int | None], None]] = {
    Kind.CA_BUNDLE: Run._add_ca_bundle,
    Kind.CRL: Run._add_crl,
    Kind.CSR: Run._add_csr,
    Kind.CERTIFICATE: Run._add_certificate,
    **dict.fromkeys((*kinds.METADATA, *kinds.CONTENT), Run._add_file),
    **dict.fromkeys(kinds.PLUGIN_LISTINGS, Run._add_listing),
    Kind.CATALOG: Run._add_catalog,
    Kind.REPORT: Run._add_report,
}
"""Record the details of an exchange that depend on its kind."""


@lru_cache(maxsize=256)
def _major(version: str | None, dialect: Dialect | None) -> tuple[int, int]:
    parts = (version or "").split(".")
    if len(parts) >= 2 and parts[0].isdecimal() and parts[1].isdecimal():
        return int(parts[0][:9]), int(parts[1][:9])
    return (3, 0) if dialect == "legacy" else (0, 0)


@lru_cache(maxsize=256)
def _generation(major: tuple[int, int]) -> Generation | None:
    if major == (0, 0):
        return None
    if (8, 11) <= major < (9, 0):  # Puppet's own version numbers end at 8.10 (docs/protocol.md#versions-of-openvox)
        return "OpenVox 8"
    bounds: tuple[tuple[tuple[int, int], Generation], ...] = (
        ((3, 0), "2.7"),
        ((4, 0), "3"),
        ((6, 0), "4-5"),
        ((6, 4), "6.0-6.3"),
        ((8, 0), "6.4-7"),
        ((9, 0), "8"),
    )
    return next((name for bound, name in bounds if major < bound), "9")


@dataclass(slots=True)
class Placed:
    """A step as input for the segmenter: its sender and its content."""

    record: Record
    phase: Phase
    match: Match | None = None
    request: d.Document | None = None
    response: d.Document | None = None
    certname: str | None = None
    key: str | None = None
    transaction_uuid: str | None = None
    agent_version: str | None = None
    agent_version_from: VersionSource | None = None
    tool: str | None = None

    leg_id: str | None = None
    address: str | None = None
    """The agent's address; None if only the master's leg is known."""
    authenticated: bool = False
    """The request was made with a client certificate."""
    stranger: bool = False
    """The request needs a client certificate, and the client showed none."""
    single: bool = False
    """The request belongs to no agent's run, though it has an agent's User-Agent (``commands``)."""


def _server(exchange: Exchange) -> str | None:
    host = exchange.request.header("host") or ""
    return (exchange.agent.sni or host.rpartition(":")[0] or host)[:WORD] or None


def _request(exchange: Exchange, endpoint: Endpoint) -> RequestSent:
    response = exchange.response
    status, retry_after = (response.status, response.header("retry-after")) if response else (None, None)
    return RequestSent(exchange.seq, endpoint, status, exchange.time, retry_after)


def _unanswered(exchange: Exchange, endpoint: Endpoint, idle: float) -> Unanswered:
    requested = exchange.request.ended or exchange.time
    waited = max(0.0, (exchange.failed or requested) - requested)
    leg = exchange.master.bare if exchange.master else None
    return Unanswered(exchange.seq, endpoint, _sent_to(exchange), (exchange.error or "")[:WORD], waited, idle, leg)


def _sent_to(exchange: Exchange) -> str:
    request = exchange.request
    return f"{request.method} {request.target.partition('?')[0]}"[:WORD]


def _refreshes(exchange: Exchange) -> bool:
    return exchange.request.header("if-modified-since") is not None


def _brief(report: d.Report) -> d.Report:
    """A report without its large parts: runs stay in memory, and the capture contains the full report."""
    grave = [line for line in report.logs if line.level.lstrip(":") in ("err", "crit", "alert", "emerg")]
    # A resource's own messages explain its failure; earlier ones come from facts and the agent's files.
    grave.sort(key=lambda line: not (line.source or "").startswith("/Stage["))
    return msgspec.structs.replace(report, logs=grave[:1], resource_statuses={}, metrics={})


def _requested(request: d.CertificateRequest | None) -> frozenset[str] | None:
    names = frozenset((*request.alt_names, *request.extensions)) if request else frozenset()
    return names if request and len(names) <= NAMES and max(map(len, names), default=0) <= WORD else None


def _reason(exchange: Exchange, answered: d.Document | None) -> str:
    match answered:
        case d.ErrorDocument():
            return answered.message
        case d.Undecodable():
            return answered.reason
        case d.Catalog():
            return answered.unreadable or exchange.error or ""
    return exchange.error or ""


def listing(match: Match) -> str:
    """The key under which a plugin list is stored within one round."""
    return f"{match.endpoint.name}:{match.key or ''}"
