"""The analyzer: records in, steps out. It matches and decodes each record, places it in a run, and applies the rules.

Live and offline use both call ``Analyzer.feed``, so they always agree. No clock, no I/O. Internal errors (a rule that
raises) are stored as ``Step.trouble`` and never stop the analysis; a record that cannot be analyzed is marked
(``Step.unanalyzed``).
"""

from __future__ import annotations

import dataclasses
import functools
import traceback
from dataclasses import dataclass, field
from pathlib import PurePath
from types import MappingProxyType
from typing import TYPE_CHECKING

from inspector import regex
from inspector.analysis import limits
from inspector.analysis.decoded import DecodedAnswers
from inspector.analysis.verdicts import as_it_ended
from inspector.model import REHEARSAL, TO_PUPPETDB, Exchange, Finding, Handshake, Phase, Severity
from inspector.privacy import redact
from inspector.protocol import documents as d
from inspector.protocol import endpoints, x509
from inspector.protocol.kinds import PUPPETDB, Access, Kind
from inspector.rules import On, in_use, is_own
from inspector.rules.cases import Case, ExchangeCase, HandshakeCase, RunCase
from inspector.runs import commands
from inspector.runs.history import Ledger
from inspector.runs.run import Placed, Run
from inspector.runs.segmenter import OneRun, Segmenter

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from inspector.model import Leg, Place, Record
    from inspector.protocol.endpoints import Match
    from inspector.rules import Ignore, Rule
    from inspector.rules.cases import Statement
    from inspector.runs.snapshot import VersionSource

    type _Questions = tuple[tuple[Rule, Callable[[Case], Iterator[Statement]]], ...]

EVIDENCE = 100
"""Maximum number of records in the evidence of a finding; of more, the first and the last."""
PLACES = 20
"""Maximum number of places of evidence in a finding."""
UNREAD = 2**20
"""Size from which the body of a refused request (401, 403) is not decoded."""
FINDINGS = 20
"""Maximum number of different findings of one rule in a run."""
UNANALYZED = 1000
"""Maximum number of records that were not analyzed of which the reason is kept."""
_USER_AGENT = regex.compile(r"Puppet/([0-9]+(?:\.[0-9]+)+)")


@dataclass(slots=True)
class Step:
    """One record after its analysis."""

    record: Record
    phase: Phase = Phase.OTHER
    match: Match | None = None
    request: d.Document | None = None
    response: d.Document | None = None
    certname: str | None = None
    client: d.Certificate | None = None
    """The certificate that the agent presented."""
    run: Run | None = None
    over: list[Run] = field(default_factory=list)
    """The runs that were found to be over at this record."""
    findings: list[Finding] = field(default_factory=list)
    """The findings of this record; findings about a whole run are with the run."""
    trouble: list[str] = field(default_factory=list)
    """Internal errors during its analysis."""
    unanalyzed: str = ""
    """Why it was not analyzed, or not completely; empty if it was. Such a record still belongs to its run."""

    @property
    def exchange(self) -> Exchange | None:
        return self.record if isinstance(self.record, Exchange) else None


class Analyzer:
    """Analyzes a sequence of records, one at a time."""

    def __init__(
        self, rules: Iterable[Rule] | None = None, ignores: Iterable[Ignore] = (), ledger: Ledger | None = None
    ) -> None:
        """Apply the rules in use, or these, and drop findings covered by ``ignores`` or by those in use. Store history
        in ``ledger``, which the analyzers of several captures may share."""
        if rules is None:
            rules, ignores = in_use().rules, (*in_use().ignores, *ignores)
        chosen = tuple(rules)
        self._ignores = tuple(ignores)
        self._rules = {on: tuple(rule for rule in chosen if rule.on is on) for on in On}
        self.failed: dict[str, str] = {}
        """The rules that failed, and what went wrong the first time."""
        self._chosen: dict[tuple[On, Kind | None, bool, bool, bool, str | None, bool], _Questions] = {}
        self._over: dict[int, Run] = {}
        self._segmenter = Segmenter()
        self._ledger = Ledger() if ledger is None else ledger
        self._answers = DecodedAnswers()
        self.unanalyzed: dict[int, str] = {}
        """The numbers of records that were not analyzed, or not completely, and why."""

    @property
    def runs(self) -> list[Run]:
        """The runs so far, except forgotten ones, in the order in which they began."""
        known = [*self._over.values(), *self._segmenter.open]
        return sorted((run for run in known if run.number is not None), key=lambda run: run.number or 0)

    def forget(self, run: Run) -> None:
        """Remove a run that is over: a proxy that runs for months must not keep all of them in memory."""
        self._over.pop(run.place, None)

    def feed(self, record: Record) -> Step:
        """Analyze the next record. Whatever fails in it, or takes too long, costs only this record."""
        step = Step(record)
        parts = iter((self._read, self._place, self._apply))
        limits.begin(limits.SECONDS)
        unfinished = True
        while unfinished:
            try:
                for part in parts:
                    part(step)
                limits.end()
                unfinished = False
            except limits.TooLong as error:
                self._leave_out(step, str(error))
                limits.begin(limits.REST)
            except Exception as error:  # noqa: BLE001 - a mistake of ours must not stop the analysis
                step.trouble.append(f"the analysis failed: {error!r}")
                self._leave_out(step, f"internal error ({type(error).__name__})")
        return step

    def steps(self, records: Iterable[Record]) -> Iterator[Step]:
        """Analyze records in their order. Runs that are over are forgotten after the step that says so."""
        for record in records:
            step = self.feed(record)
            yield step
            for run in step.over:
                self.forget(run)

    def read(self, record: Record) -> Step:
        """Return the step of a record by itself, as ``outline`` does, but decoded. Within the time limit of whoever
        calls, which begins again after what takes too long to decode."""
        step = Step(record)
        try:
            self._read(step)
        except limits.TooLong as error:
            self._leave_out(step, str(error))
            limits.begin(limits.SECONDS)
        _identified(step)
        return step

    def leave_out(self, record: Record, reason: str) -> Step:
        """Return the step of a record that cannot be analyzed: matched, but not decoded, and in no run."""
        step = Step(record)
        if (exchange := step.exchange) is not None:
            step.match = endpoints.match(exchange.request.method, exchange.request.target)
            if step.match is not None:
                step.phase = step.match.endpoint.phase
                step.request = d.Undecodable(f"not analyzed: {reason}")
                step.response = step.request if exchange.response is not None else None
        self._leave_out(step, reason)
        return step

    def _leave_out(self, step: Step, reason: str) -> None:
        step.unanalyzed = step.unanalyzed or reason
        if len(self.unanalyzed) < UNANALYZED:
            self.unanalyzed.setdefault(step.record.seq, step.unanalyzed)

    def _apply(self, step: Step) -> None:
        """Apply the rules to a record, and to the runs that are over now."""
        record = step.record
        if step.run is None:
            return
        injected = record.seq in step.run.injected
        if injected:
            pass  # nobody else is to blame for it
        elif isinstance(record, Exchange) and record.unread:
            pass  # its rules would find that bodies were not recorded
        elif isinstance(record, Exchange):
            case: Case = ExchangeCase(step.run, self._ledger, step, record)
            step.findings += self._ask(On.EXCHANGE, case, step.trouble, functools.partial(_secrets, step, record))
        elif isinstance(record, Handshake) and not step.run.injected:
            case = HandshakeCase(step.run, self._ledger, step, record)
            step.findings += self._ask(On.HANDSHAKE, case, step.trouble)
        if not injected:
            self._ledger.remember(step.run, step)
        while self._segmenter.over:
            over = self._segmenter.over.pop(0)
            self._end(over, step.trouble)
            step.over.append(over)

    def end(self) -> list[Run]:
        """Apply the rules to the runs that the end of the records cuts off; return these, and calls of tools."""
        ended = sorted(self._segmenter.open, key=lambda run: run.ended)
        for run in ended:
            run.closed = run.cut = True
            with limits.limited():
                self._end(run, [])
        self._segmenter.open.clear()
        return ended

    def finish(self) -> list[Run]:
        """Apply the rules to the runs that are still open; return all runs that were not forgotten."""
        self.end()
        return self.runs

    def judge(self, run: Run, trouble: list[str] | None = None) -> list[Finding]:
        """The current findings of the rules for whole runs, for a run that is still open. Internal errors are added
        to ``trouble``."""
        findings: list[Finding] = []
        with limits.limited():
            findings += self._judge(run, [] if trouble is None else trouble, keep=False)
        return findings

    def _end(self, run: Run, trouble: list[str]) -> None:
        if run.number is not None:
            self._over[run.place] = run
            self._judge(run, trouble, keep=True)
            run.findings[:] = [as_it_ended(found, run) for found in run.findings]
            if self._ignores:  # not earlier: an agent's first requests contain no certname
                reported = [finding for finding in run.findings if not self._ignored(finding, run)]
                run.ignored += len(run.findings) - len(reported)
                run.findings[:] = reported
            if not run.injected:
                self._ledger.fleet.remember(run)

    def _judge(self, run: Run, trouble: list[str], *, keep: bool) -> list[Finding]:
        return list(self._ask(On.RUN_END, RunCase(run, self._ledger), trouble, keep=keep))

    def _ignored(self, finding: Finding, run: Run) -> bool:
        return any(ignore.covers(finding.rule, run) for ignore in self._ignores)

    # -- decoding -------------------------------------------------------------------------------------

    def _read(self, step: Step) -> None:
        """Match and decode an exchange."""
        match, exchange = _matched(step), step.exchange
        if exchange is None:
            return
        if exchange.unread:
            self._leave_out(step, exchange.unread)
        if match is None:
            return
        # Any client can send requests that the master refuses: decode only as much as is cheap.
        if (
            exchange.response is None
            or exchange.response.status not in (401, 403)
            or len(exchange.request.body) < UNREAD
        ):
            step.request = self._decode(step, match.endpoint.request, exchange.request)
        else:
            step.request = d.Undecodable("not decoded: the master refused it without reading it")
        if exchange.response is not None:
            step.response = self._decode(step, self._answers.of, match.endpoint, exchange.request, exchange.response)

    def _decode[*Given](self, step: Step, decoder: Callable[[*Given], d.Document], *given: *Given) -> d.Document:
        try:
            return decoder(*given)
        except Exception as error:  # noqa: BLE001 - an error of the inspector must never stop an agent's run
            step.trouble.append(f"decoding failed: {error!r}")
            self._leave_out(step, f"decoding failed ({type(error).__name__})")
            return d.Undecodable(f"puppet-inspector could not decode it: {error!r}")

    def _place(self, step: Step) -> None:
        record, match, placed = step.record, step.match, _identified(step)
        if isinstance(step.request, d.CertificateRequest) and match and match.endpoint.kind is Kind.CSR:
            placed.key = placed.key or step.request.key
        if isinstance(record, Exchange):
            placed.agent_version, placed.agent_version_from = agent_version(record, step.request)
            placed.transaction_uuid = endpoints.transaction_uuid(match, step.request)
            # Of a request that was answered, or given up, before its body had come, nothing is known.
            if match is not None and placed.tool is None and (record.error is None or record.request.ended):
                placed.single = commands.without_run(match, step.request, placed.transaction_uuid)
        step.run = self._segmenter.place(placed)

    def _questions(self, on: On, case: Case) -> _Questions:
        # Everything that ``Rule.applies`` reads.
        about = (
            (case.kind, case.refused, case.opening, case.broken)
            if isinstance(case, ExchangeCase)
            else (None, False, False, False)
        )
        key = on, *about, case.run.generation, case.run.tool is None
        questions = self._chosen.get(key)
        if questions is None:
            applied = (rule for rule in self._rules[on] if rule.applies(case))
            questions = self._chosen[key] = tuple((rule, rule.question) for rule in applied)
        return questions

    # -- rules ----------------------------------------------------------------------------------------

    def _ask(
        self,
        on: On,
        case: Case,
        trouble: list[str],
        secrets: Callable[[], frozenset[str]] = frozenset,
        *,
        keep: bool = True,
    ) -> Iterator[Finding]:
        """Apply the rules to a case; ``secrets`` returns what no finding may quote."""
        run = case.run
        quoted: frozenset[str] | None = None
        for rule, question in self._questions(on, case):
            try:
                for statement in question(case):
                    finding = rule.finding(statement, case)
                    if run.injected:
                        if not run.injected.keys().isdisjoint(finding.seqs):
                            continue
                        finding = _after_injection(finding, run)
                    if not _made_before(run, finding):
                        # Only now: it takes as long as everything else.
                        quoted = secrets() if quoted is None else quoted
                        finding = _redacted(finding, quoted)
                    if self._ignores and run.certname and self._ignored(finding, run):
                        run.ignored += keep
                        continue
                    yield _keep(run, finding) if keep else finding
            except limits.TooLong:
                if is_own(rule.id):  # it would take as long for every record
                    self._drop(rule)
                raise
            except Exception as error:  # noqa: BLE001 - a broken rule must not stop anything
                if rule.id not in self.failed:
                    self.failed[rule.id] = f"rule {rule.id} failed{_where(error)}: {error!r}"
                    trouble.append(self.failed[rule.id])

    def _drop(self, rule: Rule) -> None:
        """Apply a rule no more."""
        self.failed[rule.id] = f"rule {rule.id} is not applied any more: it took more than {limits.SECONDS:g} s"
        self._rules[rule.on] = tuple(other for other in self._rules[rule.on] if other is not rule)
        self._chosen.clear()


def _after_injection(finding: Finding, run: Run) -> Finding:
    """Return a finding in a run with injected faults: after the first of these it may follow from it."""
    if finding.severity is Severity.NOTICE or (finding.seqs and finding.seqs[-1] < next(iter(run.injected))):
        return finding
    message = f"{finding.message} (after a fault that was injected on purpose)"
    return dataclasses.replace(finding, severity=Severity.NOTICE, message=message)


def _where(error: Exception) -> str:
    """Return the file and the line in which an error happened."""
    frames = traceback.extract_tb(error.__traceback__)
    return f" ({PurePath(frames[-1].filename).name}, line {frames[-1].lineno})" if frames else ""


def _made_before(run: Run, finding: Finding) -> bool:
    """Whether a run has this very finding, of another record: then its text quoted no secret, or is known already."""
    return any(
        known.rule == finding.rule and known.message == finding.message and set(finding.places) <= set(known.places)
        for known in run.findings
    )


def _redacted(finding: Finding, secrets: frozenset[str]) -> Finding:
    places = tuple(_without(place, secrets) for place in finding.places)
    return dataclasses.replace(finding, message=redact.quoted(finding.message, secrets), places=places)


def _without(place: Place, secrets: frozenset[str]) -> Place:
    # Text that is masked in a record cannot be found there either.
    texts = [text for text in (place.needle, place.fallback) if redact.quoted(text, secrets) == text]
    return dataclasses.replace(place, needle=next(iter(texts), ""), fallback=texts[1] if len(texts) > 1 else "")


def _secrets(step: Step, exchange: Exchange) -> frozenset[str]:
    """The parts of an exchange that no message may quote."""
    # Bodies that were not decoded are not quoted.
    read = step.request is not None or len(exchange.request.body) < UNREAD
    return redact.quotable(exchange, request=read and not isinstance(step.request, d.Undecodable))


def merged(findings: Iterable[Finding], more: Iterable[Finding]) -> list[Finding]:
    """Add new findings to a list; identical findings are listed once."""
    known = list(findings)
    known_messages = {(finding.rule, finding.message) for finding in known}
    return known + [finding for finding in more if (finding.rule, finding.message) not in known_messages]


def _keep(run: Run, finding: Finding) -> Finding:
    """Add a finding to its run; a repeated one only adds its evidence."""
    alike = 0
    for place, known in enumerate(run.findings):
        if known.rule != finding.rule:
            continue
        alike += 1
        if known.message == finding.message:
            seqs = tuple(sorted({*known.seqs, *finding.seqs}))
            if len(seqs) > EVIDENCE:  # the first and the last are the best evidence
                seqs = (*seqs[: EVIDENCE // 2], *seqs[-EVIDENCE // 2 :])
            places = tuple(dict.fromkeys((*known.places, *finding.places)))[:PLACES]
            follows = tuple(sorted({*known.follows, *finding.follows})) if known.follows and finding.follows else ()
            run.findings[place] = dataclasses.replace(known, seqs=seqs, places=places, follows=follows)
            return run.findings[place]
    if alike >= FINDINGS:
        run.beyond[finding.rule] = run.beyond.get(finding.rule, 0) + 1
    else:
        run.findings.append(finding)
    return finding


def outline(record: Record) -> Step:
    """Return the step of a record by itself: matched, with its phase and certname, but not decoded, and in no run."""
    step = Step(record)
    _matched(step)
    if step.exchange is not None:
        step.unanalyzed = step.exchange.unread
    _identified(step)
    return step


def retrace(records: Iterable[Record], left_out: Mapping[int, str] = MappingProxyType({})) -> Iterator[Step]:
    """The steps of records that are known to belong to one run; no rule is applied.

    All steps have the same ``run``, which grows with each of them: it contains the records up to that step.
    ``left_out`` are the numbers of records that cannot be analyzed, and why.
    """
    analyzer = Analyzer(rules=())
    analyzer._segmenter = OneRun()
    for record in records:
        reason = left_out.get(record.seq)
        yield analyzer.feed(record) if reason is None else analyzer.leave_out(record, reason)


def masked(step: Step) -> Step:
    """Return a step without the secrets of its record."""
    record = redact.redacted(step.record)
    if record is step.record:
        return step
    (again,) = retrace([record])
    return dataclasses.replace(step, record=record, match=again.match, request=again.request, response=again.response)


def _matched(step: Step) -> Match | None:
    """Match an exchange with an endpoint."""
    if (exchange := step.exchange) is not None:
        step.match = endpoints.match(exchange.request.method, exchange.request.target)
        if step.match is not None:
            step.phase = step.match.endpoint.phase
    return step.match


def _identified(step: Step) -> Placed:
    """Find out whose record it is: its phase, its certname, its client. Return what places it in a run."""
    record, match = step.record, step.match
    chain: tuple[bytes, ...] = ()
    leg: Leg | None = None
    if isinstance(record, Exchange):
        leg, chain = record.agent, record.agent.peer_chain
    elif isinstance(record, Handshake):
        # On the master's leg the agent is the owner of the certificate that the proxy presented.
        leg = record.leg
        chain = leg.peer_chain if leg.side == "agent" else leg.own_chain
        step.phase = Phase.CERTIFICATES
    peer = _leaf(chain)
    step.client = peer
    stranger = not chain and isinstance(record, Exchange) and _shows_none(record, match)
    step.certname = peer.common_name if peer else None
    if step.certname is None and not stranger:
        step.certname = match.certname if match else None
    tool = _tool(record, match) if isinstance(record, Exchange) else None
    if tool is not None and not chain:
        step.certname = None  # what a client without a certificate asks for says nothing of the client
    elif leg is not None and not stranger:
        step.certname = step.certname or leg.node
    rehearsed = leg.rehearsed if leg else None
    if rehearsed is not None:
        step.certname = rehearsed
        step.phase = Phase.CATALOG if step.phase is Phase.OTHER else step.phase  # v4 is no endpoint of agents
    exchanged = isinstance(record, Exchange)
    return Placed(
        record,
        step.phase,
        match,
        step.request,
        step.response,
        certname=step.certname,
        key=peer.key if peer else None,
        leg_id=leg.id if leg else None,
        address=leg.address if leg and leg.side == "agent" else None,
        authenticated=bool(chain) and exchanged,
        stranger=stranger,
        tool=REHEARSAL if exchanged and rehearsed is not None else tool,
    )


def _leaf(chain: tuple[bytes, ...]) -> d.Certificate | None:
    if not chain:
        return None
    try:
        return x509.read_der(chain[0])
    except x509.Malformed:
        return None


def agent_version(exchange: Exchange, request: d.Document | None) -> tuple[str | None, VersionSource | None]:
    """The agent's version and its source: header (4.0 and later) or user agent; for older agents their facts and
    reports."""
    if version := exchange.request.header("x-puppet-version"):
        return version, "header"
    if found := _USER_AGENT.search(exchange.request.header("user-agent") or ""):
        return found[1], "user agent"
    if isinstance(request, d.CatalogRequest) and isinstance(request.facts, d.Facts):
        return request.facts.puppet_version, "facts"
    return (request.puppet_version, "report") if isinstance(request, d.Report) else (None, None)


def _shows_none(exchange: Exchange, match: Match | None) -> bool:
    """Whether a request that needs a certificate came from a client that showed none.

    The proxy asks everybody for one, and records the identity that it used. Where somebody else recorded, perhaps
    nobody asked: then nothing is known.
    """
    return exchange.identity is not None and (match is None or match.endpoint.access is not Access.ANYBODY)


def _tool(exchange: Exchange, match: Match | None) -> str | None:
    """The client's name, if it is not an agent (R22). Agents send X-Puppet-Version or call themselves Puppet; up to
    5.5 they are Ruby's own client, in 4 and 5 for their file downloads only."""
    name = exchange.request.header("user-agent") or ""
    if match is not None and match.endpoint.kind in PUPPETDB and name.startswith("Puppet/"):
        return TO_PUPPETDB
    if match is None or exchange.request.header("x-puppet-version") or name.startswith(("Puppet/", "Ruby")):
        return None
    return name.partition(" ")[0] or None
