"""A catalog's resources with what the report says became of each.

What a report knows and the catalog does not (resources that the agent made itself, the whole of a cached catalog) is
listed too.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from inspector.protocol import documents as d
from inspector.protocol import rich

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

MASK = "•••••"
"""Stands for a value that Puppet marks sensitive."""
DEPTH = 100
"""Containers of a resource that are named."""
RELATIONS = ("require", "before", "notify", "subscribe")


class Status(StrEnum):
    """What became of a resource, the worst first."""

    FAILED = "failed"
    RESTART = "restart failed"
    SKIPPED = "skipped"
    CORRECTIVE = "corrective"
    """Changed back: somebody else had changed it since the last run."""
    CHANGED = "changed"
    OUT_OF_SYNC = "out of sync"
    """Would have been changed, were the run not in noop mode."""
    UNCHANGED = "unchanged"
    UNREPORTED = "not reported"
    """There is no report, or it does not name the resource: it is a class or a define, or was never reached."""

    @property
    def differs(self) -> bool:
        """Whether it is not as it was before the run, or not as the catalog wants it."""
        return self not in (Status.UNCHANGED, Status.UNREPORTED)


@dataclass(frozen=True, slots=True)
class Applied:
    """One resource, and what became of it."""

    ref: str
    type: str
    title: str
    resource: d.Resource | None
    """None: only the report knows it."""
    result: d.ResourceStatus | None
    """None: the report does not name it, or there is none."""
    status: Status
    file: str | None
    line: int | str | None
    sources: tuple[str, ...] = ()
    """Where a file's content comes from, in the order in which the agent tries them."""
    parents: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """By reference the container of each resource of the catalog."""

    @property
    def place(self) -> str:
        """File and line of the manifest; empty if they are not known."""
        if not self.file:
            return ""
        return self.file if self.line is None else f"{self.file}:{self.line}"

    @property
    def path(self) -> tuple[str, ...]:
        """What contains it, the outermost first."""
        above: list[str] = []
        at = self.parents.get(self.ref)
        while at is not None and at not in above and len(above) < DEPTH:
            above.append(at)
            at = self.parents.get(at)
        if not above and self.result and self.result.containment_path:
            return tuple(self.result.containment_path[:-1])
        return tuple(reversed(above))

    @property
    def source(self) -> str:
        """What log lines about it name as their source: its containment path, in which a class has no brackets."""
        if self.result and self.result.containment_path:
            return "/" + "/".join(self.result.containment_path)
        named = [*self.path, self.ref]
        return "/" + "/".join(name[6:-1] if name.startswith("Class[") else name for name in named)

    @property
    def time(self) -> float | None:
        """Seconds that it took to evaluate; None if that is not known."""
        return self.result.evaluation_time if self.result else None

    @property
    def secret(self) -> frozenset[str]:
        """Parameters that Puppet marks sensitive."""
        return frozenset(self.resource.sensitive) if self.resource else frozenset()

    @property
    def parameters(self) -> Iterator[tuple[str, str]]:
        """Names and values but the relationships, as text; sensitive ones masked."""
        if self.resource:
            secret = self.secret
            for name in self.resource.parameters:
                if name not in RELATIONS:
                    yield name, MASK if name in secret else shown(self.resource.value(name))

    @property
    def relations(self) -> Iterator[tuple[str, str]]:
        """Its relationships: ``require``, ``before``, ``notify`` or ``subscribe``, and the other resource."""
        for name in RELATIONS if self.resource else ():
            value = self.resource.parameters.get(name) if self.resource else None
            for other in value if isinstance(value, list) else [] if value is None else [value]:
                yield name, shown(other)

    @property
    def events(self) -> Iterator[tuple[str, str, str]]:
        """Status, property and message of each event; what says a sensitive value is masked."""
        secret = self.secret
        for event in (self.result.events if self.result else None) or ():
            what = event.property or event.name or ""
            message = event.message or f"{shown(event.previous_value)} -> {shown(event.desired_value)}"
            yield event.status or "-", what, MASK if what in secret else _spaced(message)


class ResourceTotals(NamedTuple):
    """All resources of a catalog together."""

    by_status: dict[Status, int]
    """Only what there is, the worst first."""
    time: float
    """Seconds of evaluation."""


def resources(catalog: d.Catalog | None, report: d.Report | None) -> list[Applied]:
    """The resources of a catalog in its order, then those that only the report knows."""
    statuses = report.resource_statuses if report else {}
    found: list[Applied] = []
    known: set[str] = set()
    if catalog:
        parents = {edge.target: edge.source for edge in reversed(catalog.edges)}
        sources = {file.ref: tuple(file.sources) for file in catalog.files}
        for resource in catalog.resources:
            ref = resource.ref
            known.add(ref)
            result = statuses.get(ref)
            found.append(
                Applied(
                    ref, resource.type, resource.title, resource, result, _status(result), resource.file, resource.line,
                    sources.get(ref, ()), parents,
                )
            )  # fmt: skip
    for ref, result in statuses.items():
        if ref not in known:
            kind, _, title = ref.partition("[")
            found.append(
                Applied(ref, kind, title.removesuffix("]"), None, result, _status(result), result.file, result.line)
            )
    return found


def totals(applied: Iterable[Applied]) -> ResourceTotals:
    """Sums."""
    counted = dict.fromkeys(Status, 0)
    time = 0.0
    for resource in applied:
        counted[resource.status] += 1
        time += resource.time or 0.0
    return ResourceTotals({status: number for status, number in counted.items() if number}, time)


def logged(resources: Iterable[Applied], logs: Iterable[d.LogLine]) -> dict[str, list[d.LogLine]]:
    """By its reference the log lines of a report about each resource, and not about what it contains.

    A line's source is the resource's containment path, and below it the property.
    """
    refs = {resource.source: resource.ref for resource in resources}
    by_resource: dict[str, list[d.LogLine]] = {}
    for line in logs:
        source = line.source or ""
        above, _, last = source.rpartition("/")
        # What ends with a bracket is the title of a resource that is not known here, and no property.
        ref = refs.get(source) or (refs.get(above) if not last.endswith("]") else None)
        if ref is not None:
            by_resource.setdefault(ref, []).append(line)
    return by_resource


def messages(applied: Applied, lines: Iterable[d.LogLine], most: int) -> list[tuple[str, str]]:
    """Level and text of a resource's log lines (``logged``); what says a sensitive value is masked."""
    path, secret = applied.source, applied.secret
    return [
        (line.level.lstrip(":"), MASK if (line.source or "")[len(path) + 1 :] in secret else _spaced(line.message))
        for line in islice(lines, most)
    ]


def _spaced(text: str) -> str:
    """Text without tabs, which differences of files are full of."""
    return text.replace("\t", "    ")


def shown(value: Any) -> str:
    """A value as text."""
    if isinstance(value, str):
        return value
    if isinstance(value, rich.Rich):
        return MASK if value.sensitive else str(value)
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return str(value)


def _status(result: d.ResourceStatus | None) -> Status:
    if result is None:
        return Status.UNREPORTED
    if result.failed:
        return Status.FAILED
    if result.failed_to_restart:
        return Status.RESTART
    if result.skipped:
        return Status.SKIPPED
    if result.changed:
        return Status.CORRECTIVE if result.corrective_change else Status.CHANGED
    return Status.OUT_OF_SYNC if result.out_of_sync else Status.UNCHANGED
