"""Two reports: resources with another outcome, and what was logged on one side only."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING

from inspector.compare.differences import Section
from inspector.explain import resource_outcomes
from inspector.explain.resource_outcomes import Status
from inspector.text import plural

if TYPE_CHECKING:
    from inspector.compare.differences import Differences
    from inspector.protocol.documents import Catalog, Report, Resource

LOUD = frozenset({"warning", "err", "alert", "emerg", "crit"})
"""Levels of log lines that are compared."""
_QUIET = (Status.UNCHANGED, Status.UNREPORTED)
"""8 and later leave unchanged resources out of the report."""


def compare(before: Report, after: Report, found: Differences, secret: SecretParameters) -> None:
    """Add the differences of two reports."""
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


class SecretParameters:
    """The sensitive parameters in catalogs: no message about one is shown."""

    def __init__(self, *catalogs: Catalog | None) -> None:
        self._catalogs = [catalog for catalog in catalogs if catalog is not None]

    @cached_property
    def _resources(self) -> dict[str, list[Resource]]:
        found: dict[str, list[Resource]] = {}
        for catalog in self._catalogs:
            for resource in catalog.resources:
                found.setdefault(resource.ref, []).append(resource)
        return found

    def covers(self, ref: str, parameter: str | None) -> bool:
        """Whether a parameter of a resource is sensitive in one of the catalogs."""
        return any(parameter in resource.sensitive for resource in self._resources.get(ref, ()))


def _outcomes(report: Report) -> dict[str, Status]:
    return {outcome.ref: outcome.status for outcome in resource_outcomes.resources(None, report)}


def _message(report: Report, ref: str, secret: SecretParameters) -> str:
    """What the first event of a resource says."""
    result = report.resource_statuses.get(ref)
    for event in (result.events if result else None) or ():
        if event.message and not secret.covers(ref, event.property):
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
