"""A comparison as a JSON-able structure (docs/json/diff.schema.json)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from inspector.text import utc

if TYPE_CHECKING:
    from inspector.compare.comparison import Comparison
    from inspector.compare.differences import Difference
    from inspector.compare.documents import RunDocuments
    from inspector.compare.groups import Groups
    from inspector.compare.times import TimeCompared


def plain(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison."""
    return {
        "before": _side(comparison.before),
        "after": _side(comparison.after),
        "status": comparison.status,
        "differences": [difference(each) for each in comparison.differences],
        "volatile_facts": [difference(each) for each in comparison.volatile],
        "times": [_time(time) for time in comparison.times],
        "ignored": comparison.ignored.total(),
        "not_compared": {str(section): reason for section, reason in comparison.uncompared.items()},
    }


def grouped(groups: Groups) -> dict[str, Any]:
    """Return what was found of several nodes."""
    return {
        "status": groups.status,
        "groups": [
            {"nodes": list(group.nodes), "differences": [difference(each) for each in group.differences]}
            for group in groups.groups
        ],
        "without_change": groups.same,
        "not_compared": [{"reason": failed.reason, "nodes": list(failed.nodes)} for failed in groups.failed],
        "only_before": groups.only_before,
        "only_after": groups.only_after,
        "one_run_only": groups.alone,
        "other_sections": {str(section): nodes for section, nodes in groups.others.items()},
        "ignored": groups.ignored,
    }


def difference(of: Difference) -> dict[str, Any]:
    """Return one difference."""
    return {
        "section": str(of.section),
        "name": of.name,
        "part": of.part or None,
        "change": of.change,
        "before": of.before,
        "after": of.after,
        "places": list(of.places),
        "lines": list(of.lines),
        "note": of.note or None,
    }


def _side(documents: RunDocuments) -> dict[str, Any]:
    run, catalog = documents.run, documents.catalog
    return {
        "label": documents.label,
        "run": run.number,
        "certname": run.certname,
        "started": utc(run.started),
        "outcome": run.outcome,
        "resources": len(catalog.resources) if catalog else None,
        "catalog_version": None if catalog is None or catalog.version is None else str(catalog.version),
        "code_id": catalog.code_id if catalog else None,
    }


def _time(time: TimeCompared) -> dict[str, Any]:
    ratio = time.ratio
    return {
        "kind": time.kind,
        "what": time.what or None,
        "before_s": round(time.before, 3),
        "after_s": round(time.after, 3),
        "ratio": None if ratio is None else round(ratio, 2),
        "noise": time.noise or None,
        "usual_s": [round(seconds, 3) for seconds in time.usual] if time.usual else None,
    }
