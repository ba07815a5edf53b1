"""Why nodes of a fleet are not well, and how that is fixed.

A fix is that of the rules and the book of messages here, filled in with what the nodes have in common: of the tables,
which may be somebody else's, it has names that are safe in a command, and nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from inspector.analysis import known_errors
from inspector.rules import in_use, rule_of
from inspector.rules.fixes import proved
from inspector.rules.puppet_commands import FixContext, fill
from inspector.summaries import conclusions
from inspector.summaries.judgement import NodeState

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from inspector.analysis.known_errors import ErrorMatch
    from inspector.fleet.names import CaptureNames
    from inspector.rules.fixes import Fix
    from inspector.runs.snapshot import Outcome

TOP = 50
"""Causes of a fleet."""
NAMES = 20
"""Nodes of a cause that are named."""
EXPLAINED = (NodeState.FAILING, NodeState.ERRORS, NodeState.WAITING, NodeState.WARNINGS)
"""The states that have a cause, visible or not; the worst first."""


class Troubled(NamedTuple):
    """A node that is not well, as the run shows it that explains why."""

    certname: str
    state: NodeState
    outcome: Outcome
    cause: str | None
    reason: str
    since: float
    last: float
    """When its latest run ended."""
    run: str
    """The run, as ``capture:run``."""
    context: FixContext


class Cause(NamedTuple):
    """Why nodes are not well."""

    rule: str | None
    """None: the cause is not visible in the traffic."""
    title: str
    nodes: int
    since: float
    first: str
    """The node on which it was found first."""
    reason: str
    """The sentence of the latest run with it."""
    names: tuple[str, ...]
    """The first nodes by name."""
    run: str
    """That run, as ``capture:run`` with the name of its capture's file."""
    meaning: str
    """What the finding means; empty if no rule, or one that is not in use here, made it."""
    steps: Fix
    """How to fix it."""


def title_of(rule: str | None) -> str:
    """Return a rule's title; of one that is not in use here, its id."""
    if rule is None:
        return "the cause is not visible in the traffic"
    return rule_of(rule).title if _known(rule) else rule


def causes_of(
    nodes: Iterable[Troubled], firsts: Mapping[str, tuple[float, str | None]], names: CaptureNames
) -> tuple[Cause, ...]:
    """Return the causes of nodes, which are in the order of their names; those of the worst state first. ``firsts``
    says when, and on which node, a rule's finding was a cause for the first time."""
    by_cause: dict[str | None, list[Troubled]] = {}
    for node in nodes:
        by_cause.setdefault(node.cause, []).append(node)
    ordered = sorted(
        by_cause.items(),
        key=lambda pair: (min(EXPLAINED.index(node.state) for node in pair[1]), -len(pair[1]), pair[0] or ""),
    )
    return tuple(_cause(rule, found, firsts.get(rule or ""), names) for rule, found in ordered[:TOP])


def _cause(
    rule: str | None, nodes: Sequence[Troubled], first: tuple[float, str | None] | None, names: CaptureNames
) -> Cause:
    earliest = min(nodes, key=lambda node: (node.since, node.certname))
    latest = max(nodes, key=lambda node: node.last)
    since, on = first or (earliest.since, None)
    known = _message(rule, latest.reason)
    return Cause(
        rule,
        title_of(rule),
        len(nodes),
        since,
        on or earliest.certname,
        latest.reason,
        tuple(node.certname for node in nodes[:NAMES]),
        names.run(latest.run),
        known.known.meaning if known else rule_of(rule).explanation if rule and _known(rule) else "",
        _steps(rule, latest, known, _common([node.context for node in nodes])),
    )


def _message(rule: str | None, reason: str) -> ErrorMatch | None:
    """Return the known message in a finding's sentence, if it is one that its rule is about."""
    found = known_errors.reason(reason)
    return found if found and rule in found.known.rules else None


def _steps(rule: str | None, node: Troubled, known: ErrorMatch | None, context: FixContext) -> Fix:
    if rule is None:
        return fill(conclusions.NEXT[node.outcome], context)
    if not _known(rule):
        return ()
    fix = known_errors.filled(known.known.fix, known.text) if known else rule_of(rule).fix
    return proved(fill(fix, context))


def _common(contexts: Sequence[FixContext]) -> FixContext:
    """Return what all nodes have in common."""
    first, *others = contexts
    differing = [name for name in FixContext.__struct_fields__ if any(getattr(other, name) != getattr(first, name)
                 for other in others)]  # fmt: skip
    return msgspec.structs.replace(first, **dict.fromkeys(differing))


def _known(rule: str) -> bool:
    return any(each.id == rule for each in in_use().rules)
