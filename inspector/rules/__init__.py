"""The deviations: one file each, found by walking this package. To add a rule, add a file.

A rule is a generator function that looks at a ``Case`` and yields what is wrong in words; ``@rule`` gives
it an id (protocol reference, part 5), a severity, a remedy and a source. Rules keep no state: what they
need of the past is in the ``Run``, and in the ``Ledger`` for deviations that span runs.
"""

from __future__ import annotations

import importlib
import pkgutil
from dataclasses import dataclass, field
from enum import Enum
from functools import cache
from typing import TYPE_CHECKING, Protocol

from inspector.model import Exchange, Finding, Severity, Visible
from inspector.protocol import documents as d
from inspector.rules.remedies import fill

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    from inspector.model import Record
    from inspector.protocol.endpoints import Match
    from inspector.runs import Run

    type Talk = Sequence[Record]
    type Examples = Callable[[], Sequence[Talk]]


class On(Enum):
    """When a rule is asked."""

    EXCHANGE = "exchange"
    """After each exchange, with ``case.step``."""
    HANDSHAKE = "handshake"
    """After each failed handshake, with ``case.step``."""
    RUN_END = "run end"
    """When a run is over (and, for show only, when it has fallen silent)."""


class Understood(Protocol):
    """The part of an analyzer's step that rules read."""

    record: Record
    match: Match | None
    request: d.Document | None
    response: d.Document | None
    certname: str | None


@dataclass(frozen=True, slots=True)
class Said:
    """What a rule found, where the words alone do not say enough."""

    message: str
    seqs: tuple[int, ...] = ()
    """The records that prove it; empty: the one at hand."""
    severity: Severity | None = None
    """Another severity than the rule's own, for another generation."""


@dataclass(frozen=True, slots=True)
class CsrSeen:
    seq: int
    key: str
    status: int | None


@dataclass(slots=True)
class Ledger:
    """What a capture has shown so far, by certname: for deviations that span runs."""

    csrs: dict[str, list[CsrSeen]] = field(default_factory=dict)
    issued: dict[str, tuple[int, str]] = field(default_factory=dict)
    """The last certificate served for a name: sequence number and public key."""

    def remember(self, run: Run, step: Understood) -> None:
        """Take in a step, after the rules were asked about it."""
        name = step.match.certname if step.match else None
        if name is None or not isinstance(step.record, Exchange) or step.match is None:
            return
        response = step.record.response
        if isinstance(step.request, d.CertificateRequest) and run.csrs:
            status = response.status if response else None
            self.csrs.setdefault(name, []).append(CsrSeen(step.record.seq, step.request.key, status))
        if step.match.endpoint.name == "certificate" and isinstance(step.response, d.Certificates):
            self.issued[name] = (step.record.seq, step.response.certificates[0].key)


@dataclass(frozen=True, slots=True)
class Case:
    """What a rule looks at."""

    step: Understood
    run: Run
    ledger: Ledger

    @property
    def exchange(self) -> Exchange:
        assert isinstance(self.step.record, Exchange)  # noqa: S101 - rules on exchanges only
        return self.step.record

    @property
    def endpoint(self) -> str:
        """The endpoint's name, empty if the request is none of Puppet's."""
        return self.step.match.endpoint.name if self.step.match else ""

    @property
    def status(self) -> int | None:
        return self.exchange.response.status if self.exchange.response else None


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
    good: Examples
    bad: Examples
    also: tuple[str, ...]
    """Ids that the bad examples raise besides."""
    look: Callable[[Case], Iterator[str | Said]]

    def ask(self, case: Case) -> Iterator[Finding]:
        """The findings of one case."""
        for said in self.look(case):
            if isinstance(said, str):
                said = Said(said)
            seqs = said.seqs or ((case.step.record.seq,) if self.on is not On.RUN_END else ())
            yield Finding(self.id, said.severity or self.severity, said.message, seqs)

    def remedy_for(self, run: Run | None) -> str:
        """The remedy with the exact commands for a run's agent and master."""
        return fill(self.remedy, run)


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
) -> Callable[[Callable[[Case], Iterator[str | Said]]], Callable[[Case], Iterator[str | Said]]]:
    """Make a generator function a rule; its docstring is the explanation."""

    def register(look: Callable[[Case], Iterator[str | Said]]) -> Callable[[Case], Iterator[str | Said]]:
        if ident in _RULES:
            raise ValueError(f"two rules with the id {ident}")
        explanation = " ".join((look.__doc__ or "").split())
        _RULES[ident] = Rule(
            ident, severity, on, visible, title, explanation, remedy, source, good, bad, tuple(also), look
        )
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
