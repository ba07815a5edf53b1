"""A record and a run in brief: the data of lines, tables, filters and timelines, without bodies.

``brief_of`` summarises an analyzed step, ``conclusions`` a run. The derived index stores these summaries, so a list of
a hundred thousand exchanges needs neither bodies nor the analysis.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Literal

import msgspec

from inspector.analysis.verdicts import Certainty
from inspector.columns import about
from inspector.model import Exchange, Handshake, Phase, Severity
from inspector.protocol import documents as d
from inspector.protocol.certificates import REQUESTED, SIGNED
from inspector.protocol.endpoints import KINDS
from inspector.protocol.kinds import Kind
from inspector.rules import rule_of
from inspector.rules.fixes import Fix, advice, plain, proved
from inspector.rules.puppet_commands import UNKNOWN, FixContext, fill
from inspector.rules.trust import leaf
from inspector.runs.snapshot import RunSnapshot, RunState
from inspector.text import stamp

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping, Sequence

    from inspector.analysis.analyzer import Step
    from inspector.model import Finding
    from inspector.runs.run import Run
    from inspector.runs.snapshot import Outcome

REASON = 400
"""Maximum length of a run's reason: masters and agents send whole backtraces."""

type RecordKind = Literal["exchange", "handshake", "gap"]
type Party = Literal["agent", "proxy", "master"]
type RunLike = Run | RunSnapshot
"""A run while it is analyzed, or its facts."""

_PAST = {"has no certificate yet": "had no certificate", "is waiting to be signed": "was waiting to be signed"}
"""What a verdict says in the present, and of what is over."""
SETTLED = (advice("nothing to do: the request was signed"),)
_POLLED = (REQUESTED, SIGNED)


class Sign(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A finding for which a record is evidence."""

    rule: str
    severity: Severity


class Times(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The times of an exchange, in seconds since the epoch; None means not known."""

    agent_connected: float | None = None
    agent_secured: float | None = None
    request_began: float | None = None
    request_ended: float | None = None
    master_connecting: float | None = None
    master_connected: float | None = None
    master_secured: float | None = None
    response_began: float | None = None
    response_ended: float | None = None


class Brief(msgspec.Struct, array_like=True, gc=False, kw_only=True):
    """A record without its bodies, headers and certificates."""

    seq: int
    kind: RecordKind
    time: float
    """When it began."""
    ended: float
    phase: Phase
    certname: str | None = None
    """The certname in its certificate, or else in its URL."""
    address: str | None = None
    """The agent's address; None if only the master's leg is known."""
    endpoint: str | None = None
    environment: str | None = None
    """The certname in its URL."""
    method: str = ""
    target: str = ""
    status: int | None = None
    """None: there was no response, or it is not an exchange."""
    sent: int = 0
    """Bytes of body that went to the master."""
    received: int = 0
    """Bytes of body that came back."""
    reason: str = ""
    """Why there was no response, why the handshake failed, or what the gap is about."""
    lost: int = 0
    """Number of records lost in a gap."""
    alert: str | None = None
    alert_by: Party | None = None
    authenticated: bool = False
    """The agent presented a certificate."""
    identity: str | None = None
    """The identity used towards the master; None: none."""
    identity_missing: str | None = None
    """Why no identity was used though the agent has a certificate."""
    withheld: str = ""
    """Why the proxy answered itself and did not ask the master, if it was no injected fault; empty: it did not."""
    stripped: tuple[str, ...] = ()
    leg: str | None = None
    """The agent's connection, also for a handshake that failed on the master's side."""
    master: str | None = None
    """The connection to the master."""
    unanalyzed: str = ""
    """Why it was not analyzed, or not completely; empty if it was."""
    place: int = 0
    """The place of its run (``Run.place``), or of one that became part of its run; 0: it is in no run."""
    times: Times = Times()
    signs: tuple[Sign, ...] = ()
    """The findings for which it is evidence, the worst first."""
    presented: str | None = None
    """The name in the certificate that was presented to the agent as the master's; None: it is not known."""
    master_presented: str | None = None
    """The name in the certificate that the master presented."""
    imported: bool = False
    """Somebody else recorded it, who perhaps asked nobody for a certificate: whether the agent has one is not known."""
    injected: str = ""
    """The fault that the proxy injected on purpose; empty: none."""
    expected: bool = False
    """The answer reports an error that healthy runs have, too: that something is not there, or not yet."""

    @property
    def request_kind(self) -> Kind | None:
        """The kind of request; None if it is not a request of Puppet's."""
        return KINDS.get(self.endpoint) if self.endpoint else None

    @property
    def failed(self) -> bool:
        """Whether it failed: a handshake, a gap, no answer, or one that reports an error, unless that is expected and
        no finding says otherwise."""
        if self.status is None:
            return True
        if self.expected:
            return any(sign.severity is Severity.ERROR for sign in self.signs)
        return self.status >= 400

    @property
    def duration(self) -> float:
        """Seconds from its first byte to its last."""
        return max(0.0, self.ended - self.time)


class Conclusion(msgspec.Struct, frozen=True, kw_only=True):
    """A run's verdict in words."""

    lead: str
    """The agent, and how its run ended."""
    reason: str
    """Why, in a sentence: without the node's name, its outcome and the time."""
    cause: str | None = None
    """The rule that explains it; None if none does."""
    severity: Severity | None = None
    """Of the cause."""
    symptoms: tuple[str, ...] = ()
    """Rules whose findings are consequences of the cause."""
    besides: tuple[str, ...] = ()
    """Rules of further errors, which do not follow from the cause."""
    certainty: Certainty
    since: float
    """When the cause was first seen."""
    evidence: int | None = None
    """The number of another run that shows the cause; None: this one."""
    is_over: bool = False
    """The run went well nevertheless."""
    advice: Fix = ()
    """What to do if there is no cause, with placeholders."""
    over_since: str = ""
    """The run that the node completed since, in words, if what went wrong is over. Set by ``judgement.judge``."""

    def tensed(self, text: str) -> str:
        """Return the lead or the reason in the tense in which it holds."""
        for now, then in _PAST.items() if self.over_since else ():
            text = text.replace(now, then)
        return text

    @property
    def message(self) -> str:
        """What happened, why and since when."""
        when = f", {'at' if self.is_over or self.over_since else 'since'} {stamp(self.since)}"
        lead, reason = self.tensed(self.lead), self.tensed(self.reason)
        # What is quoted may end as a sentence does.
        reason = reason if reason.endswith("..") else reason.removesuffix(".")
        also = f"; not from it: {', '.join(self.besides)}" if self.besides else ""
        if self.cause is None:
            unseen = "; the cause is not visible in the traffic" if self.certainty == "not visible" else ""
            return f"{lead}: {reason}{when}{unseen}{also}"
        how = {"certain": "", "likely": " (likely)", "not visible": ""}[self.certainty]
        if self.evidence is not None:
            how = f" (likely: run {self.evidence} shows it)"
        follow = "follows" if len(self.symptoms) == 1 else "follow"
        also = (f"; {', '.join(self.symptoms)} {follow} from it" if self.symptoms else "") + also
        return f"{lead}: {self.cause} {reason}{how}{when}{also}"


class RunBrief(RunSnapshot, frozen=True, kw_only=True):
    """The facts of a run, its verdict, and what its fixes need."""

    number: int
    """0 for one that is not part of a run, such as the calls of a tool; negative for one of the newest while it is not
    known how many runs came before it (``indexer``)."""
    state: Annotated[
        RunState,
        about(
            "open: it is under way; cut off: it was when the recording ended. Until a run is over, its outcome is only "
            "what it would be if it ended now.",
            judged=True,
        ),
    ] = RunState.OVER
    """Set by ``judgement.judge``."""
    verdict: Conclusion | None = None
    """None if there is nothing to report, or while nothing can be said yet."""
    why: Annotated[str | None, about("Why the run failed, in one sentence; null if it succeeded without an error.")] = (
        None
    )
    ignored: int = 0
    """How many findings were dropped because of a site's rules.yaml."""
    command: str | None = None
    """The ``puppet`` command other than the agent whose requests these are, certainly (then also in ``tool``) or
    likely."""
    unheard: bool = False
    """It ended before the master answered anything, or in its bootstrap."""
    fix_context: FixContext = UNKNOWN
    special_fixes: dict[str, Fix] = {}  # noqa: RUF012 - msgspec copies it
    """The fixes, with placeholders, of the rules that have another one for this run than usually."""
    meanings: dict[str, str] = {}  # noqa: RUF012 - msgspec copies it
    """What the printed message behind a rule's finding means, by rule, where it is known."""
    settled: tuple[str, ...] = ()
    """Rules with nothing left to do: what kept the request from being signed did not."""

    @property
    def result(self) -> Outcome:
        """How it ended, or would have so far, in the word that every list, page and screen has for it: its outcome, but
        who will not get a certificate, whatever is signed, does not wait for one."""
        error = self.verdict is not None and self.verdict.severity is Severity.ERROR
        return "failed" if self.outcome == "waiting" and error else self.outcome

    @property
    def ending(self) -> str:
        """Its result; or that it is open, or was cut off."""
        return str(self.result if self.state is RunState.OVER or self.verdict else self.state)

    @property
    def well(self) -> bool:
        """Whether nothing speaks against it: it was complete, or says nothing yet."""
        return self.outcome == "complete" or (self.state is not RunState.OVER and self.verdict is None)

    @property
    def label(self) -> str:
        """Its number, as far as it is known."""
        return str(self.number) if self.number >= 0 else "…"

    def fix_for(self, ident: str) -> Fix:
        """How to fix what a rule found in this run."""
        if ident in self.settled:
            return SETTLED
        special = self.special_fixes.get(ident)
        return _filled(special or rule_of(ident).fix, self.fix_context)

    def explanation_of(self, ident: str) -> str:
        """What a rule's finding means in this run: by the printed message behind it, if that is known."""
        return self.meanings.get(ident) or rule_of(ident).explanation

    @property
    def meaning(self) -> str | None:
        """What the printed message behind its cause means; None if that is not known."""
        return self.meanings.get(self.cause or "")

    @property
    def steps(self) -> Fix:
        """How to fix its cause; empty if there is nothing to report."""
        verdict = self.verdict
        if verdict is None:
            return ()
        if verdict.cause is None:
            return fill(verdict.advice, self.fix_context)
        steps = self.fix_for(verdict.cause)
        return steps if verdict.severity is Severity.NOTICE else proved(steps)

    @property
    def fix(self) -> str:
        """How to fix its cause, as one line of text."""
        return plain(self.steps)

    @property
    def proved(self) -> bool:
        """Whether what is found in it explains how it ended: nothing that comes later would change that."""
        return self.outcome == "complete" or bool(self.verdict and self.verdict.severity is Severity.ERROR)

    def over_since(self, rule: str | None = None) -> str:
        """Return which run its node completed since, in words, if what went wrong is over; else nothing. Of a
        ``rule``, if it is the cause or follows from it."""
        over = rule is None or rule in (self.cause, *self.symptoms)
        return self.verdict.over_since if self.verdict and over else ""

    @property
    def cause_found(self) -> Finding | None:
        """The finding that is its cause."""
        return next((finding for finding in self.findings if finding.rule == self.cause), None)

    @property
    def cause(self) -> str | None:
        """The rule in the verdict; None if the cause is not visible in the traffic."""
        return self.verdict.cause if self.verdict else None

    @property
    def symptoms(self) -> tuple[str, ...]:
        """Rules whose findings are consequences of the cause."""
        return self.verdict.symptoms if self.verdict else ()

    @property
    def ordered(self) -> list[Finding]:
        """Its findings: the cause first, consequences after other findings of the same severity."""

        def order(finding: Finding) -> tuple[bool, int, bool]:
            return finding.rule != self.cause, -finding.severity.rank, finding.rule in self.symptoms

        return sorted(self.findings, key=order)


@lru_cache(maxsize=4096)
def _filled(fix: Fix, context: FixContext) -> Fix:
    """Return a fix with its commands filled in; the result is cached, as it is the same for all runs of an agent."""
    return fill(fix, context)


def brief_of(step: Step, signs: Iterable[Finding] | None = None) -> Brief:
    """A step in brief; ``signs`` are the findings for which it is evidence (default: those made at this step)."""
    record = step.record
    signed = signs_of(step.findings if signs is None else signs)
    if isinstance(record, Exchange):
        return _exchange(step, record, signed)
    if isinstance(record, Handshake):
        leg = record.leg
        return Brief(
            seq=record.seq,
            kind="handshake",
            time=record.time,
            ended=record.ended,
            phase=step.phase,
            certname=step.certname,
            address=leg.address if leg.side == "agent" else None,
            reason=record.reason,
            alert=record.alert,
            alert_by=record.alert_by,
            unanalyzed=step.unanalyzed,
            place=step.run.place if step.run else 0,
            authenticated=leg.side == "agent" and bool(leg.peer_chain),
            leg=leg.id,
            times=Times(agent_connected=leg.connected)
            if leg.side == "agent"
            else Times(master_connected=leg.connected),
            signs=signed,
            injected=record.injected,
        )
    return Brief(
        seq=record.seq,
        kind="gap",
        time=record.time,
        ended=record.ended,
        phase=step.phase,
        reason=record.reason,
        lost=record.lost,
        unanalyzed=step.unanalyzed,
        signs=signed,
    )


def shown_by(seq: int, run: RunLike | None) -> list[Finding]:
    """Return the findings of a run for which a record is evidence."""
    return [finding for finding in run.findings if seq in finding.seqs] if run else []


def normal(step: Step, run: RunLike | None, accepted: Container[str]) -> bool:
    """Whether the CA refused a signing request only because it has signed its key since. ``accepted`` are the keys of
    earlier requests of the run that it accepted; an agent whose run completed has the certificate."""
    request, answer = step.request, step.response
    if run is None or not isinstance(request, d.CertificateRequest) or not isinstance(answer, d.ErrorDocument):
        return False
    own = request.key in accepted or run.outcome == "complete"
    wrong = any(finding.severity is Severity.ERROR for finding in shown_by(step.record.seq, run))
    return SIGNED in answer.message and own and not wrong


def marked(finding: Finding, number: int | None, owners: Mapping[int, RunLike]) -> list[int]:
    """Return the records that a finding of a run marks in lists of all records: its evidence, without that in other
    runs that went well, where it would look like a fault. ``owners`` are the runs by record number."""
    return [
        seq
        for seq in finding.seqs
        if (owner := owners.get(seq)) is None or owner.number == number or owner.outcome != "complete"
    ]


def signs_of(findings: Iterable[Finding]) -> tuple[Sign, ...]:
    """The findings for which a record is evidence, in brief."""
    worst = sorted(findings, key=lambda finding: -finding.severity.rank)
    if not worst:
        return ()  # as for nearly all
    return tuple(dict.fromkeys(Sign(finding.rule, finding.severity) for finding in worst))


def _name(chain: Sequence[bytes]) -> str | None:
    """The name in the first certificate of a chain."""
    certificate = leaf(chain)
    return (certificate.common_name or certificate.subject) if certificate else None


def _exchange(step: Step, exchange: Exchange, signs: tuple[Sign, ...]) -> Brief:
    request, response, match = exchange.request, exchange.response, step.match
    agent, master, identity = exchange.agent, exchange.master, exchange.identity
    return Brief(
        seq=exchange.seq,
        kind="exchange",
        time=exchange.time,
        ended=exchange.ended,
        phase=step.phase,
        certname=step.certname,
        address=agent.address,
        endpoint=match.endpoint.name if match else None,
        environment=match.environment if match else None,
        method=request.method,
        target=request.target,
        status=response.status if response else None,
        sent=request.size,
        received=response.size if response else 0,
        reason=exchange.error or "",
        unanalyzed=step.unanalyzed,
        place=step.run.place if step.run else 0,
        authenticated=bool(agent.peer_chain),
        imported=exchange.identity is None,
        injected=exchange.injected,
        identity=identity.certname if identity else None,
        identity_missing=identity.reason if identity and not exchange.withheld else None,
        withheld=exchange.withheld,
        stripped=exchange.stripped,
        leg=agent.id,
        master=master.id if master else None,
        presented=_name(agent.own_chain),
        master_presented=_name(master.peer_chain) if master else None,
        times=Times(
            agent.connected,
            agent.secured,
            request.started,
            request.ended,
            master.connecting if master else None,
            master.connected if master else None,
            master.secured if master else None,
            response.started if response else None,
            response.ended if response else None,
        ),
        signs=signs,
        expected=_is_expected(step, exchange),
    )


def _is_expected(step: Step, exchange: Exchange) -> bool:
    """Whether an answer that reports an error belongs to healthy runs, too."""
    if step.match is None or exchange.response is None:
        return False
    endpoint, answer = step.match.endpoint, step.response
    refused = answer if isinstance(answer, d.ErrorDocument) else None
    if exchange.response.status == 404:
        return exchange.request.method in endpoint.absent and not (refused and refused.no_environment)
    # Agents send their request with each poll: the CA still has it, or has signed it since.
    return endpoint.kind is Kind.CSR and refused is not None and any(text in refused.message for text in _POLLED)
