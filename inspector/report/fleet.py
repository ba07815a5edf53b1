"""The fleet report: one HTML file of what a directory of tables shows (``inspector.fleet.overview``)."""

from __future__ import annotations

import datetime
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from inspector.fleet.lists import by_state
from inspector.report import page
from inspector.report.data import Block
from inspector.report.plots import HEIGHT, WIDTH, axes
from inspector.summaries.judgement import NodeState, in_words
from inspector.text import clean, plural, utc_minute

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from inspector.fleet.overview import Month, Node, Overview
    from inspector.report.plots import Axes

ROWS = 100
"""Nodes in the markup: the others need JavaScript."""
LONGEST = 1000
"""Days of an axis that has every day; of a longer time it has those on which there was something."""
MONTHS = 36
"""Months of an axis; what ends later is listed."""


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
    axes: Axes


@dataclass(frozen=True, slots=True)
class Trend:
    """Lines over days."""

    median: str
    """The points of an SVG polyline."""
    p90: str
    axes: Axes


class Place(NamedTuple):
    """A day of the axis."""

    date: str
    row: int | None
    """Its place in ``Overview.days``; None: nothing was recorded on it."""


def html(found: Overview, name: str) -> str:
    """Return the page; ``name`` says of which tables."""
    ordered = by_state(found.nodes)
    places = _places([day.date for day in found.days])
    calendar, later = _calendar(found.calendar)
    return page.rendered(
        "fleet.html.j2",
        script="fleet.js",
        styles=("report.css", "fleet.css"),
        title=f"Puppet fleet: {clean(name)}",
        found=found,
        period=_period(found.began, found.ended),
        headline=found.headline[:1].upper() + found.headline[1:],
        tone=_tone(found),
        states=[(str(state), in_words({state: number}, going=False)) for state, number in found.standing.items()
                if number],
        shares=_shares([(str(state), number) for state, number in found.standing.items()], max(1, len(found.nodes))),
        places=places,
        daily=_daily(found, places),
        trend=_trend(found, places),
        calendar=calendar,
        later=later,
        sparks={line.rule: _spark([_at(line.days, place) for place in places]) for line in found.rules},
        slowest=max((each.duration[1] for each in found.times), default=1.0),
        endings=[(each, _left((each.end or 0.0) - found.ended)) for each in found.ending],
        rows=ordered[:ROWS],
        blocks=[Block.of("nodes", {"columns": COLUMNS, "rows": [_row(node) for node in ordered]})],
    )  # fmt: skip


COLUMNS = ("node", "state", "cause", "version", "environment", "runs", "not completed", "last run (UTC)")


def _row(node: Node) -> list[str | int]:
    texts = (node.certname, str(node.now), node.cause, node.version, node.environment)
    return [*(clean(text or "") for text in texts), node.runs, node.bad, utc_minute(node.last)]


def _left(seconds: float) -> str:
    days = round(abs(seconds) / 86_400)
    return f"in {plural(days, 'day')}" if seconds > 0 else f"{plural(days, 'day')} ago"


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


# -- over days and months ------------------------------------------------------------------------------------


def _places(dates: Sequence[str]) -> list[Place]:
    """Return the days of the axis: all from the first to the last, unless they are too many."""
    rows = {date: row for row, date in enumerate(dates)}
    if not dates:
        return []
    first, last = (datetime.date.fromisoformat(dates[at]) for at in (0, -1))
    if (last - first).days >= LONGEST:
        return [Place(date, row) for date, row in rows.items()]
    days = (str(first + datetime.timedelta(days=number)) for number in range((last - first).days + 1))
    return [Place(day, rows.get(day)) for day in days]


def _at(days: Sequence[int], place: Place) -> int:
    return 0 if place.row is None else days[place.row]


def _stacked(entries: Sequence[tuple[str, str, Sequence[tuple[str, int]]]], unit: Callable[[int], str]) -> Chart | None:
    """Return columns of stacked parts; each entry is a label, a text and the parts from bottom to top. ``unit`` says
    how many of what a number of the axis is."""
    most = max((sum(number for _, number in parts) for _, _, parts in entries), default=0)
    if not most:
        return None
    found = axes(most, [label for label, _, _ in entries], lambda value: unit(int(value)), whole=True)
    step = WIDTH / len(entries)
    columns = []
    for place, (label, text, parts) in enumerate(entries):
        bars, top = [], float(HEIGHT)
        for kind, number in parts:
            height = HEIGHT * number / found.top
            top -= height
            if number:
                bars.append(
                    Bar(kind, round(place * step, 1), round(top, 1), round(step * 0.8, 1), round(max(height, 1.5), 1))
                )
        columns.append(Column(label, text, tuple(bars)))
    return Chart(tuple(columns), found)


def _daily(found: Overview, places: Sequence[Place]) -> Chart | None:
    entries = []
    for place in places:
        runs, bad = (0, 0) if place.row is None else (found.days[place.row].runs, found.days[place.row].bad)
        words = f"{place.date}: {plural(runs, 'run')}, {bad:,} did not complete"
        entries.append((place.date, words, (("failed", bad), ("complete", runs - bad))))
    return _stacked(entries, lambda number: plural(number, "run") if number else "0")


def _calendar(months: Sequence[Month]) -> tuple[Chart | None, list[str]]:
    """Return what ends in which month, and in words what ends after the last month of the axis."""
    if not months:
        return None, []
    by_name = {month.month: month for month in months}
    axis = _following(months[0].month)
    shown = axis[: max(place for place, name in enumerate(axis) if name in by_name) + 1]
    entries = [(name, _words(by_name.get(name), name), _parts(by_name.get(name))) for name in shown]
    later = [_words(month, month.month) for month in months if month.month > shown[-1]]
    return _stacked(entries, lambda number: f"{number:,}"), later


def _following(first: str) -> list[str]:
    """Return the months from one on (``YYYY-MM``), as many as an axis has at most."""
    year, month = map(int, first.split("-"))
    return [f"{year + at // 12:04}-{at % 12 + 1:02}" for at in range(month - 1, month - 1 + MONTHS)]


def _parts(month: Month | None) -> list[tuple[str, int]]:
    if month is None:
        return []
    return [("agent", month.agents), ("master", month.masters), ("ca", month.cas), ("crl", month.crls)]


def _words(month: Month | None, name: str) -> str:
    if month is None:
        return f"{name}: nothing"
    counts = (("agent", month.agents), ("master", month.masters), ("CA", month.cas), ("CRL", month.crls))
    return f"{name}: {', '.join(plural(number, what) for what, number in counts if number)}"


def _trend(found: Overview, places: Sequence[Place]) -> Trend | None:
    days = [(at, found.days[place.row]) for at, place in enumerate(places) if place.row is not None]
    known = [(at, day.compile, day.compile_90) for at, day in days if day.compile is not None]
    if len(known) < 2:
        return None
    most = max(slow or usual for _, usual, slow in known)
    step = WIDTH / len(places)
    labels = axes(most, [place.date for place in places], lambda value: f"{value:g} s" if value else "0")

    def points(values: Sequence[tuple[int, float]]) -> str:
        return " ".join(f"{(at + 0.4) * step:.1f},{HEIGHT - HEIGHT * value / labels.top:.1f}" for at, value in values)

    median = points([(at, usual) for at, usual, _ in known])
    return Trend(median, points([(at, slow or usual) for at, usual, slow in known]), labels)


def _spark(days: Sequence[int]) -> tuple[Bar, ...]:
    """Return the findings of a rule by day, as small bars."""
    most = max(days, default=0)
    step = 100 / max(1, len(days))
    return tuple(
        Bar("finding", round(place * step, 1), round(20 - 20 * number / most, 1), round(max(step * 0.8, 0.6), 1),
            round(20 * number / most, 1))
        for place, number in enumerate(days) if number
    )  # fmt: skip
