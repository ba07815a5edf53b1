"""A catalog's resources with their outcomes in the report.

Resources that are only in the report (those that the agent generated, all those of a cached catalog) are listed too.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from enum import StrEnum
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from inspector.privacy import hiding
from inspector.privacy.secrets import MASK, Secret
from inspector.protocol import documents as d
from inspector.protocol import rich
from inspector.rules.words import errors, without_provider

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

DEPTH = 100
"""Maximum number of containers of a resource that are named."""
RELATIONS = ("require", "before", "notify", "subscribe")
_EMPTY = d.ResourceStatus()
"""What 2.7 sends for each resource, whatever became of it."""


class Status(StrEnum):
    """The outcome of a resource, the worst first."""

    FAILED = "failed"
    RESTART = "restart failed"
    SKIPPED = "skipped"
    CORRECTIVE = "corrective"
    """Changed back: something else had changed it since the last run."""
    CHANGED = "changed"
    OUT_OF_SYNC = "out of sync"
    """Would have been changed without noop mode."""
    UNCHANGED = "unchanged"
    UNREPORTED = "not reported"
    """There is no report, or it says nothing of the resource: it is a class or a define, was never reached, or its
    status is empty (2.7)."""

    @property
    def differs(self) -> bool:
        """Whether it differs from its state before the run, or from the catalog."""
        return self not in (Status.UNCHANGED, Status.UNREPORTED)


@dataclass(frozen=True, slots=True)
class Applied:
    """One resource, and its outcome."""

    ref: str
    type: str
    title: str
    resource: d.Resource | None
    """None: it is only in the report."""
    result: d.ResourceStatus | None
    """None: it is not in the report, or there is none."""
    status: Status
    file: str | None
    line: int | str | None
    sources: tuple[str, ...] = ()
    """The sources of a file's content, in the order in which the agent tries them."""
    parents: Mapping[str, str] = field(default_factory=dict, repr=False, compare=False)
    """By reference, the container of each resource of the catalog."""

    @property
    def place(self) -> str:
        """File and line of the manifest; empty if they are not known."""
        if not self.file:
            return ""
        return self.file if self.line is None else f"{self.file}:{self.line}"

    @property
    def path(self) -> tuple[str, ...]:
        """Its containers, the outermost first."""
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
        """The source in its log lines: its containment path, in which a class has no brackets."""
        if self.result and self.result.containment_path:
            return "/" + "/".join(self.result.containment_path)
        named = [*self.path, self.ref]
        return "/" + "/".join(name[6:-1] if name.startswith("Class[") else name for name in named)

    @property
    def time(self) -> float | None:
        """Seconds of its evaluation; None if not known."""
        return self.result.evaluation_time if self.result else None

    @property
    def secret(self) -> frozenset[str]:
        """Parameters that Puppet marks sensitive."""
        return frozenset(self.resource.sensitive) if self.resource else frozenset()

    @property
    def parameters(self) -> Iterator[tuple[str, Any]]:
        """Names and decoded values except the relationships; secrets as ``Secret``."""
        if self.resource:
            secret = self.secret
            for name, value in hiding.parameters(self.resource).items():
                if name not in RELATIONS:
                    yield name, Secret(self.resource.value(name)) if name in secret else value

    @property
    def relations(self) -> Iterator[tuple[str, str]]:
        """Its relationships: ``require``, ``before``, ``notify`` or ``subscribe``, and the other resource."""
        for name in RELATIONS if self.resource else ():
            value = self.resource.parameters.get(name) if self.resource else None
            for other in value if isinstance(value, list) else [] if value is None else [value]:
                yield name, shown(other)

    @property
    def events(self) -> Iterator[tuple[str, str, str]]:
        """Status, property and message of each event; a message about a sensitive value is masked."""
        secret = self.secret
        for event in (self.result.events if self.result else None) or ():
            what = event.property or event.name or ""
            message = event.message or f"{shown(event.previous_value)} -> {shown(event.desired_value)}"
            yield event.status or "-", what, MASK if what in secret else str(hiding.text(_spaced(message)))


class ResourceTotals(NamedTuple):
    """Totals of all resources of a catalog."""

    by_status: dict[Status, int]
    """Only outcomes that occur, the worst first."""
    time: float
    """Seconds of evaluation."""


def resources(catalog: d.Catalog | None, report: d.Report | None) -> list[Applied]:
    """The resources of a catalog in its order, then those that are only in the report."""
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
    return _with_errors(found, report) if report and _EMPTY in statuses.values() else found


def totals(applied: Iterable[Applied]) -> ResourceTotals:
    """Compute the totals."""
    counted = dict.fromkeys(Status, 0)
    time = 0.0
    for resource in applied:
        counted[resource.status] += 1
        time += resource.time or 0.0
    return ResourceTotals({status: number for status, number in counted.items() if number}, time)


def logged(resources: Iterable[Applied], logs: Iterable[d.LogLine]) -> dict[str, list[d.LogLine]]:
    """The log lines of a report about each resource, by its reference, without those about its contents.

    A line's source is the resource's containment path, and below it the property. What is logged once about a type that
    nothing on the node can manage is about each resource of it that failed.
    """
    refs: dict[str, str] = {}
    without: dict[str, list[str]] = {}
    for resource in resources:
        refs[resource.source] = resource.ref
        if resource.status is Status.FAILED:
            without.setdefault(without_provider(resource.type), []).append(resource.ref)
    by_resource: dict[str, list[d.LogLine]] = {}
    for line in logs:
        for one in without.pop(line.message, ()):
            by_resource.setdefault(one, []).append(line)
        source = line.source or ""
        above, _, last = source.rpartition("/")
        # A last part with brackets is the title of a resource that is not known here, not a property.
        ref = refs.get(source) or (refs.get(above) if not last.endswith("]") else None)
        if ref is not None:
            by_resource.setdefault(ref, []).append(line)
    return by_resource


def messages(applied: Applied, lines: Iterable[d.LogLine], most: int) -> list[tuple[str, str]]:
    """Level and text of a resource's log lines (``logged``); a message about a sensitive value is masked."""
    path, secret = applied.source, applied.secret
    return [
        (
            line.level.lstrip(":"),
            MASK if (line.source or "")[len(path) + 1 :] in secret else str(hiding.text(_spaced(line.message))),
        )
        for line in islice(lines, most)
    ]


def _spaced(text: str) -> str:
    """Replace tabs, which are common in diffs of files."""
    return text.replace("\t", "    ")


def shown(value: Any) -> str:
    """A value as text."""
    if isinstance(value, str):
        return value
    if isinstance(value, rich.Rich):
        return MASK if value.sensitive else str(value)
    if isinstance(value, Secret):
        return str(value)
    try:
        return json.dumps(value, ensure_ascii=False, default=str)
    except (TypeError, ValueError, RecursionError):
        return str(value)


def _with_errors(applied: list[Applied], report: d.Report) -> list[Applied]:
    """Return the resources with the failures that the log reports: statuses of old agents are empty."""
    empty = [resource for resource in applied if resource.result == _EMPTY]
    failed = logged(empty, errors(report))
    return [replace(one, status=Status.FAILED) if one.ref in failed else one for one in applied]


def _status(result: d.ResourceStatus | None) -> Status:
    if result is None or result == _EMPTY:
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
