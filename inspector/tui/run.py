"""One run: its exchanges in time, the one under the cursor, and what was found; also played as it happened."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from textual.binding import Binding
from textual.containers import Horizontal, Vertical
from textual.widgets import Static

from inspector.model import Severity
from inspector.text import clean, seconds
from inspector.tui import palette
from inspector.tui.exchange import ExchangePane
from inspector.tui.onrecord import OnRecord
from inspector.tui.panes import Divider, PaneTabs, told
from inspector.tui.replay import Played
from inspector.tui.rows import Column, Rows
from inspector.tui.sequence import Sequence as Diagram
from inspector.tui.timeline import Entry, entries
from inspector.tui.transport import Knowledge, Transport
from inspector.tui.waterfall import Timed, Waterfall

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from textual import events
    from textual.widget import Widget

    from inspector.brief import Brief, RunBrief
    from inspector.model import Finding

PANES = ("left", "right", "below")
NARROW = 100
"""Columns below which the panes are tabs."""
FINDINGS: tuple[Column[Finding], ...] = (
    Column("", lambda each, _: palette.severity(each.severity), 7, sort=lambda each: -each.severity.rank),
    Column("rule", lambda each, _: each.rule, 4, sort=lambda each: each.rule),
    Column("record", lambda each, _: str(each.seqs[0]) if each.seqs else "-", 6, right=True),
    Column("what", lambda each, _: clean(each.message), 20, 1),
)


class RunView(Played, OnRecord):
    """A run: left its exchanges as waterfall or sequence, right the one under the cursor, below the findings."""

    BINDINGS = [
        Binding("enter", "open", "Open", show=False),
        Binding("w", "other", "Sequence"),
        Binding("z", "zoom", "Zoom pane", show=False),
        Binding("tab", "next_pane(1)", "Next pane", show=False, priority=True),
        Binding("shift+tab", "next_pane(-1)", "Previous pane", show=False, priority=True),
        Binding("F", "part('files')", "Files"),
        Binding("C", "part('catalog')", "Catalog"),
        Binding("O", "part('connections')", "Connections", show=False),
        Binding("B", "bootstrap", "Bootstrap", show=False),
        Binding("f", "filter", "Filter", show=False),
        Binding("e", "export", "Export", show=False),
        Binding("ctrl+down", "neighbour(1)", "Next run", show=False),
        Binding("ctrl+up", "neighbour(-1)", "Previous run", show=False),
        Binding("shift+left", "resize('side', -4)", "Narrower", show=False),
        Binding("shift+right", "resize('side', 4)", "Wider", show=False),
        Binding("shift+up", "resize('below', 2)", "Findings taller", show=False),
        Binding("shift+down", "resize('below', -2)", "Findings shorter", show=False),
    ]
    DEFAULT_CSS = """
    RunView #verdict { height: auto; max-height: 4; padding: 0 1; background: $panel; }
    RunView #upper { height: 1fr; }
    RunView #left { width: 1fr; }
    RunView #right { width: 45%; }
    RunView #below { height: 9; }
    RunView .gone { display: none; }
    RunView.narrow #right, RunView.narrow #left { width: 1fr; }
    RunView.narrow #below { height: 1fr; }
    RunView.narrow Divider { display: none; }
    RunView PaneTabs { display: none; }
    RunView.narrow PaneTabs { display: block; }
    """

    def __init__(self, number: int, seq: int | None = None, finding: Finding | None = None) -> None:
        """Show run ``number``, with the cursor on record ``seq`` where it proves ``finding``."""
        super().__init__()
        self.number = number
        self._wanted = seq
        self._finding = finding
        self._filter = ""
        self._shown: RunBrief | None = None
        self._briefs: list[Brief] = []
        self._pane = "left"
        self._zoomed = False

    # -- what is shown ----------------------------------------------------------------------------------

    def body(self) -> Iterable[Widget]:
        yield Static("", id="verdict", markup=False)
        yield PaneTabs({"left": "Exchanges", "right": "Exchange", "below": "Findings"})
        with Horizontal(id="upper"):
            with Vertical(id="left"):
                yield Waterfall(id="waterfall")
                yield Diagram(id="sequence", classes="gone")
            yield Divider("side")
            with Vertical(id="right"):
                yield ExchangePane(id="exchange")
                yield Knowledge(id="knowledge", classes="gone")
        yield Divider("below")
        with Vertical(id="below"):
            yield Rows(FINDINGS, lambda each: (each.rule, each.message), id="findings")
        yield Transport(id="transport")

    @property
    def run(self) -> RunBrief | None:
        """The run, as it is known now."""
        return self.source.run(self.number)

    def timed(self) -> tuple[Waterfall, Diagram]:
        """Waterfall and sequence, of which one is shown."""
        return self.query_one(Waterfall), self.query_one(Diagram)

    @property
    def _list(self) -> Timed:
        waterfall, sequence = self.timed()
        return sequence if waterfall.has_class("gone") else waterfall

    def heading(self) -> str:
        run = self.run
        if run is None:
            return f"run {self.number} is part of another one now"
        version = f" ({clean(run.agent_version)})" if run.agent_version else ""
        told = f"run {run.number} of {clean(run.name)}{version}: {run.outcome} in {seconds(run.duration)}"
        return told + (f"   {clean(self._filter)}" if self._filter else "")

    def update(self) -> None:
        """Show the run as it is known now; where it ended before, the view goes along with what is new."""
        super().update()
        run = self.run
        if run is None or run is self._shown:
            return
        self._shown = run
        if self._filter:
            read = partial(self.inspector.filtering.read_briefs, self._filter, self.number)
            self.sift(read, partial(self._show, run))
        else:
            self._show(run, self.source.briefs(self.number))

    def _show(self, run: RunBrief, briefs: list[Brief]) -> None:
        self._briefs = briefs
        self._list.load(run, briefs)
        self._tell(run)
        findings: Rows[Finding] = self.query_one("#findings", Rows)
        findings.show(sorted(run.findings, key=lambda each: -each.severity.rank))
        self.take(entries(run, briefs))
        if self._wanted is None and self.query_one(ExchangePane).seq is None:
            self._wanted = _telling(run, briefs)
        if self._wanted is not None:
            self.show_record(self._wanted, self._finding)
            self._wanted = None

    def _tell(self, run: RunBrief) -> None:
        verdict = self.query_one("#verdict", Static)
        verdict.update(told(run, self.app.size.width - 2))
        verdict.set_class(not run.verdict, "gone")

    def on_mount(self) -> None:
        self._lay_out()
        super().on_mount()
        self._list.focus()

    def on_resize(self, event: events.Resize) -> None:
        self._lay_out()

    def _lay_out(self) -> None:
        """On a narrow terminal, and where one pane was zoomed, only that pane is there."""
        narrow = self.app.size.width < NARROW or self._zoomed
        self.set_class(narrow, "narrow")
        shown = {self._pane} if narrow else set(PANES)
        for pane in PANES:
            self.query_one(f"#{pane}").set_class(pane not in shown, "gone")
        self.query_one("#upper").set_class(shown == {"below"}, "gone")
        self.query_one(PaneTabs).show(self._pane)
        if (run := self.run) is not None:
            self._tell(run)

    # -- the cursor -------------------------------------------------------------------------------------

    def show_record(self, seq: int, finding: Finding | None = None) -> None:
        """Put the cursor on a record, where it proves a finding."""
        for each in self.timed():
            place = next((entry for entry in each.items if entry.seq == seq), None)
            if place is not None:
                each.go(each.key(place))
        self.query_one(ExchangePane).show(seq, finding)

    def follow_cursor(self) -> None:
        """Show the exchange under the cursor."""
        entry = self._list.item
        if entry is not None and entry.seq is not None:
            self.query_one(ExchangePane).show(entry.seq)
            self.tell_mark()

    def on_rows_moved(self, event: Rows.Moved[Entry]) -> None:
        if event.rows is self._list and not self.playing:
            self.follow_cursor()

    def on_rows_chosen(self, event: Rows.Chosen[Entry | Finding]) -> None:
        item = event.item
        if isinstance(item, Entry):
            if item.seq is not None:
                self.inspector.open_exchange(self.number, item.seq)
        elif item.seqs:
            self.show_record(item.seqs[0], item)
            if self.has_class("narrow"):
                self._enter("right")
            self.query_one(ExchangePane).focus()

    # -- panes ------------------------------------------------------------------------------------------

    def _enter(self, pane: str) -> None:
        """Go to a pane; on a narrow terminal it is the one that is shown."""
        self._pane = pane
        self._lay_out()
        target = {"left": self._list, "right": self.query_one(ExchangePane), "below": self.query_one("#findings")}[pane]
        target.focus()

    def on_pane_tabs_picked(self, event: PaneTabs.Picked) -> None:
        self._enter(event.pane)

    def action_zoom(self) -> None:
        """Let the pane with the focus have the whole screen, or give the others their room back."""
        self._zoomed = not self._zoomed
        self._pane = self._focused_pane()
        self._lay_out()

    def _focused_pane(self) -> str:
        focused = self.focused
        holds = [pane for pane in PANES if focused and self.query_one(f"#{pane}") in focused.ancestors_with_self]
        return next(iter(holds), self._pane)

    def action_next_pane(self, by: int) -> None:
        self._enter(PANES[(PANES.index(self._focused_pane()) + by) % len(PANES)])

    def action_other(self) -> None:
        """Waterfall or sequence."""
        before = self._list
        for each in self.timed():
            each.toggle_class("gone")
        now = self._list
        if self._shown is not None:
            now.load(self._shown, self._briefs)
            self.draw()
        if before.item is not None and before.item.seq is not None:
            seq = before.item.seq
            place = next((entry for entry in now.items if entry.seq == seq), None)
            if place is not None:
                now.go(now.key(place))
        now.focus()

    def on_divider_moved(self, event: Divider.Moved) -> None:
        self.action_resize(event.which, event.by)

    def action_resize(self, which: str, by: int) -> None:
        if which == "side":
            right = self.query_one("#right")
            right.styles.width = max(20, min(self.size.width - 20, right.size.width - by))
        else:
            below = self.query_one("#below")
            below.styles.height = max(3, min(self.size.height - 12, below.size.height + by))

    # -- what else can be done with a run ---------------------------------------------------------------

    def action_part(self, part: str) -> None:
        self.inspector.open_part(part, self.number)

    def action_bootstrap(self) -> None:
        run = self.run
        self.inspector.open_bootstrap(run.certname if run else None)

    def action_back(self) -> None:
        """Give up a filter that takes long, take the filter away, or go back to the runs."""
        if self.given_up() or self._filter:
            self._set_filter("")
        else:
            super().action_back()

    def action_neighbour(self, by: int) -> None:
        """The run before or after this one."""
        numbers = [run.number for run in self.source.runs]
        if self.number in numbers and 0 <= numbers.index(self.number) + by < len(numbers):
            self.app.pop_screen()
            self.inspector.open_run(numbers[numbers.index(self.number) + by])

    def action_open(self) -> None:
        seq = self.record()
        if seq is not None:
            self.inspector.open_exchange(self.number, seq)

    def action_filter(self) -> None:
        self.ask_filter(self._set_filter, self._filter)

    def _set_filter(self, text: str) -> None:
        before, self._filter = self._filter, text.strip()
        self._shown = None
        if not self.attempt(self.update):
            self._filter = before
            self.update()

    def record(self) -> int | None:
        """The record under the cursor."""
        return self._list.item.seq if self._list.item else None

    def action_export(self) -> None:
        shown = {entry.seq for entry in self._list.items if entry.seq is not None}
        self.inspector.export(sorted(shown))


def _telling(run: RunBrief, briefs: Sequence[Brief]) -> int | None:
    """The record to begin with: what proves the worst finding of a run that is not well, or else the first."""
    shown = [each.seq for each in briefs]
    bad = [each for each in run.findings if each.severity is Severity.ERROR] if run.verdict else []
    proofs = [each.seqs[0] for each in bad if each.seqs and each.seqs[0] in shown]
    return next(iter(proofs or shown), None)
