"""What rules get and give: cases, one per exchange, failed handshake or run, and the statements on them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from inspector.protocol import documents as d

if TYPE_CHECKING:
    from inspector.model import Exchange, Handshake, Place, Record, Severity
    from inspector.protocol.kinds import Kind
    from inspector.runs.history import Ledger, Understood
    from inspector.runs.run import Run


@dataclass(frozen=True, slots=True)
class Statement:
    """What a rule found: a sentence, and the evidence for it."""

    text: str
    seqs: tuple[int, ...] = ()
    """The records that show it; empty: the current record, or the last one of the run."""
    at: Place | tuple[Place, ...] = field(default=(), kw_only=True)
    """Where those records show it (``inspector.rules.places``); in each record the first place that exists counts."""
    severity: Severity | None = field(default=None, kw_only=True)
    """Another severity than the rule's, for example for another generation."""
    printed: str = field(default="", kw_only=True)
    """The message of an agent or a master that is the evidence: if the book of messages knows it, its meaning and its
    fix are those of the finding."""
    follows: tuple[int, ...] = field(default=(), kw_only=True)
    """The refused requests of which it is only a consequence (``Finding.follows``)."""


@dataclass(slots=True)
class Case:
    """What every rule gets: the current state of a run, and the history of earlier runs."""

    run: Run
    ledger: Ledger

    @property
    def record(self) -> Record | None:
        """The current record; None for a case of the whole run."""
        return None


@dataclass(slots=True)
class RunCase(Case):
    """A run that is over."""

    @property
    def name(self) -> str:
        """The agent's certname; empty if it is not known."""
        return self.run.certname or ""


@dataclass(slots=True)
class HandshakeCase(Case):
    """A TLS handshake that failed."""

    step: Understood
    handshake: Handshake
    certname: str | None = field(init=False)
    """The agent's certname, from its certificate."""

    def __post_init__(self) -> None:
        self.certname = self.step.certname

    @property
    def record(self) -> Record:
        """The current record."""
        return self.handshake


@dataclass(slots=True)
class ExchangeCase(Case):
    """A request with its answer, if it got one."""

    step: Understood
    exchange: Exchange
    status: int | None = field(init=False)
    """The answer's status; None without an answer."""
    kind: Kind | None = field(init=False)
    """The kind of request; None if it is not one of Puppet's."""
    refused: bool = field(init=False)
    """The status is 400 or more."""
    opening: bool = field(init=False)
    """It is the first request on its connection."""
    broken: bool = field(init=False)
    """There was no answer, or not all of it arrived."""

    def __post_init__(self) -> None:
        # Rules read these often.
        exchange, match = self.exchange, self.step.match
        self.kind = match.endpoint.kind if match else None
        self.status = exchange.response.status if exchange.response else None
        use = self.run.legs.get(exchange.agent.id)
        self.opening = use is not None and use.requests == 1
        self.refused = self.status is not None and self.status >= 400
        self.broken = self.status is None or exchange.error is not None

    @property
    def record(self) -> Record:
        """The current record."""
        return self.exchange

    @property
    def name(self) -> str:
        """The certname of the request: the one in the URL, otherwise the agent's; empty if neither is known."""
        match = self.step.match
        return (match.certname if match else None) or self.run.certname or ""

    @property
    def endpoint(self) -> str:
        """The endpoint's name; empty if the request is not one of Puppet's."""
        match = self.step.match
        return match.endpoint.name if match else ""

    @property
    def accepted(self) -> bool:
        """Whether the status is below 400."""
        return self.status is not None and self.status < 400

    @property
    def answer(self) -> str:
        """The master's error message; empty if it did not refuse, or gave no reason."""
        document = self.step.response
        return document.message if isinstance(document, d.ErrorDocument) else ""
