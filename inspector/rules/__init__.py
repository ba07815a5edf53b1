"""The rules: one file per deviation, twins in one file, found by walking this package. To add a rule, add a file.

A site's own rules have ids that begin with ``U`` (``inspector.summaries.site_rules``, ``rule_files``).

A rule is a generator function that gets a case (``ExchangeCase``, ``HandshakeCase`` or ``RunCase``) and yields a
``Statement`` for each deviation. ``@rule`` gives it an id (never used again for another rule), a severity, a fix and a
source. Rules keep no state: the past of a run is in the ``Run``, and that of earlier runs in the ``Ledger``.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import inspect
import pkgutil
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cache, partial
from typing import TYPE_CHECKING, cast

from inspector import installation, regex
from inspector.model import TO_PUPPETDB, Finding, Phase, Place, Severity, Visible
from inspector.privacy import patterns
from inspector.rules import places
from inspector.rules.cases import ExchangeCase, HandshakeCase
from inspector.rules.puppet_commands import FixContext, fill
from inspector.text import beginning

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from types import FunctionType

    from inspector.model import Record
    from inspector.protocol.kinds import Kind
    from inspector.rules.cases import Case, Statement
    from inspector.rules.fixes import Fix
    from inspector.runs.run import Run

    type RuleFunction = Callable[..., Iterator[Statement]]
    type Examples = Callable[[], Sequence[Sequence[Record]]]


OLD = ("2.7", "3", "4-5", "6.0-6.3")
"""Generations of agents whose bootstrap verifies nothing."""
SINCE_6_4 = ("6.4-7", "8", "OpenVox 8", "9")
SINCE_6 = ("6.0-6.3", *SINCE_6_4)
SINCE_4 = ("4-5", *SINCE_6)
SINCE_8 = ("8", "OpenVox 8", "9")
AFTER_BOOTSTRAP = (Phase.NODE, Phase.PLUGINS, Phase.CATALOG, Phase.FILES, Phase.REPORT)
"""The phases whose requests carry the agent's certificate."""

MESSAGE = 1000
"""Characters of a finding's message. Rules shorten what they quote; this is for what none has thought of."""
PRINTED = 2000
"""Characters of a printed message that a finding has."""

NO_CATALOG = ("R20", "R19", "R03", "P13")
"""What an agent without a catalog does: it applies nothing or the cached one, sends no report, or one with errors."""
NO_CATALOG_NO_REPORT = (*NO_CATALOG, "P03")
"""The same where the report is refused for the same reason."""
NO_TRUST = ("T06", "T07", "T08", "T09", "T28", "R03", "R04")
"""What an agent or master without trust in the other does."""
NOT_COMPILED = ("S01", "S25", "S26", "S27", "S28")
"""Why the master compiled no catalog."""
ANOTHER_KEY = ("B18", "B20", "B22", "B23", "B02")
"""What follows where a name is used with two keys."""


class On(StrEnum):
    """When a rule is checked."""

    EXCHANGE = "exchange"
    """After each exchange, with ``case.step``."""
    HANDSHAKE = "handshake"
    """After each failed handshake, with ``case.step``."""
    RUN_END = "run end"
    """When a run is over, and, for display only, when it is silent for a while."""


_ON = {"ExchangeCase": On.EXCHANGE, "HandshakeCase": On.HANDSHAKE, "RunCase": On.RUN_END}


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
    """A deviation and how it is detected."""

    id: str
    severity: Severity
    on: On
    visible: Visible
    title: str
    explanation: str
    fix: Fix
    """With the placeholders of ``inspector.rules.puppet_commands``."""
    source: str
    """Sections of docs/protocol.md, public files by project, version and path, RFC sections; ``; `` between them."""
    good: Examples
    bad: Examples
    also: tuple[str, ...]
    """Ids of other rules that also find something in the bad examples, though neither explains the other."""
    function: RuleFunction
    at: tuple[Kind, ...] = ()
    """The kinds of requests it applies to; empty: all requests, including those that are not Puppet's."""
    generations: tuple[str, ...] = ()
    """The generations of agents it applies to; empty: all. It also applies to agents of unknown version."""
    refused: bool = False
    """It applies to requests that were answered with 400 or more."""
    opening: bool = False
    """It applies to the first request on a connection: it checks properties of the connection."""
    broken: bool = False
    """It applies to requests without an answer, or with one that was cut off."""
    thresholds: Mapping[str, float] = field(default_factory=dict)
    """The function's keyword-only parameters with their values."""
    otherwise: str = ""
    """Its other severities and their conditions: ``warning for agents up to 6.3``; empty without any."""
    instead: Callable[[Run], Fix | None] | None = None
    """Returns another fix for a run; None: ``fix`` holds."""
    explains: tuple[str, ...] = ()
    """Ids of the rules whose findings follow from its own in any run."""
    without_catalog: tuple[str, ...] = ()
    """Those that follow only in a run that got no catalog: one that got it has another reason for them."""
    event: bool = False
    """It reports what happened at a moment, and not a condition that lasts (a certificate, a clock, a setting): it
    explains nothing that was there before."""
    chosen: Severity | None = None
    """The severity set in the site's rules.yaml; it replaces every other."""

    def applies(self, case: Case) -> bool:
        """Return whether the rule applies to this request and this agent's generation."""
        if isinstance(case, ExchangeCase) and (
            (self.at and case.kind not in self.at)
            or (self.refused and not case.refused)
            or (self.opening and not case.opening)
            or (self.broken and not case.broken)
        ):
            return False
        run = case.run
        return not self.generations or run.generation in self.generations or (not run.generation and not run.tool)

    @property
    def question(self) -> Callable[[Case], Iterator[Statement]]:
        """The function with the thresholds: what it returns are the rule's statements on a case that it applies to."""
        return partial(self.function, **self.thresholds) if self.thresholds else self.function

    def finding(self, statement: Statement, case: Case) -> Finding:
        """Return a finding made from a statement."""
        run = case.run
        record = case.record
        seqs = statement.seqs or (tuple(run.seqs[-1:]) if record is None else (record.seq,))
        severity = statement.severity or self.severity
        if run.tool and run.tool != TO_PUPPETDB and severity is Severity.ERROR:
            severity = Severity.WARNING  # a tool's refused request does not fail an agent's run (R22)
        return Finding(
            self.id,
            self.chosen or severity,
            beginning(patterns.text(beginning(statement.text, 10 * MESSAGE)), MESSAGE),
            seqs,
            run.started if record is None else record.time,
            (statement.at,) if isinstance(statement.at, Place) else statement.at or _default(case),
            beginning(patterns.text(beginning(statement.printed, 10 * PRINTED)), PRINTED),
            statement.follows,
        )

    def fix_for(self, run: Run | None) -> Fix:
        """Return the fix with the exact commands for a run's agent and master."""
        if run is None:
            return fill(self.fix)
        return fill(self.unfilled_for(run), FixContext.of(run))

    def unfilled_for(self, run: Run) -> Fix:
        """Return the fix for a run with its placeholders."""
        return (self.instead(run) if self.instead else None) or self.fix


@dataclass(frozen=True, slots=True)
class Ignore:
    """Findings that a site does not want to see."""

    rules: frozenset[str] = frozenset()
    """Ids; empty: every rule."""
    certnames: tuple[str, ...] = ()
    """Shell patterns; empty: every agent."""
    until: float | None = None
    """Runs that begin at this time or later are not covered."""

    def covers(self, rule: str, run: Run) -> bool:
        """Return whether a rule's finding in a run is ignored."""
        if self.rules and rule not in self.rules:
            return False
        if self.until is not None and run.started >= self.until:
            return False
        return not self.certnames or any(
            regex.glob(pattern).fullmatch(run.certname or "") for pattern in self.certnames
        )


@dataclass(frozen=True, slots=True)
class Ruleset:
    """The rules that are applied, and the findings that are dropped."""

    rules: tuple[Rule, ...]
    """Sorted by id, those of the site last. A rule of the site may consist of several parts with the same id."""
    ignores: tuple[Ignore, ...] = ()
    warnings: tuple[str, ...] = ()
    """What has no effect in the files it was read from, in words."""
    arguments: tuple[str, ...] = ()
    """The options of the command line with which another process reads the same files."""
    digest: str = ""
    """Of the files it was read from; empty without any."""


_RULES: dict[str, Rule] = {}
_registry = _RULES
"""Where ``@rule`` adds rules."""


@contextlib.contextmanager
def collected() -> Iterator[dict[str, Rule]]:
    """Collect the rules that are declared meanwhile, apart from those of this package."""
    global _registry
    before, _registry = _registry, {}
    try:
        yield _registry
    finally:
        _registry = before


def rule(
    ident: str,
    severity: Severity,
    on: On | None = None,
    *,
    visible: Visible = Visible.WIRE,
    title: str,
    fix: Fix,
    source: str = "",
    good: Examples,
    bad: Examples,
    also: Iterable[str] = (),
    at: Iterable[Kind] = (),
    generations: Iterable[str] = (),
    refused: bool = False,
    opening: bool = False,
    broken: bool = False,
    otherwise: str = "",
    instead: Callable[[Run], Fix | None] | None = None,
    explains: Iterable[str] = (),
    without_catalog: Iterable[str] = (),
    event: bool = False,
) -> Callable[[RuleFunction], RuleFunction]:
    """Return a decorator that registers a generator function as a rule. Its docstring is the explanation for users, and
    the type of its case says when it is checked, unless ``on`` does.

    ``at``, ``generations``, ``refused``, ``opening`` and ``broken`` restrict the cases that the rule applies to. For
    other cases the function is not called, so it need not check these conditions itself. ``otherwise`` describes its
    other severities. ``instead`` returns another fix than ``fix`` for certain runs. ``explains`` are the consequences,
    ``without_catalog`` those in a run without a catalog; of an ``event`` only what comes after it. Its keyword-only
    parameters, numbers with defaults, are thresholds that a site can set in rules.yaml.
    """

    def register(function: RuleFunction) -> RuleFunction:
        if ident in _registry:
            raise ValueError(f"two rules with the id {ident}")
        explanation = " ".join((function.__doc__ or "").split())
        # What inspect.signature would say, in a tenth of the time.
        plain = cast("FunctionType", inspect.unwrap(function))
        case = plain.__annotations__.get(plain.__code__.co_varnames[0], "") if plain.__code__.co_argcount else ""
        checked = on or _ON.get(str(getattr(case, "__name__", case)))
        if checked is None:
            raise TypeError(f"the type of its case does not say when rule {ident} is checked")
        thresholds = dict(plain.__kwdefaults__ or {})
        _registry[ident] = Rule(
            ident, severity, checked, visible, title, explanation, fix, source, good, bad, tuple(also), function,
            tuple(at), tuple(generations), refused, opening, broken, thresholds, otherwise, instead, tuple(explains),
            tuple(without_catalog), event,
        )  # fmt: skip
        return function

    return register


@cache
def all_rules() -> tuple[Rule, ...]:
    """Return every rule of this package, sorted by id."""
    enabled = gc.isenabled()
    gc.disable()  # code has no garbage, and looking for it takes longer than running a module
    try:
        for module in pkgutil.iter_modules(__path__):
            importlib.import_module(f"{__name__}.{module.name}")
    finally:
        if enabled:
            gc.freeze()
            gc.enable()
    return tuple(_RULES[ident] for ident in sorted(_RULES))


class _Current:
    ruleset: Ruleset | None = None
    by_id: dict[str, Rule] = {}  # noqa: RUF012 - replaced as a whole


def use(ruleset: Ruleset | None) -> None:
    """Apply these rules in this process from now on; None: the rules of this package, as they are."""
    _Current.ruleset = ruleset
    _Current.by_id = {rule.id: rule for rule in reversed(ruleset.rules)} if ruleset else {}


def in_use() -> Ruleset:
    """Return the rules that are applied in this process."""
    return _Current.ruleset or Ruleset(all_rules())


def known_rules() -> tuple[Rule, ...]:
    """Return every rule of this package and of the site once, as the site configured it, also those that are off."""
    own = {ident: rule for ident, rule in _Current.by_id.items() if ident not in _RULES}
    return tuple(rule_of(rule.id) for rule in all_rules()) + tuple(own[ident] for ident in sorted(own))


def rule_of(ident: str) -> Rule:
    """Return the rule with an id, as the site configured it. Raises KeyError."""
    if (found := _Current.by_id.get(ident)) is not None:
        return found
    if ident not in _RULES:
        _import(ident)
    return _RULES[ident]


def _import(ident: str) -> None:
    """Import the module that declares a rule; all of them if it is not found. Who explains one needs no other."""
    for name, text in installation.rule_texts():
        if f'"{ident}"'.encode() in text:
            importlib.import_module(f"{__name__}.{name}")
            if ident in _RULES:
                return
    all_rules()


def is_own(ident: str) -> bool:
    """Return whether an id is that of a site's own rule."""
    return ident.startswith("U")
