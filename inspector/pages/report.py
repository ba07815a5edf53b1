"""A report as tables: resources, events, log and metrics; and what else comes as a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from inspector import regex
from inspector.pages import highlight
from inspector.pages.model import Cell, Field, Item, Table, fields, item_of, word
from inspector.pages.styles import BAD, DOUBT
from inspector.privacy import hiding
from inspector.privacy.secrets import Secret
from inspector.protocol import rich
from inspector.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from inspector.protocol.documents import Event, FileMetadata, Report, ResourceStatus

_FRACTION = regex.compile(r"(\.[0-9]{3})[0-9]+")
_DIM = "dim"
_STATES = {"failed": BAD, "restart failed": BAD, "changed": DOUBT, "out of sync": DOUBT, "skipped": _DIM,
           "failure": BAD, "success": DOUBT, "noop": DOUBT, "audit": _DIM, "err": BAD, "alert": BAD,
           "emerg": BAD, "crit": BAD, "warning": DOUBT, "debug": _DIM, "info": _DIM}  # fmt: skip
_FAILED = ("failed", "restart failed")
_LOUD = ("err", "alert", "emerg", "crit")
_ORDER = ("failed", "restart failed", "changed", "out of sync", "skipped", "unchanged")


def _state(name: str) -> Text:
    return Text(clean(str(hiding.text(name))), style=_STATES.get(name, ""))


def _status(resource: ResourceStatus) -> str:
    found = {"failed": resource.failed, "restart failed": resource.failed_to_restart, "changed": resource.changed,
             "out of sync": resource.out_of_sync, "skipped": resource.skipped}  # fmt: skip
    return next((name for name, applies in found.items() if applies), "unchanged")


def _where(file: str | None, line: int | str | None) -> str:
    return f"{file or ''}{f':{line}' if line is not None else ''}"


def _moment(time: object) -> str:
    """A time to the millisecond, with its zone: agents send nanoseconds."""
    return _FRACTION.sub(r"\1", "" if time is None else str(time))


def value(sent: Any) -> Cell:
    """An event's value, in which secrets are hidden."""
    read = rich.read(sent)
    if isinstance(read, Secret):
        return read
    return word(read) if isinstance(read, str) else highlight.value(word(read), read)


def resources(report: Report) -> Table:
    """The status of each resource, the worst first."""
    found: dict[str, list[tuple[str, ResourceStatus]]] = {status: [] for status in _ORDER}
    for ref, resource in report.resource_statuses.items():
        found[_status(resource)].append((ref, resource))
    rows: list[tuple[Cell, ...]] = [
        (
            _state(status),
            ref,
            _message(report, ref, resource) if status in _FAILED else "",
            resource.evaluation_time,
            _moment(resource.time),
            _where(resource.file, resource.line),
        )
        for status, those in found.items()
        for ref, resource in those
    ]
    return Table(
        (
            Field("status", 14),
            Field("resource", 24, 2, ends=True),
            Field("message", 16, 3),
            Field("seconds", 9, right=True),
            Field("time", 29, least=120),
            Field("file:line", 20, 2, least=100, ends=True),
        ),
        rows,
        1,
        "The report has no resources.",
    )


def _message(report: Report, ref: str, resource: ResourceStatus) -> str:
    """Why a resource failed: from its events, otherwise from the log."""
    messages = [event.message for event in resource.events or () if event.message and event.status == "failure"]
    if not messages:
        loud = [line for line in report.logs if line.level.lstrip(":") in _LOUD]
        messages = [line.message for line in loud if _source(line.source or "", ref)]
    return "\n".join(dict.fromkeys(messages))


def _source(path: str, ref: str) -> bool:
    """Whether a log line's source is a resource, or one of its properties: /Stage[main]/Main/Exec[a]/returns."""
    return path == ref or path.endswith(f"/{ref}") or f"/{ref}/" in path


def events(report: Report) -> Table:
    """Return the events of a report: one row for each property that was touched."""
    rows: list[tuple[Cell, ...]] = [
        (
            _state(event.status or "?"),
            ref,
            event.property or "",
            *_values(event),
            event.message or "",
            _moment(event.time),
        )
        for ref, resource in report.resource_statuses.items()
        for event in resource.events or ()
    ]
    columns = (
        Field("event", 8),
        Field("resource", 20, 2, ends=True),
        Field("property", 10),
        Field("previous", 12, 1, least=100),
        Field("desired", 12, 1, least=100),
        Field("message", 20, 3),
        Field("time", 29, least=160),
    )
    return Table(columns, rows, 5, "No events: nothing was changed.")


def _values(event: Event) -> tuple[Cell, Cell]:
    """The values before and after an event; the name of its property may mean a secret."""
    sent = {
        "property": event.property,
        "name": event.name,
        "previous_value": event.previous_value,
        "desired_value": event.desired_value,
    }
    hidden = hiding.masked(sent)
    return value(hidden["previous_value"]), value(hidden["desired_value"])


def logs(report: Report) -> Table:
    """The agent's log lines."""
    rows: list[tuple[Cell, ...]] = [
        (
            _state(line.level.lstrip(":")),
            _moment(line.time),
            line.source or "",
            line.message,
            _where(line.file, line.line),
        )
        for line in report.logs
    ]
    columns = (
        Field("level", 8),
        Field("time", 29, least=120),
        Field("source", 12, 1, least=70),
        Field("message", 30, 3),
        Field("file:line", 20, 1, least=140, ends=True),
    )
    return Table(columns, rows, 3, "The report has no log.")


def metrics(report: Report) -> Item:
    """Return the metrics by group, the largest number first."""

    def group(numbers: dict[str, float]) -> Iterator[Item]:
        for name, number in sorted(numbers.items(), key=lambda item: -item[1]):
            yield Item(name, f"{number:,.6g}")

    def inner() -> Iterator[Item]:
        for name, metric in report.metrics.items():
            numbers = metric.numbers
            yield Item(name, inner=lambda numbers=numbers: group(numbers), note=str(len(numbers)), opened=True)  # type: ignore[misc]

    return Item("metrics", inner=inner)


def about(report: Report) -> Item:
    """The fields of a report."""

    def inner() -> Iterator[Item]:
        yield from (item for item in fields(report) if item.name not in ("logs", "resource_statuses", "metrics"))
        yield item_of("resources by status", {name: int(count) for name, count in report.counts.items()})

    return Item("about", inner=inner)


def files(found: Iterable[FileMetadata]) -> Table:
    """Files and directories of a listing."""
    rows: list[tuple[Cell, ...]] = [
        (
            file.type,
            file.relative_path or file.path,
            f"{file.mode:o}" if isinstance(file.mode, int) else file.mode,
            f"{file.owner if file.owner is not None else ''}:{file.group if file.group is not None else ''}",
            file.checksum.type if file.checksum else None,
            file.checksum.digest if file.checksum else None,
            file.destination or file.content_uri or file.path,
        )
        for file in found
    ]
    columns = (
        Field("type", 9),
        Field("path", 20, 3),
        Field("mode", 5, right=True),
        Field("owner", 11, least=90),
        Field("digest", 7),
        Field("checksum", 12, 2),
        Field("where", 20, 2, least=130),
    )
    return Table(columns, rows, 1, "The listing is empty.")
