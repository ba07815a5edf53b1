"""Shorten captured text, numbers and durations for a finding's message, and read errors from reports."""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING

from inspector import clocks
from inspector.text import beginning

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from inspector.protocol import documents as d

TEXT = 200
"""Most characters of captured text in a message."""
FIRST = 3
"""How many names of a long list a message contains."""
MANY = 10**12
"""A limit above which a number of things, or of seconds, is not plausible."""
GRAVE = frozenset({"err", "crit", "alert", "emerg"})


def cut(text: object, limit: int = TEXT) -> str:
    """Return captured text on one line, truncated at the end if it is long."""
    joined = " ".join(str(text).split())
    return beginning(joined, limit)


def line(text: str, limit: int = TEXT) -> str:
    """Return the first line of a log's message (with --trace a backtrace follows).

    For a failed change the values before and after are left out: the reason follows them.
    """
    first = text.lstrip().partition("\n")[0]
    if first.startswith("change from "):
        first = first.partition(" failed: ")[2] or first
    return cut(first, limit)


def some(names: Sequence[str], first: int = FIRST) -> str:
    """Return the first names of a list, and how many more there are."""
    named = ", ".join(cut(name, 100) for name in names[:first])
    return named if len(names) <= first else f"{named} and {len(names) - first} more"


def utc(time: float) -> str:
    """Return a point in time as messages show it."""
    return clocks.date(time).strftime("%Y-%m-%d %H:%M UTC")


def lasting(seconds: float) -> str:
    """Return a duration as messages show it: 12 s, 3 min, 2 h 5 min."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    minutes = int(seconds) // 60
    return f"{minutes} min" if minutes < 120 else f"{minutes // 60} h {minutes % 60} min"


def whole(number: float | None) -> int:
    """Return a reported number as an integer; 0 if it is not plausible (YAML has infinity, JSON has no bounds)."""
    return int(number) if number is not None and abs(number) < MANY else 0


def errors(report: d.Report) -> list[d.LogLine]:
    """Return the log's lines of level err and above (2.7 writes levels as symbols)."""
    return [entry for entry in report.logs if entry.level.lstrip(":") in GRAVE]


def reason(report: d.Report | None) -> str:
    """Return why a run failed before any resource was applied; empty if it did not.

    That is the agent's last own error. The error that it skips the run is a consequence and counts only if alone.
    """
    lines = [entry.message for entry in errors(report) if entry.source == "Puppet"] if report else []
    reasons = [text for text in lines if "skipping run" not in text]
    return line((reasons or lines)[-1]) if lines else ""


def failure(report: d.Report, ref: str) -> str:
    """Return what a report says about a failed resource: name, place in the manifest, error message."""
    status = report.resource_statuses[ref]
    place = f"{cut(status.file)}:{cut(status.line, 20)}" if status.file and status.line else cut(status.file or "")
    lines: Iterable[str] = (entry.message for entry in errors(report) if f"/{ref}" in (entry.source or ""))
    events: Iterable[str] = (event.message or "" for event in status.events or [] if event.status == "failure")
    why = next(iter([*lines, *events]), "")
    return cut(ref, 100) + (f" ({place})" if place else "") + (f": {line(why)}" if why else "")


def in_a_row(flags: Iterable[bool]) -> int:
    """Return how many flags are true before the first that is false."""
    return sum(1 for _ in takewhile(bool, flags))
