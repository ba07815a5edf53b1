"""A histogram of the runs of a capture: when they started, and how they ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.segment import Segment
from rich.style import Style
from textual.message import Message
from textual.strip import Strip
from textual.widget import Widget

from inspector.clocks import DAY
from inspector.pages import palette
from inspector.text import clock, day

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual import events

    from inspector.summaries.summary import RunBrief

_GOOD, _BAD = Style.parse(palette.OUTCOMES["complete"]), Style.parse(palette.OUTCOMES["failed"])
_LABEL = "  runs  "
BARS = 2
"""Lines of bars."""


class Histogram(Widget):
    """Runs over time. Periods in which a run was not complete are red, and have an exclamation mark below."""

    DEFAULT_CSS = """
    Histogram { height: 3; background: $surface; padding: 0 1; }
    """

    class Picked(Message):
        """A bar was clicked."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number
            """The first run of the bar."""

    def __init__(self) -> None:
        super().__init__()
        self._runs: Sequence[RunBrief] = ()
        self._bins: list[list[RunBrief]] = []

    def show(self, runs: Sequence[RunBrief]) -> None:
        """Show these runs."""
        if list(runs) != list(self._runs):
            self._runs = runs
            self._bins = []
            self.refresh()

    def _binned(self) -> list[list[RunBrief]]:
        width = max(1, self.content_size.width)
        if len(self._bins) != width:
            first = min((run.started for run in self._runs), default=0.0)
            stretch = max(max((run.started for run in self._runs), default=0.0) - first, 1e-3)
            self._bins = [[] for _ in range(width)]
            for run in self._runs:
                self._bins[min(width - 1, int((run.started - first) / stretch * width))].append(run)
        return self._bins

    def render_line(self, y: int) -> Strip:
        """Draw the bars from the top, then the axis."""
        bins = self._binned()
        if y >= BARS:
            return self._axis(bins)
        most = max(map(len, bins))
        base = self.rich_style
        good, bad = base + _GOOD, base + _BAD
        line = []
        for runs in bins:
            height = -(-len(runs) * BARS * 8 // most) if runs else 0
            level = max(0, min(8, height - 8 * (BARS - 1 - y)))
            line.append(Segment(palette.BLOCKS[level], bad if _failed(runs) else good))
        return Strip(line)

    def _axis(self, bins: list[list[RunBrief]]) -> Strip:
        if not self._runs:
            return Strip.blank(len(bins), self.rich_style)
        first, last = min(run.started for run in self._runs), max(run.started for run in self._runs)
        begin, end = _moment(first, last), _moment(last, first)
        marks = "".join("!" if _failed(runs) else " " for runs in bins)
        if len(bins) > len(begin) + len(end) + 2:
            marks = marks[len(begin) + 1 : len(bins) - len(end) - 1]
            # What the bars are, where no mark is.
            marks = f"{begin} {marks.replace(' ' * len(_LABEL), _LABEL, 1)} {end}"
        return Strip([Segment(marks, self.rich_style)])

    def on_click(self, event: events.Click) -> None:
        """Go to the first run of the bar that was clicked."""
        bins = self._binned()
        at = event.get_content_offset(self)
        if at is not None and at.x < len(bins) and bins[at.x]:
            self.post_message(self.Picked(bins[at.x][0].number))


def _failed(runs: Sequence[RunBrief]) -> bool:
    return any(not run.well and not run.tool for run in runs)


def _moment(time: float, other: float) -> str:
    return f"{day(time)} {clock(time)[:5]}" if abs(time - other) > DAY / 2 else clock(time)[:8]
