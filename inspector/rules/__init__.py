"""The deviations: one file each, found by walking this package. To add a rule, add a file.

A rule is a generator function that looks at a case (``ExchangeCase``, ``HandshakeCase`` or ``RunCase``) and yields a
``Statement`` for each deviation; ``@rule`` gives it an id (never used again for another), a severity, a remedy and a
source. Rules keep no state: what they
need of the past is in the ``Run``, and in the ``Ledger`` for deviations that span runs.
"""

from __future__ import annotations

import fnmatch
import importlib
import inspect
import pkgutil
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache
from typing import TYPE_CHECKING

from inspector.model import Finding, Place, Severity, Visible
from inspector.privacy import patterns
from inspector.protocol import documents as d
from inspector.rules import places
from inspector.rules.remedies import fill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from inspector.model import Exchange, Handshake, Record
    from inspector.protocol.kinds import Kind
    from inspector.runs.history import Ledger, Understood
    from inspector.runs.run import Run

    type Look = Callable[..., Iterator[Statement]]
    type Talk = Sequence[Record]
    type Examples = Callable[[], Sequence[Talk]]


OLD = ("2.7", "3", "4-5", "6.0-6.3")
"""Generations whose bootstrap verifies nothing."""
SINCE_6_4 = ("6.4-7", "8", "OpenVox 8", "9")
SINCE_6 = ("6.0-6.3", *SINCE_6_4)
SINCE_4 = ("4-5", *SINCE_6)
SINCE_8 = ("8", "OpenVox 8", "9")


class On(StrEnum):
    """When a rule is asked."""

    EXCHANGE = "exchange"
    """After each exchange, with ``case.step``."""
    HANDSHAKE = "handshake"
    """After each failed handshake, with ``case.step``."""
    RUN_END = "run end"
    """When a run is over (and, for show only, when it has fallen silent)."""


@dataclass(frozen=True, slots=True)
class Statement:
    """What a rule found: a sentence, and the evidence for it."""

    text: str
    seqs: tuple[int, ...] = ()
    """The records that show it; empty: the one at hand, or the last one of the run."""
    at: Place | tuple[Place, ...] = field(default=(), kw_only=True)
    """Where those records show it (``inspector.rules.places``); in each record the first place that exists counts."""
    severity: Severity | None = field(default=None, kw_only=True)
    """Another severity than the rule's, for example for another generation."""


@dataclass(slots=True)
class Case:
    """What every rule looks at: a run as it is now, and what earlier runs showed."""

    run: Run
    ledger: Ledger

    @property
    def record(self) -> Record | None:
        """The record at hand; None if the whole run is looked at."""
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

    handshake: Handshake
    certname: str | None
    """The agent's, by its certificate."""

    @property
    def record(self) -> Record:
        """The record at hand."""
        return self.handshake


@dataclass(slots=True)
class ExchangeCase(Case):
    """A request and what became of it."""

    step: Understood
    exchange: Exchange
    status: int | None = field(init=False)
    """The answer's status; None without an answer."""
    kind: Kind | None = field(init=False)
    """The kind of request; None if it is none of Puppet's."""
    refused: bool = field(init=False)
    """The status is 400 or more."""
    opening: bool = field(init=False)
    """It is the first request on its connection."""

    def __post_init__(self) -> None:
        # Rules ask for these again and again.
        exchange, match = self.exchange, self.step.match
        self.kind = match.endpoint.kind if match else None
        self.status = exchange.response.status if exchange.response else None
        use = self.run.legs.get(exchange.agent.id)
        self.opening = use is not None and use.used == 1
        self.refused = self.status is not None and self.status >= 400

    @property
    def record(self) -> Record:
        """The record at hand."""
        return self.exchange

    @property
    def name(self) -> str:
        """The certname it is about: the one in the URL, else the agent's; empty if there is none."""
        match = self.step.match
        return (match.certname if match else None) or self.run.certname or ""

    @property
    def endpoint(self) -> str:
        """The endpoint's name, empty if the request is none of Puppet's."""
        match = self.step.match
        return match.endpoint.name if match else ""

    @property
    def answer(self) -> str:
        """Why the master refused, in the master's words; empty if it did not refuse, or gave no reason."""
        document = self.step.response
        return document.message if isinstance(document, d.ErrorDocument) else ""


def _default(case: Case) -> tuple[Place, ...]:
    """Where the evidence is if a statement does not name a place."""
    match case:
        case ExchangeCase():
            return places.answer(case.step.response)
        case HandshakeCase():
            return (places.REFUSAL,)
    return (places.REFUSAL, places.REQUEST_LINE)


@dataclass(frozen=True, slots=True)
class Rule:
    """A deviation and how it is recognised."""

    id: str
    severity: Severity
    on: On
    visible: Visible
    title: str
    explanation: str
    remedy: str
    """With placeholders for the generation at hand, see ``inspector.rules.remedies``."""
    source: str
    """Sections of docs/protocol.md, public files by project, version and path, RFC sections; ``; `` between them."""
    good: Examples
    bad: Examples
    also: tuple[str, ...]
    """Ids that the bad examples raise besides."""
    look: Callable[..., Iterator[Statement]]
    at: tuple[Kind, ...] = ()
    """The kinds of requests it is about; empty: all requests, also those that are none of Puppet's."""
    generations: tuple[str, ...] = ()
    """The generations of agents it is about; empty: all. Agents of unknown version are asked about as well."""
    refused: bool = False
    """It is about requests that were answered 400 or more."""
    opening: bool = False
    """It is about the first request on a connection, where what the connection shows is judged."""
    thresholds: Mapping[str, float] = field(default_factory=dict)
    """The function's keyword-only parameters with their values."""
    otherwise: str = ""
    """Its other severities, and when: ``warning for agents up to 6.3``; empty if it has one only."""
    chosen: Severity | None = None
    """What a site's rules.yaml wants it to be, whatever the rule itself says."""

    def applies(self, case: Case) -> bool:
        """Whether the rule is about such requests, and about this agent's generation."""
        if isinstance(case, ExchangeCase) and (
            (self.at and case.kind not in self.at)
            or (self.refused and not case.refused)
            or (self.opening and not case.opening)
        ):
            return False
        run = case.run
        return not self.generations or run.generation in self.generations or (not run.generation and not run.tool)

    def ask(self, case: Case) -> Iterator[Statement]:
        """Return the rule's statements on a case that it is about."""
        return self.look(case, **self.thresholds) if self.thresholds else self.look(case)

    def finding(self, statement: Statement, case: Case) -> Finding:
        """Make a statement a finding."""
        run = case.run
        record = case.record
        seqs = statement.seqs or (tuple(run.seqs[-1:]) if record is None else (record.seq,))
        severity = statement.severity or self.severity
        if run.tool and severity is Severity.ERROR:
            severity = Severity.WARNING  # a tool's call that is refused breaks no run (R22)
        return Finding(
            self.id,
            self.chosen or severity,
            patterns.text(statement.text),
            seqs,
            run.started if record is None else record.time,
            (statement.at,) if isinstance(statement.at, Place) else statement.at or _default(case),
        )

    def remedy_for(self, run: Run | None) -> str:
        """The remedy with the exact commands for a run's agent and master."""
        return fill(self.remedy, run)


@dataclass(frozen=True, slots=True)
class Ignore:
    """Findings that a site does not want to see."""

    rules: frozenset[str] = frozenset()
    """Ids; empty: every rule."""
    certnames: tuple[str, ...] = ()
    """Shell patterns; empty: every agent."""
    until: float | None = None
    """Runs that begin from this moment on are not covered."""

    def covers(self, rule: str, run: Run) -> bool:
        """Whether a rule's finding in a run is ignored."""
        if self.rules and rule not in self.rules:
            return False
        if self.until is not None and run.started >= self.until:
            return False
        return not self.certnames or any(fnmatch.fnmatchcase(run.certname or "", each) for each in self.certnames)


_RULES: dict[str, Rule] = {}


def rule(
    ident: str,
    severity: Severity,
    on: On,
    *,
    visible: Visible,
    title: str,
    remedy: str,
    source: str,
    good: Examples,
    bad: Examples,
    also: Iterable[str] = (),
    at: Iterable[Kind] = (),
    generations: Iterable[str] = (),
    refused: bool = False,
    opening: bool = False,
    otherwise: str = "",
) -> Callable[[Look], Look]:
    """Make a generator function a rule; its docstring is the explanation.

    ``at``, ``generations``, ``refused`` and ``opening`` say what it is about: for anything else it is not asked, so it
    need not look at that itself, and costs nothing there. ``otherwise`` says when it has another severity.
    Its keyword-only parameters, numbers with defaults, are thresholds that a site can set in rules.yaml.
    """

    def register(look: Look) -> Look:
        if ident in _RULES:
            raise ValueError(f"two rules with the id {ident}")
        explanation = " ".join((look.__doc__ or "").split())
        parameters = inspect.signature(look).parameters.values()
        thresholds = {each.name: each.default for each in parameters if each.kind is each.KEYWORD_ONLY}
        _RULES[ident] = Rule(
            ident, severity, on, visible, title, explanation, remedy, source, good, bad, tuple(also), look,
            tuple(at), tuple(generations), refused, opening, thresholds, otherwise,
        )  # fmt: skip
        return look

    return register


@cache
def all_rules() -> tuple[Rule, ...]:
    """Every rule of this package, by id."""
    for module in pkgutil.iter_modules(__path__):
        importlib.import_module(f"{__name__}.{module.name}")
    return tuple(_RULES[ident] for ident in sorted(_RULES))


def rule_of(ident: str) -> Rule:
    """The rule with an id. Raises KeyError."""
    all_rules()
    return _RULES[ident]
