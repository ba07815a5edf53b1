"""The result of a rehearsal as a JSON-able structure (docs/json/rehearse.schema.json)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inspector.compare import plain
from inspector.rehearsal import text
from inspector.rehearsal.result import PERCENTILES

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.rehearsal.bisection import Bisected
    from inspector.rehearsal.plan import Plan
    from inspector.rehearsal.result import Result


def plain_result(plan: Plan, result: Result, capture: Path) -> dict[str, Any]:
    """Return a result."""
    grouped = plain.grouped(result.groups)
    for name in ("only_before", "only_after", "one_run_only", "other_sections"):
        del grouped[name]
    return {
        "master": str(plan.target),
        "old_master": str(plan.old) if plan.old else None,
        "road": plan.road.name,
        "warnings": result.warnings,
        "revocation_checked": plan.target.crl is not None,
        "environment": plan.environment,
        "facts_changed": str(plan.facts) or None,
        "facts_without_effect": text.without_effect(plan, result),
        "files_not_asked": result.unasked,
        "capture": str(capture),
        "versions": {"recorded": sorted(result.old_versions), "rehearsed": sorted(result.new_versions)},
        **grouped,
        "noise": {
            "differences": sum(map(len, result.noise.values())), "nodes": sorted(result.noisy),
            "not_measured": sorted(result.unmeasured),
            "left_out": [{"address": address, "nodes": nodes} for address, nodes in result.noise.items()],
        } if plan.twice else None,
        "logs": [
            {"level": each.level, "message": each.message, "place": each.place or None, "nodes": each.nodes}
            for each in result.logs
        ],
        "deferred_not_compared": result.deferred,
        "waited_s": round(result.waited, 3),
        "reused": result.reused,
        "time_ratio": {
            f"p{percentile}": None if (ratio := result.ratio(percentile)) is None else round(ratio, 3)
            for percentile in PERCENTILES
        },
        "slowest": [
            {"node": time.node, "before_s": round(time.before, 3), "after_s": round(time.after, 3)}
            for time in result.slowest
        ],
    }  # fmt: skip


def plain_bisected(found: Bisected, plan: Plan, capture: Path) -> dict[str, Any]:
    """Return on which facts a resource depends."""
    return {
        "master": str(plan.target),
        "capture": str(capture),
        "node": found.node,
        "resource": found.resource,
        "facts": [{"name": fact.name, "before": fact.before, "after": fact.after} for fact in found.facts],
        "differences": [plain.difference(each) for each in found.differences],
        "noise": list(found.noise),
        "candidates": found.candidates,
        "compiles": found.compiles,
    }
