"""A run as a waterfall: one line per record with a bar to the scale of the run, and the times without traffic."""

from __future__ import annotations

import math
from statistics import median
from typing import TYPE_CHECKING

from rich.text import Text
from textual.binding import Binding

from inspector.explain.master_log.measured import NOTHING
from inspector.explain.timeline import Axis, Entry, Fold, Work, opening, pieces
from inspector.model import Severity
from inspector.pages import palette
from inspector.pages.styles import BLUE, CYAN, DOUBT, GREEN, ORANGE, SLATE, VIOLET, YELLOW
from inspector.text import lasting, seconds, size
from inspector.tui.columns import Column, drawn_line
from inspector.tui.timed import Timed, inside, marks, request

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable

    from textual import events
    from textual.strip import Strip

    from inspector.explain.master_log.measured import MasterTimes
    from inspector.explain.timeline import Piece
    from inspector.summaries.summary import Brief

WORK: dict[Work, tuple[str, str, str]] = {
    "connect": ("─", SLATE, "connect"),
    "tls": ("┼", VIOLET, "TLS"),
    "sending": ("▸", CYAN, "request"),
    "waiting": ("▆", YELLOW, "waiting"),
    "receiving": ("◂", GREEN, "answer"),
    "proxy": ("%", ORANGE, "proxy"),
}
"""What takes the time of a record: how it is drawn, its colour, and its name."""
MASTER_WORK: dict[Work, tuple[str, str, str]] = {
    "network": ("╌", SLATE, "network"),
    "queue": ("▒", ORANGE, "queue"),
    "serve": ("▪", YELLOW, "serve"),
    "compile": ("█", BLUE, "compile"),
}
"""The same for what waiting was, by a master's logs."""
SILENT, SHORTENED, MOMENT = ".", "≈", "●"


def _legend(works: Iterable[tuple[str, str, str]]) -> Text:
    silence = (f"{SILENT} silence {SHORTENED} shortened", palette.SILENCE)
    return Text.assemble(*((f"{glyph} {name} ", style) for glyph, style, name in works), silence)


DRAWN = WORK | MASTER_WORK
LEGEND = _legend(WORK.values())
MASTER_LEGEND = _legend(DRAWN.values())
"""With a master's logs."""
SLOW = 0.5
"""Seconds from which an exchange can be an outlier,"""
OUTLIER = 5
"""which it is if it took this many times the median of its run."""
CLOSEST = 4096.0
"""Maximum zoom of the time axis."""
_BAD = palette.SEVERITIES[Severity.ERROR]


def status(brief: Brief) -> Text:
    """The status of a record."""
    if brief.kind == "exchange" and brief.status is not None:
        return Text(str(brief.status), style=_BAD if brief.failed else "")
    return Text({"exchange": "none", "handshake": "TLS", "gap": "gap"}[brief.kind], style=_BAD)


class Waterfall(Timed):
    """One line per record with its bar.

    ``<`` and ``>`` zoom the time axis around the cursor, ``0`` shows all of it. Long silences are shortened.
    """

    TITLED = 5
    BINDINGS = [
        Binding("greater_than_sign", "scale(2)", "Zoom in on the time axis", key_display=">", show=False),
        Binding("less_than_sign", "scale(0.5)", "Zoom out on the time axis", key_display="<", show=False),
        Binding("0", "scale(0)", "The whole time axis", show=False),
    ]

    def __init__(
        self, *, id: str | None = None, classes: str | None = None, times: MasterTimes = NOTHING  # noqa: A002
    ) -> None:  # fmt: skip
        """``times`` is what a master's logs say."""
        columns: tuple[Column[Entry], ...] = (
            Column("record", lambda entry, _: self.number(entry), 6, right=True, sort=lambda entry: entry.seq or 0),
            Column("request", self._request, 24, 2, sort=lambda entry: entry.text),
            Column("status", lambda entry, _: self._if_over(entry, status), 6, right=True,
                   sort=lambda entry: -(entry.brief.status or 999) if entry.brief else 0),
            Column("size", lambda entry, _: self._sized(entry), 8, right=True, least=90,
                   sort=lambda entry: -entry.brief.received if entry.brief else 0),
            Column("time", lambda entry, _: self._took(entry), 9, right=True,
                   sort=lambda entry: entry.began - entry.ended),
            Column("", self._bar, 14, 1, drawn=True),
            Column("findings", self._found, 9, 2),
        )  # fmt: skip
        super().__init__(columns, id=id, classes=classes)
        self._axis = Axis()
        self._times = times
        self._opens: dict[int, tuple[bool, bool]] = {}
        self._usual = 0.0
        """Seconds: the median of the run's exchanges."""
        self._phases: dict[Hashable, float] = {}
        """Seconds that the records of a phase took, by the key of its heading."""
        self._bars: dict[Hashable, tuple[object, Text]] = {}
        """The bar of each fold, by its key, with what it was drawn for: it has hundreds of parts."""
        self._zoom = 1.0
        self._left = 0.0

    def measure(self, timeline: list[Entry]) -> None:
        """Calculate the axis."""
        self._opens = opening(timeline)
        self._bars = {}
        records = [entry for entry in timeline if entry.kind == "record"]
        # The silence that goes on until now has nothing at its end.
        self._axis = Axis.of(
            (entry.ended, entry.ended) if entry.kind == "silence" else self._span(entry)
            for entry in timeline
            if entry.kind != "phase"
        )
        self._usual = median(entry.ended - entry.began for entry in records) if records else 0.0
        self._phases = {}
        phase: Hashable = None
        for entry in timeline:
            if entry.kind == "phase":
                phase = entry.key
            elif entry.kind == "record":
                self._phases[phase] = self._phases.get(phase, 0.0) + entry.ended - entry.began

    def _pieces(self, brief: Brief) -> list[Piece]:
        agent, upstream = self._opens[brief.seq]
        return pieces(brief, opens_agent_leg=agent, opens_master_leg=upstream, master=self._times.get(brief.seq))

    def _span(self, entry: Entry) -> tuple[float, float]:
        brief = entry.brief
        if brief is None:
            return entry.began, entry.ended
        first = brief.times.agent_connected if self._opens[brief.seq][0] else None
        return entry.began if first is None else min(first, entry.began), entry.ended

    def _arrange(self) -> None:
        """In the order of time records are in their phases; in another order there are only records."""
        super()._arrange()
        if self._sort is not None:
            self.items = [entry for entry in self.items if entry.kind == "record"]

    # -- the time axis ----------------------------------------------------------------------------------

    def action_scale(self, by: float) -> None:
        """Zoom the time axis by a factor; 0 shows all of it."""
        self._zoom = min(max(1.0, self._zoom * by), CLOSEST)
        if self.item is not None:
            self._left = self._axis.place(self.item.began) - 0.5 / self._zoom
        self.refresh()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """Zoom in with Ctrl and the wheel."""
        if event.ctrl:
            event.prevent_default().stop()
            self.action_scale(2)

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """Zoom out with Ctrl and the wheel."""
        if event.ctrl:
            event.prevent_default().stop()
            self.action_scale(0.5)

    def _window(self) -> tuple[float, float]:
        """The part of the axis that is drawn: its start and length. The selected entry is always in it."""
        wide = 1 / self._zoom
        if self.item is not None and self._zoom > 1:
            place = self._axis.place(self.item.began)
            if not self._left <= place < self._left + wide:
                self._left = place - wide / 5
        self._left = min(max(self._left, 0.0), 1 - wide)
        return self._left, wide

    @property
    def first(self) -> float:
        """When the time axis begins: when the agent connected, before its first request."""
        return self._axis.moment(0.0)

    @property
    def connected(self) -> float:
        """Seconds between the beginning of the axis and the first request."""
        return max(0.0, self.run_brief.started - self.first) if self.run_brief else 0.0

    def _moment(self, place: float) -> str:
        """The moment at a position, in seconds from the beginning of the axis."""
        return f"{self._axis.moment(place) - self.first:.2f} s"

    def title(self, width: int) -> str:
        """The moments at both ends of the drawn part."""
        if not self._whole:
            return ""
        left, wide = self._window()
        first, last = self._moment(left), self._moment(left + wide)
        return f"{first}{last:>{max(0, width - len(first))}}"

    def spent(self) -> str:
        """What the time of the selected record was: 180 ms = connect 2 ms + TLS 8 ms + waiting 170 ms.

        The agent's TLS was before its request: it is not part of that time.
        """
        entry = self.item
        records = _records(entry) if entry is not None and self.over(entry) else []
        if not records:
            return ""
        took: dict[Work, float] = {}
        before = 0.0
        for record in records:
            for piece in self._pieces(record):
                before += max(0.0, min(piece.ended, record.time) - piece.began)
                took[piece.kind] = took.get(piece.kind, 0.0) + max(0.0, piece.ended - max(piece.began, record.time))
        lasted = sum(record.duration for record in records)
        whole = _sum(lasted, {DRAWN[kind][2]: took[kind] for kind in DRAWN if took.get(kind)})
        who = " with the agent" if records[0].times.agent_connected is not None else ""
        return ", then ".join(filter(None, (f"TLS{who} {seconds(before)}" if before else "", whole)))

    def render_line(self, y: int) -> Strip:
        """Draw lines as ``Rows`` does; the last line is a legend of the glyphs if it is free."""
        if y > len(self.items) and y == self.size.height - 1:
            legend = MASTER_LEGEND if self._times.by_record else LEGEND
            return drawn_line([(legend, self.size.width, False)], self.rich_style, self.app.console)
        return super().render_line(y)

    # -- cells ------------------------------------------------------------------------------------------

    def _if_over(self, entry: Entry, words: Callable[[Brief], Text]) -> Text | str:
        if entry.kind != "record" or entry.brief is None:
            return ""
        return words(entry.brief) if self.over(entry) else ""

    def _sized(self, entry: Entry) -> Text | str:
        if isinstance(entry, Fold) and self.over(entry):
            return size(sum(brief.received for brief in entry.briefs))
        return self._if_over(entry, _size)

    def _found(self, entry: Entry, width: int) -> Text | str:
        if isinstance(entry, Fold) and self.over(entry):
            return inside(entry)
        return self._if_over(entry, lambda brief: marks(brief, width))

    def _took(self, entry: Entry) -> Text:
        """The duration: of a phase that of all its records; an outlier stands out."""
        if entry.kind == "phase":
            took = self._phases.get(entry.key, 0.0)  # 0: failed handshakes only
            return Text(seconds(took) if took and self._until is None else "", style="dim")
        if isinstance(entry, Fold) and self.over(entry):
            return Text(seconds(entry.took))
        if entry.kind == "open":
            return Text(lasting(entry.ended - entry.began))
        if entry.brief and entry.brief.kind != "exchange":
            return Text("")
        if not self.over(entry):
            return Text("...")
        took = entry.ended - entry.began
        slow = entry.kind == "record" and took >= max(SLOW, OUTLIER * self._usual)
        return Text(seconds(took), style=f"bold {DOUBT}" if slow else "")

    def _request(self, entry: Entry, width: int) -> Text:
        brief = entry.brief
        if isinstance(entry, Fold):
            return Text(self.mark(entry) + entry.text, style=palette.PHASES[entry.briefs[0].phase][1])
        if brief is None:
            return Text(entry.text, style=WORK["waiting"][1] if entry.kind == "open" else palette.SILENCE)
        if entry.kind == "phase":
            return palette.phase(brief.phase)
        if brief.kind == "exchange":
            return Text(request(brief, self.certname, width))
        return Text(entry.text, style=_BAD)

    def _bar(self, entry: Entry, width: int) -> Text:
        until = self._until if self._until is not None else math.inf
        if not isinstance(entry, Fold):
            return self._drawn(entry, width, *self._window(), until)
        place = width, *self._window(), min(until, entry.ended)
        known = self._bars.get(entry.key)
        if known is None or known[0] != place:
            known = self._bars[entry.key] = place, self._drawn(entry, *place)
        return known[1]

    def _drawn(self, entry: Entry, width: int, left: float, wide: float, until: float) -> Text:
        drawn: list[tuple[str, str] | None] = [None] * width

        def draw(began: float, ended: float, glyph: str, style: str) -> None:
            first = (self._axis.place(began) - left) / wide * width
            last = (self._axis.place(min(ended, until)) - left) / wide * width
            if last < 0 or last == 0 > first or first > width or began > until:
                return
            low = min(max(0, int(first)), width - 1)
            for at in range(low, min(width, max(low + 1, math.ceil(last - 1e-9)))):
                drawn[at] = glyph, style

        if entry.kind == "open":
            draw(entry.began, entry.ended, *WORK["waiting"][:2])
        elif entry.kind == "silence":
            draw(entry.began, entry.ended, SHORTENED if self._axis.short(entry.began, entry.ended) else SILENT, "dim")
        elif entry.kind == "phase":
            draw(entry.began, entry.ended, "│", "dim")
        else:
            for record in _records(entry):
                parts = self._pieces(record)
                if not parts:
                    draw(record.time, record.ended, MOMENT, palette.PHASES[record.phase][1])
                # The longest last: it covers the others in the same cell.
                for piece in sorted(parts, key=lambda piece: piece.ended - piece.began):
                    glyph, style, _ = DRAWN[piece.kind]
                    draw(piece.began, piece.ended, glyph, style)
        return Text.assemble(*(cell or " " for cell in drawn))


def _records(entry: Entry) -> list[Brief]:
    """The record of a line, or those that are folded into it."""
    if isinstance(entry, Fold):
        return entry.briefs
    return [entry.brief] if entry.kind == "record" and entry.brief else []


def _sum(whole: float, parts: dict[str, float]) -> str:
    """A duration and its parts, in one unit: 180 ms = connect 2 + TLS 8 + waiting 170."""
    scale, unit, digits = (1000, "ms", 0) if whole < 1 else (1, "s", 2)
    figures = ((name, f"{took * scale:.{digits}f}") for name, took in parts.items())
    return (
        f"{whole * scale:.{digits}f} {unit} = "
        + " + ".join(f"{name} {figure}" for name, figure in figures if float(figure))
        if parts
        else ""
    )


def _size(brief: Brief) -> Text:
    return Text(size(brief.received) if brief.status is not None else "")
