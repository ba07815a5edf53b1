"""What agents and masters say, cut to what a message can hold."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from inspector import clocks

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from inspector.protocol import documents as d

TEXT = 200
"""Characters of captured text in a message."""
FIRST = 3
"""How many of many are named."""
MANY = 10**12
"""A number of things, or of seconds, that nobody means."""
GRAVE = frozenset({"err", "crit", "alert", "emerg"})


def cut(text: object, limit: int = TEXT) -> str:
    """Captured text on one line, its end left out if it is long."""
    told = " ".join(str(text).split())
    return told if len(told) <= limit else f"{told[: limit - 1]}…"


def line(text: str, limit: int = TEXT) -> str:
    """The first line of a log's message (with --trace a backtrace follows), without the values before and after of a
    change that failed: why it failed comes last."""
    first = text.lstrip().partition("\n")[0]
    if first.startswith("change from "):
        first = first.partition(" failed: ")[2] or first
    return cut(first, limit)


def some(names: Sequence[str], first: int = FIRST) -> str:
    """The first of many names, and how many more there are."""
    named = ", ".join(cut(each, 100) for each in names[:first])
    return named if len(names) <= first else f"{named} and {len(names) - first} more"


def utc(time: float) -> str:
    """A moment as messages say it."""
    return clocks.date(time).strftime("%Y-%m-%d %H:%M UTC")


def lasting(seconds: float) -> str:
    """A duration as messages say it: 12 s, 3 min, 2 h 5 min."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = int(seconds) // 60
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def whole(number: float | None) -> int:
    """A number of things as somebody tells it; 0 for what is none (YAML has infinity, JSON has no bounds)."""
    return int(number) if number is not None and abs(number) < MANY else 0


def errors(report: d.Report) -> list[d.LogLine]:
    """The log's lines of level err and graver (2.7 writes levels as symbols)."""
    return [each for each in report.logs if each.level.lstrip(":") in GRAVE]


def reason(report: d.Report | None) -> str:
    """Why a run failed before it came to resources: the last thing that the agent itself complained about but that
    it skips the run, which follows from it; empty if it did not."""
    lines = [each.message for each in errors(report) if each.source == "Puppet"] if report else []
    told = [each for each in lines if "skipping run" not in each]
    return line((told or lines)[-1]) if lines else ""


def failure(report: d.Report, ref: str) -> str:
    """What the agent says of a resource that failed: name, place in the manifest, the log's words."""
    status = report.resource_statuses[ref]
    place = f"{cut(status.file)}:{cut(status.line, 20)}" if status.file and status.line else cut(status.file or "")
    lines: Iterable[str] = (each.message for each in errors(report) if f"/{ref}" in (each.source or ""))
    events: Iterable[str] = (each.message or "" for each in status.events or [] if each.status == "failure")
    why = next(iter([*lines, *events]), "")
    return cut(ref, 100) + (f" ({place})" if place else "") + (f": {line(why)}" if why else "")


def in_a_row(seen: Iterable[bool]) -> int:
    """How many are true before the first that is not."""
    return sum(1 for _ in takewhile(bool, seen))
