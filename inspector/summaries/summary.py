"""A record and a run in brief: all that lines, tables, filters and timelines need, and no body.

``of`` makes one of an analyzed step, ``of_run`` of a run. They are what the derived index keeps, so a list of a
hundred thousand exchanges needs neither bodies nor the analysis. Nothing here knows the protocol: importing it is
cheap.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, Protocol

import msgspec

from inspector.model import Exchange, Finding, Handshake, Phase, Severity

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from inspector.analysis.analyzer import Step
    from inspector.model import Message
    from inspector.runs.run import Run

type Kind = Literal["exchange", "handshake", "gap"]
type Party = Literal["agent", "proxy", "master"]


class Sign(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """That a record proves a finding."""

    rule: str
    severity: Severity


class Times(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The moments of an exchange, in seconds since the epoch; None is not known."""

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
    kind: Kind
    time: float
    """When it began."""
    ended: float
    phase: Phase
    certname: str | None = None
    """By its certificate, or else by its URL."""
    address: str | None = None
    """The agent's; None where only the master's leg is known."""
    endpoint: str | None = None
    environment: str | None = None
    """The one in its URL."""
    method: str = ""
    target: str = ""
    status: int | None = None
    """None: no answer came, or it is no exchange."""
    sent: int = 0
    """Bytes of body that went to the master."""
    received: int = 0
    """Bytes of body that came back."""
    reason: str = ""
    """Why there was no answer, why the handshake failed, or what the gap is about."""
    lost: int = 0
    """Records that a gap stands for."""
    alert: str | None = None
    alert_by: Party | None = None
    authenticated: bool = False
    """The agent showed a certificate."""
    lent: str | None = None
    """As whom the master was spoken to; None: as nobody."""
    unlent: str | None = None
    """Why it was spoken to as nobody, though the agent has a certificate."""
    stripped: tuple[str, ...] = ()
    leg: str | None = None
    """The agent's connection (of a handshake that failed on the master's side: that one)."""
    master: str | None = None
    """The connection to the master."""
    times: Times = Times()
    signs: tuple[Sign, ...] = ()
    """The findings that it proves, the worst first."""

    @property
    def duration(self) -> float:
        """Seconds from its first byte to its last."""
        return max(0.0, self.ended - self.time)


class Span(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """How much of a run one phase took."""

    phase: Phase
    exchanges: int
    duration: float
    """Seconds from the first byte of each stretch of this phase to its last byte."""


class Spanning(Protocol):
    """``Span`` and ``seen.PhaseSpan``."""

    @property
    def phase(self) -> Phase: ...
    @property
    def exchanges(self) -> int: ...
    @property
    def duration(self) -> float: ...


class RunLike(Protocol):
    """What tables and filters ask of a run: ``runs.Run`` has it, and ``RunBrief``."""

    @property
    def number(self) -> int | None: ...
    @property
    def certname(self) -> str | None: ...
    @property
    def address(self) -> str | None: ...
    @property
    def tool(self) -> str | None: ...
    @property
    def agent_version(self) -> str | None: ...
    @property
    def environment(self) -> str | None: ...
    @property
    def environment_asked(self) -> str | None: ...
    @property
    def outcome(self) -> str: ...
    @property
    def started(self) -> float: ...
    @property
    def ended(self) -> float: ...
    @property
    def duration(self) -> float: ...
    @property
    def sent(self) -> int: ...
    @property
    def received(self) -> int: ...
    @property
    def spans(self) -> Mapping[Phase, Spanning]: ...
    @property
    def findings(self) -> list[Finding]: ...


class RunBrief(msgspec.Struct, kw_only=True):
    """A run as a table shows it, with its findings and its verdict. Fields as in ``runs.Run``."""

    number: int
    certname: str | None = None
    address: str | None = None
    tool: str | None = None
    agent_version: str | None = None
    master_version: str | None = None
    generation: str | None = None
    environment: str | None = None
    environment_asked: str | None = None
    transaction_uuid: str | None = None
    outcome: str = "unfinished"
    closed: bool = False
    """Nothing more can belong to it."""
    started: float = 0.0
    ended: float = 0.0
    sent: int = 0
    received: int = 0
    connections: int = 0
    spans: dict[Phase, Span] = {}
    waits: dict[str, float] = {}
    findings: list[Finding] = []
    verdict: tuple[str, str] | None = None
    """What it comes down to, and what to do now."""
    cause: str | None = None
    """The rule that the verdict names; None if nothing on the wire shows why."""
    symptoms: tuple[str, ...] = ()
    """Rules whose findings follow from the cause."""
    records: int = 0

    @property
    def duration(self) -> float:
        return max(0.0, self.ended - self.started)

    @property
    def ordered(self) -> list[Finding]:
        """Its findings, the cause first and what follows from it after what else is as grave."""

        def order(each: Finding) -> tuple[bool, int, bool]:
            return each.rule != self.cause, -each.severity.rank, each.rule in self.symptoms

        return sorted(self.findings, key=order)

    @property
    def name(self) -> str:
        """The certname, or the address of an agent that said none."""
        return self.certname or self.address or "-"


def of(step: Step, signs: Iterable[Finding] | None = None) -> Brief:
    """A step in brief; ``signs`` are the findings that it proves (by default those that were made at it)."""
    record = step.record
    kept = signs_of(step.findings if signs is None else signs)
    if isinstance(record, Exchange):
        return _exchange(step, record, kept)
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
            authenticated=leg.side == "agent" and bool(leg.peer_chain),
            leg=leg.id,
            times=Times(agent_connected=leg.connected)
            if leg.side == "agent"
            else Times(master_connected=leg.connected),
            signs=kept,
        )
    return Brief(
        seq=record.seq,
        kind="gap",
        time=record.time,
        ended=record.ended,
        phase=step.phase,
        reason=record.reason,
        lost=record.lost,
        signs=kept,
    )


def of_run(
    run: Run, verdict: tuple[str, str] | None = None, cause: str | None = None, symptoms: tuple[str, ...] = ()
) -> RunBrief:
    """A run in brief, with its verdict in words."""
    return RunBrief(
        number=run.number or 0,
        certname=run.certname,
        address=run.address,
        tool=run.tool,
        agent_version=run.agent_version,
        master_version=run.master_version,
        generation=run.generation,
        environment=run.environment,
        environment_asked=run.environment_asked,
        transaction_uuid=run.transaction_uuid,
        outcome=run.outcome,
        closed=run.closed,
        started=run.started,
        ended=run.ended,
        sent=run.sent,
        received=run.received,
        connections=run.connections,
        spans={span.phase: Span(span.phase, span.exchanges, span.duration) for span in run.spans.values()},
        waits={str(what): pause for what, pause in run.waits.items()},
        findings=list(run.findings),
        verdict=verdict,
        cause=cause,
        symptoms=symptoms,
        records=len(run.seqs),
    )


def signs_of(findings: Iterable[Finding]) -> tuple[Sign, ...]:
    """What findings a record proves, in brief."""
    worst = sorted(findings, key=lambda each: -each.severity.rank)
    return tuple(dict.fromkeys(Sign(each.rule, each.severity) for each in worst))


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
        sent=_size(request),
        received=_size(response) if response else 0,
        reason=exchange.error or "",
        authenticated=bool(agent.peer_chain),
        lent=identity.certname if identity else None,
        unlent=identity.reason if identity else None,
        stripped=exchange.stripped,
        leg=agent.id,
        master=master.id if master else None,
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
    )


def _size(message: Message) -> int:
    return len(message.body) + message.lost
