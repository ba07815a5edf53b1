"""The fleet report: one HTML file of what a directory of tables shows (``inspector.fleet.overview``)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from inspector.fleet.lists import by_state
from inspector.report import page
from inspector.report.data import Block
from inspector.summaries.judgement import NodeState
from inspector.text import clean, plural, utc_minute

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspector.fleet.overview import Node, Overview

WIDTH, HEIGHT = 1000, 120
"""Units of a drawing."""
ROWS = 100
"""Nodes in the markup: the others need JavaScript."""


class Bar(NamedTuple):
    """A part of a column, or of a line of bars."""

    kind: str
    x: float
    y: float
    width: float
    height: float


@dataclass(frozen=True, slots=True)
class Column:
    """A column of a drawing, with what it says in words."""

    label: str
    text: str
    bars: tuple[Bar, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """Columns side by side."""

    columns: tuple[Column, ...]
    most: float
    """The value of a column of full height."""


@dataclass(frozen=True, slots=True)
class Trend:
    """A line over days."""

    points: str
    """For an SVG polyline."""
    upper: str
    """That of the slower five in a hundred."""
    most: float


def html(found: Overview, name: str) -> str:
    """Return the page; ``name`` says of which tables."""
    ordered = by_state(found.nodes)
    return page.rendered(
        "fleet.html.j2",
        script="fleet.js",
        title=f"Puppet fleet: {clean(name)}",
        found=found,
        period=_period(found.began, found.ended),
        headline=found.headline[:1].upper() + found.headline[1:],
        tone=_tone(found),
        states=[(str(state), number) for state, number in found.standing.items() if number],
        shares=_shares([(str(state), number) for state, number in found.standing.items()], max(1, len(found.nodes))),
        daily=_daily(found),
        trend=_trend(found),
        calendar=_calendar(found),
        sparks={line.rule: _spark(line.days) for line in found.rules},
        slowest=max((each.duration[1] for each in found.times), default=1.0),
        endings=[(each, _left((each.end or 0.0) - found.ended)) for each in found.ending],
        rows=ordered[:ROWS],
        blocks=[Block.of("nodes", {"columns": COLUMNS, "rows": [_row(node) for node in ordered]})],
    )


COLUMNS = ("node", "state", "cause", "version", "environment", "runs", "not completed", "last run (UTC)")


def _row(node: Node) -> list[str | int]:
    texts = (node.certname, str(node.now), node.cause, node.version, node.environment)
    return [*(clean(text or "") for text in texts), node.runs, node.bad, utc_minute(node.last)]


def _left(seconds: float) -> str:
    days = round(abs(seconds) / 86_400)
    return f"in {plural(days, 'day')}" if seconds > 0 else f"ended {plural(days, 'day')} before"


def _tone(found: Overview) -> str:
    """How the headline looks."""
    if any(number and state.bad for state, number in found.standing.items()):
        return "error"
    doubtful = found.standing[NodeState.WARNINGS] or found.standing[NodeState.SILENT]
    return "warning" if doubtful or not found.nodes else "well"


def _period(began: float, ended: float) -> str:
    if not ended:
        return ""
    first, last = map(utc_minute, (began, ended))
    return f"{first} to {last[11:] if first[:10] == last[:10] else last} UTC"


def _shares(states: Sequence[tuple[str, int]], total: int) -> list[Bar]:
    """One bar of all nodes, by state."""
    bars, at = [], 0.0
    for state, number in states:
        width = WIDTH * number / total
        if number:
            bars.append(Bar(state, round(at, 1), 0, round(max(width, 2.0), 1), 22))
        at += width
    return bars


def _stacked(entries: Sequence[tuple[str, str, Sequence[tuple[str, int]]]]) -> Chart | None:
    """Return columns of stacked parts; each entry is a label, a text and the parts from bottom to top."""
    most = max((sum(number for _, number in parts) for _, _, parts in entries), default=0)
    if not most:
        return None
    step = WIDTH / len(entries)
    columns = []
    for place, (label, text, parts) in enumerate(entries):
        bars, top = [], float(HEIGHT)
        for kind, number in parts:
            height = HEIGHT * number / most
            top -= height
            if number:
                bars.append(
                    Bar(kind, round(place * step, 1), round(top, 1), round(step * 0.8, 1), round(max(height, 1.5), 1))
                )
        columns.append(Column(label, text, tuple(bars)))
    return Chart(tuple(columns), most)


def _daily(found: Overview) -> Chart | None:
    return _stacked([
        (day.date, f"{day.date}: {plural(day.runs, 'run')}, {day.bad:,} did not complete",
         (("failed", day.bad), ("complete", day.runs - day.bad)))
        for day in found.days
    ])  # fmt: skip


def _calendar(found: Overview) -> Chart | None:
    entries = []
    for month in found.calendar:
        counts = (("agent", month.agents), ("master", month.masters), ("CA", month.cas), ("CRL", month.crls))
        words = ", ".join(plural(number, what) for what, number in counts if number)
        parts = [(what.lower(), number) for what, number in counts]
        entries.append((month.month, f"{month.month}: {words}", parts))
    return _stacked(entries)


def _trend(found: Overview) -> Trend | None:
    days = [(place, day.compile, day.compile_95) for place, day in enumerate(found.days) if day.compile is not None]
    if len(days) < 2:
        return None
    most = max(slow or usual for _, usual, slow in days) or 1.0

    def points(values: Sequence[tuple[int, float]]) -> str:
        step = WIDTH / max(1, len(found.days) - 1)
        return " ".join(f"{place * step:.1f},{HEIGHT - HEIGHT * value / most:.1f}" for place, value in values)

    usual = points([(place, median) for place, median, _ in days])
    return Trend(usual, points([(place, slow or median) for place, median, slow in days]), most)


def _spark(days: Sequence[int]) -> tuple[Bar, ...]:
    """Return the findings of a rule by day, as small bars."""
    most = max(days, default=0)
    step = 100 / max(1, len(days))
    return tuple(
        Bar("finding", round(place * step, 1), round(20 - 20 * number / most, 1), round(max(step * 0.8, 0.6), 1),
            round(20 * number / most, 1))
        for place, number in enumerate(days) if number
    )  # fmt: skip
