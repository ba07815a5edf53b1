"""The result of a rehearsal as JSON (docs/json/rehearse.schema.json)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from inspector.columns import Count, Number
from inspector.compare import plain
from inspector.rehearsal import text
from inspector.rehearsal.bisection import FactChange
from inspector.rehearsal.result import PERCENTILES

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.rehearsal.bisection import Bisected
    from inspector.rehearsal.plan import Plan
    from inspector.rehearsal.result import Result


class Versions(msgspec.Struct):
    """The versions of both masters."""

    recorded: list[str]
    rehearsed: list[str]


class LeftOut(msgspec.Struct):
    """A difference that two compiles of the same have."""

    address: str
    """The resource, and the part of it."""
    nodes: list[str]


class Noise(msgspec.Struct):
    """With --twice: what was left out because two compiles of the same have it, and the nodes of which two compiles
    differ."""

    differences: Count
    nodes: list[str]
    not_measured: list[str]
    """Nodes of which the old master compiled no catalog."""
    left_out: list[LeftOut]
    """What was left out."""


class Log(msgspec.Struct):
    """What the master logged while it compiled."""

    level: str
    message: str
    place: str | None
    """File and line of the manifest."""
    nodes: list[str]


class Slow(msgspec.Struct):
    """How long the catalog of a node took."""

    node: str
    before_s: float
    after_s: float


class Rehearsed(plain.Grouped):
    """The nodes in groups."""

    master: str
    """Host and port."""
    old_master: str | None
    """With --old-master: host and port of the recorded master, whose noise is left out as well."""
    road: str
    """v4, keys or mint."""
    warnings: list[str]
    """Why the rehearsal says little: captures whose facts are not those of the nodes."""
    revocation_checked: bool
    """Whether the master's certificate was looked for in CRLs (--crl)."""
    environment: str | None
    """The environment that was asked for; null: the recorded ones."""
    facts_changed: str | None
    """Null: none. Otherwise the master's catalogs with and without these changes are compared."""
    facts_without_effect: list[str]
    """The changes of facts that change no fact of any node: mistyped, perhaps."""
    files_not_asked: Count
    """Files that were not compared, because the agents did not ask for them when they were recorded."""
    capture: str
    """Where the answers are."""
    versions: Versions
    noise: Noise | None
    logs: list[Log]
    """What the master logged while it compiled, the worst first: with v4 alone."""
    deferred_not_compared: Count
    """Deferred values that v4 showed as text (before Puppet 8.10), so that they cannot be compared."""
    waited_s: float
    """For how long the master was too busy, by its own words."""
    reused: Count
    """Nodes that had been answered before the rehearsal was continued."""
    time_ratio: dict[Literal["p50", "p90", "p99"], float | None]
    """The time of a compile as a multiple of the recorded one, at percentiles of the nodes; of the later half if the
    master was cold."""
    cold: float | None
    """How many times as long the earlier half took, if the master became faster meanwhile, as after a start."""
    slowest: list[Slow]


class OnFacts(msgspec.Struct):
    """With --bisect-facts."""

    master: str
    capture: str
    node: str
    resource: str
    facts: tuple[FactChange, ...]
    """On which it depends; empty: on none of those that were changed."""
    differences: list[plain.Difference]
    noise: tuple[str, ...]
    """What of the resource differs between two compiles with the recorded facts, which is left out."""
    candidates: Count
    compiles: Number


def plain_result(plan: Plan, result: Result, capture: Path) -> Rehearsed:
    """Return a result."""
    ratios: dict[Any, float | None] = {f"p{percentile}": result.ratio(percentile) for percentile in PERCENTILES}
    return Rehearsed(
        **plain.grouped(result.groups),
        master=str(plan.target),
        old_master=str(plan.old) if plan.old else None,
        road=plan.road.name,
        warnings=result.warnings,
        revocation_checked=plan.target.crl is not None,
        environment=plan.environment,
        facts_changed=str(plan.facts) or None,
        facts_without_effect=text.without_effect(plan, result),
        files_not_asked=result.unasked,
        capture=str(capture),
        versions=Versions(sorted(result.old_versions), sorted(result.new_versions)),
        noise=_noise(result) if plan.twice else None,
        logs=[Log(each.level, each.message, each.place or None, each.nodes) for each in result.logs],
        deferred_not_compared=result.deferred,
        waited_s=round(result.waited, 3),
        reused=result.reused,
        time_ratio={name: None if ratio is None else round(ratio, 3) for name, ratio in ratios.items()},
        cold=None if result.cold is None else round(result.cold, 3),
        slowest=[Slow(time.node, round(time.before, 3), round(time.after, 3)) for time in result.slowest],
    )


def _noise(result: Result) -> Noise:
    return Noise(
        differences=sum(map(len, result.noise.values())),
        nodes=sorted(result.noisy),
        not_measured=sorted(result.unmeasured),
        left_out=[LeftOut(address, nodes) for address, nodes in result.noise.items()],
    )


def plain_bisected(found: Bisected, plan: Plan, capture: Path) -> OnFacts:
    """Return on which facts a resource depends."""
    return OnFacts(
        master=str(plan.target),
        capture=str(capture),
        node=found.node,
        resource=found.resource,
        facts=found.facts,
        differences=[plain.difference(each) for each in found.differences],
        noise=found.noise,
        candidates=found.candidates,
        compiles=found.compiles,
    )
