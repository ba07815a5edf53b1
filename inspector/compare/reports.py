"""Two reports: resources with another outcome, and what was logged on one side only."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.compare.differences import Section
from inspector.explain import resource_outcomes
from inspector.explain.resource_outcomes import Status
from inspector.text import plural

if TYPE_CHECKING:
    from inspector.compare.differences import Differences
    from inspector.protocol.documents import Catalog, Report

LOUD = frozenset({"warning", "err", "alert", "emerg", "crit"})
"""Levels of log lines that are compared."""
_QUIET = (Status.UNCHANGED, Status.UNREPORTED)
"""8 and later leave unchanged resources out of the report."""


def compare(before: Report, after: Report, found: Differences, secret: frozenset[str] = frozenset()) -> None:
    """Add the differences of two reports. ``secret`` are addresses of sensitive parameters: no message about them is
    shown."""
    if before.status != after.status:
        found.add(Section.REPORT, "status", "", before.status, after.status, change="changed")
    old, new = _outcomes(before), _outcomes(after)
    if bool(old) != bool(new):  # nothing was applied
        numbers = (plural(len(side), "resource") if side else "no resources" for side in (old, new))
        found.add(Section.REPORT, "resources", "", *numbers)
        old = new = {}
    for ref in {**new, **old}:
        was, now = old.get(ref, Status.UNREPORTED), new.get(ref, Status.UNREPORTED)
        if was is now or (was in _QUIET and now in _QUIET):
            continue
        result = after.resource_statuses.get(ref) or before.resource_statuses.get(ref)
        place = f"{result.file}:{result.line}" if result and result.file else ""
        note = _message(after if now not in _QUIET else before, ref, secret)
        found.add(Section.REPORT, ref, "outcome", str(was), str(now), places=(place,), note=note)
    _logs(before, after, found)


def secret_parameters(*catalogs: Catalog | None) -> frozenset[str]:
    """The addresses of the sensitive parameters in catalogs."""
    return frozenset(
        f"{ref}/{name}"
        for catalog in catalogs if catalog
        for ref, names in catalog.sensitive.items()
        for name in names
    )  # fmt: skip


def _outcomes(report: Report) -> dict[str, Status]:
    return {outcome.ref: outcome.status for outcome in resource_outcomes.resources(None, report)}


def _message(report: Report, ref: str, secret: frozenset[str]) -> str:
    """What the first event of a resource says."""
    result = report.resource_statuses.get(ref)
    for event in (result.events if result else None) or ():
        if event.message and f"{ref}/{event.property or ''}" not in secret:
            return " ".join(event.message.split())
    return ""


def _logs(before: Report, after: Report, found: Differences) -> None:
    old, new = (
        {_line(line.source, line.message): line.level.lstrip(":") for line in report.logs} for report in (before, after)
    )
    for line in {**old, **new}:
        levels = old.get(line), new.get(line)
        if (levels[0] is None) != (levels[1] is None) and not {*levels}.isdisjoint(LOUD):
            source, _, message = line.partition("\n")
            was, now = (f"{level}: {message}" if level else None for level in levels)
            found.add(Section.REPORT, source or "log", "log", was, now)


def _line(source: str | None, message: str) -> str:
    return f"{source or ''}\n{' '.join(message.split())}"
