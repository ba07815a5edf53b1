"""One run: its exchanges over time, the selected exchange, and the findings; a run can be played back."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from textual.binding import Binding
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Static

from inspector.explain.timeline import Entry, Fold, entries
from inspector.model import Finding
from inspector.pages import palette
from inspector.rules import fixes
from inspector.runs.snapshot import RunState
from inspector.text import clean, seconds
from inspector.tui.columns import Column
from inspector.tui.exchange import NO_RECORD, OnRecord
from inspector.tui.exchange_pane import ExchangePane
from inspector.tui.filtered import Filtered
from inspector.tui.paned import Paned
from inspector.tui.panes import Pane, PaneTabs
from inspector.tui.playback import Knowledge, Played, Transport
from inspector.tui.rows import Rows
from inspector.tui.sequence import Sequence as Diagram
from inspector.tui.timed import Timed
from inspector.tui.verdicts import finding_in_full, headline, hung, in_full
from inspector.tui.waterfall import Waterfall

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rich.console import Group
    from rich.text import Text
    from textual.widget import Widget

    from inspector.summaries.summary import Brief, RunBrief
    from inspector.summaries.under_way import UnderWay
    from inspector.tui.findings import Findings
    from inspector.tui.view import View

FINDINGS: tuple[Column[Finding], ...] = (
    Column("", lambda finding, _: palette.severity(finding.severity), 7, sort=lambda finding: -finding.severity.rank),
    Column("rule", lambda finding, _: finding.rule, 4, sort=lambda finding: finding.rule),
    Column("message", lambda finding, _: clean(finding.message), 20, 1),
)


class RunView(Paned, Played, Filtered, OnRecord):
    """A run: its exchanges as waterfall or sequence, the selected exchange, and the findings."""

    BINDINGS = [
        Binding("enter", "open", "Open", key_display="Enter", show=False),
        Binding("c", "cause", "Fix"),
        Binding("w", "other", "Sequence"),
        Binding("F", "findings", "Findings"),
        Binding("C", "part('catalog')", "Catalog"),
        Binding("L", "part('files')", "Files"),
        Binding("O", "part('connections')", "Connections", show=False),
        Binding("d", "differences", "Differences", show=False),
        Binding("B", "bootstrap", "Bootstrap", show=False),
        Binding("P", "saved", "Saved filters", show=False),
        Binding("f", "filter", "Filter", show=False),
        Binding("e", "export", "Export", show=False),
        Binding("E", "report", "Report in HTML", show=False),
        Binding("apostrophe", "marked(1)", "Next mark", key_display="'", show=False),
        Binding("quotation_mark", "marked(-1)", "Previous mark", key_display='"', show=False),
        Binding("ctrl+down", "neighbour(1)", "Next run", show=False),
        Binding("ctrl+up", "neighbour(-1)", "Previous run", show=False),
    ]
    PANES = {"top": "Exchanges", "left": "Record", "right": "Findings"}
    DEFAULT_CSS = """
    RunView #verdict { height: auto; padding: 0 1; border-left: outer $error; }
    RunView #state { width: 1fr; }
    RunView.-broad #state { width: 60; }
    RunView #findings { max-height: 40%; }
    RunView #explanation { height: 1fr; padding: 0 1; border-top: solid $border-blurred; }
    """

    def __init__(self, number: int, seq: int | None = None, finding: Finding | None = None) -> None:
        """Show run ``number``, with the cursor on record ``seq`` where the evidence of ``finding`` is."""
        super().__init__()
        self.number = number
        self._wanted = seq
        self._finding = finding
        self._applied = ""
        self._shown: RunBrief | None = None
        self._briefs: list[Brief] = []
        """The records that match the filter."""
        self._whole: dict[int, Brief] = {}
        """All records of the run, by number."""
        self._explained: object = None
        """What is explained beside the record."""
        self._came: Callable[[], object] | None = None
        """Where a finding led to its evidence from."""
        self._asked_from = ""
        """The pane where the agent's state was asked for."""

    # -- what is shown ----------------------------------------------------------------------------------

    def body(self) -> Iterable[Widget]:
        yield Static("", id="verdict", markup=False)
        yield PaneTabs(self.PANES)
        with Pane(id="top", title="Exchanges"):
            yield Waterfall(id="waterfall", times=self.inspector.times)
            yield Diagram(id="sequence", classes="gone")
        with Horizontal(id="lower"):
            with Pane(id="left", classes="below", title="Record"):
                yield ExchangePane(id="exchange")
            with Pane(id="state", classes="gone", title="Agent state"):
                yield Knowledge(id="knowledge")
            with Pane(id="right", classes="side", title="Findings"):
                proof = Column[Finding](
                    "record", lambda finding, _: str(self._proof(finding)) if finding.seqs else "-", 6, right=True
                )
                columns = (*FINDINGS[:2], proof, *FINDINGS[2:])
                yield Rows(columns, lambda finding: (finding.rule, finding.message), id="findings")
                with VerticalScroll(id="explanation"):
                    yield Static("", markup=False)
        yield Transport(id="transport")

    @property
    def run(self) -> RunBrief | None:
        """The current state of the run."""
        return self.source.run(self.number)

    @property
    def selected_run(self) -> RunBrief | None:
        """The run that is shown."""
        return self.run

    @property
    def timed(self) -> Timed:
        """The waterfall or the sequence, whichever is shown."""
        waterfall = self.query_one(Waterfall)
        return self.query_one(Diagram) if waterfall.has_class("gone") else waterfall

    def heading(self) -> str:
        run = self.run
        if run is None:
            return f"run {self.number} is now part of another run"
        version = f" ({clean(run.agent_version)})" if run.agent_version else ""
        how = run.ending if run.state is not RunState.OVER else f"{run.ending} in {seconds(run.duration)}"
        text = f"run {run.label} of {clean(run.name)}{version}: {how}"
        if run.state is not RunState.OVER:
            return text + (f"   {clean(self._filter)}" if self._filter else "")
        connected = self.query_one(Waterfall).connected
        if self._shown and seconds(run.duration + connected) != seconds(run.duration):
            more = f" from its first request, {seconds(connected)} after it connected"
            text += more if len(text) + len(more) + 2 <= self.app.size.width else ""
        return text + (f"   {clean(self._filter)}" if self._filter else "")

    def update(self) -> None:
        """Show the current state of the run; if the view was at its end, it follows new records."""
        super().update()
        run = self.run
        if run is None or run is self._shown or self.filter_running:
            return
        if run == self._shown:
            self._go_on(run)
            return
        self._shown = run
        self._whole = {brief.seq: brief for brief in self.source.briefs(self.number)}
        if self._filter:
            read = partial(self.inspector.filtering.read_briefs, self._filter, self.number)
            self.start_filter(read, partial(self._show, run))
        else:
            self._show(run, list(self._whole.values()))

    def _show(self, run: RunBrief, briefs: list[Brief]) -> None:
        self._briefs = briefs
        # Another filter leaves the cursor on its record.
        self.timed.load(run, briefs, self._whole.values(), tail=self._filter == self._applied, doing=self._doing(run))
        self._applied = self._filter
        self._show_verdict(run)
        findings: Rows[Finding] = self.query_one("#findings", Rows)
        findings.show(run.ordered)
        findings.styles.height = len(run.ordered) + 1
        self.divide()
        self._show_finding()
        self.retitle()
        self.take(entries(run, self._whole.values()))
        if self._wanted is None and self.query_one(ExchangePane).seq is None:
            self._wanted, self._finding = self._start(run)
        if self._wanted is not None:
            self.show_record(self._wanted, self._finding)
            self._wanted = None

    def _doing(self, run: RunBrief) -> UnderWay[RunBrief] | None:
        """What its agent does, or did when the recording ended; None if it is over."""
        return None if run.state is RunState.OVER else self.source.judgement.doing(self.number)

    def _go_on(self, run: RunBrief) -> None:
        """Show how long what is under way takes by now."""
        if run.state is RunState.OPEN:
            self._show_verdict(run)
            if not run.findings:
                self._show_finding()
            if not self.playing:
                self.timed.load(run, self._briefs, self._whole.values(), doing=self._doing(run))

    def _show_verdict(self, run: RunBrief) -> None:
        verdict = self.query_one("#verdict", Static)
        verdict.update(headline(run, self.app.size.width - 4, self._doing(run)))
        verdict.set_class(not self._has_headline(run), "gone")

    @staticmethod
    def _has_headline(run: RunBrief) -> bool:
        return run.verdict is not None or run.state is not RunState.OVER

    def opened(self) -> None:
        """Focus the list."""
        self.lay_out()
        self.timed.focus()

    def lay_out(self) -> None:
        """Lay out the panes, and as much of the verdict as fits."""
        super().lay_out()
        # The agent's state is beside the others if there is room for it, otherwise in the place of the record.
        here = not self.narrow or self.current == "left"
        self.query_one("#state").set_class(not (here and (self.beside or self.knowing)), "gone")
        if self.knowing and not self.beside:
            self.query_one("#left").add_class("gone")
        self.call_after_refresh(self._show_finding)
        if (run := self.run) is not None:
            self._show_verdict(run)

    def wanted(self) -> tuple[int, int]:
        """The lines of all records with titles, legend and frame, and those below the verdict."""
        width, height = self.app.size
        run = self.run
        verdict = 0
        if run and self._has_headline(run):
            verdict = len(headline(run, width - 4, self._doing(run)).wrap(self.app.console, width - 4))
        return self.timed.number_of_lines + 4, height - 3 - verdict

    def target(self, pane: str) -> Widget:
        """The widget that gets the focus in a pane."""
        return {"top": self.timed, "left": self.query_one(ExchangePane), "right": self.query_one("#findings")}[pane]

    # -- the cursor -------------------------------------------------------------------------------------

    def show_record(self, seq: int, finding: Finding | None = None) -> None:
        """Move the cursor to a record, where the evidence of a finding is."""
        self.timed.go(seq)
        self.show_exchange()
        self.query_one(ExchangePane).show(seq, finding)
        owner = self.source.owner(seq)
        if owner is not None and owner.number != self.number:
            self.show_message(f"record {seq} belongs to run {owner.label} and is evidence for this finding")

    def follow_cursor(self) -> None:
        """Show the selected exchange."""
        entry = self.timed.item
        self.query_one("#top", Pane).name_it("Exchanges", self.timed.spent())
        if entry is not None:
            self.query_one(ExchangePane).show(entry.seq)
            self.show_mark()
            if self.beside:
                self.show_state(entry.ended)

    def on_rows_moved(self, event: Rows.Moved[Entry | Finding]) -> None:
        if event.rows is self.timed and not self.playing:
            if event.rows.has_focus and event.item is not self.driven:
                self.show_exchange()
            self.follow_cursor()
        elif event.rows.id == "findings":
            self._show_finding()

    def on_rows_chosen(self, event: Rows.Chosen[Entry | Finding]) -> None:
        item = event.item
        if isinstance(item, Fold):
            self.timed.turn(item)
        elif isinstance(item, Entry):
            self.action_open()
        elif item.seqs:
            self._evidence(item)
            self._came = partial(self.enter, "right")

    def on_exchange_pane_loaded(self, event: ExchangePane.Loaded) -> None:
        """Name the record in the frame."""
        event.stop()
        seq = self.query_one(ExchangePane).seq
        self.query_one("#left", Pane).name_it("Record" if seq is None else f"Record {seq}")

    @property
    def growing(self) -> bool:
        return self.run is not None and self.run.state is RunState.OPEN

    @property
    def beside(self) -> bool:
        """Whether the agent's state has a pane beside the others."""
        return self.broad and not self.narrow

    def revealed(self) -> None:
        """Show the right pane if it is hidden."""
        if self.has_class("narrow"):
            self.current = "left"
            self.lay_out()

    def _show_finding(self) -> None:
        """Show the selected finding in full."""
        rows: Rows[Finding] = self.query_one("#findings", Rows)
        if rows.item and self.run:
            over = self.run.over_since(rows.item.rule)
            self._explain(hung(finding_in_full(rows.item, self.run, self._wide)), (rows.key(rows.item), over))
        elif self.run:
            self._explain(in_full(self.run, self._wide, self._doing(self.run)), self.run.verdict)

    @property
    def _wide(self) -> int:
        """The columns of an explanation, beside its scrollbar."""
        return (self.query_one("#explanation").size.width or self.app.size.width // 2 - 4) - 2

    def _explain(self, text: Text | Group, about: object) -> None:
        self.query_one("#explanation Static", Static).update(text)
        if about != self._explained:  # the same text stays where it was scrolled to
            self._explained = about
            self.query_one("#explanation").scroll_home(animate=False)

    def _proof(self, finding: Finding) -> int:
        """The best evidence for a finding: a record of this run, if possible one that failed."""
        mine = [self._whole[seq] for seq in finding.seqs if seq in self._whole]
        wrong = [brief for brief in mine if brief.failed]
        return next((brief.seq for brief in (*wrong, *mine)), finding.seqs[0])

    def _start(self, run: RunBrief) -> tuple[int | None, Finding | None]:
        """Where to begin: at the cause if the run is not complete, otherwise at its first record."""
        causes = [finding for finding in run.findings if finding.rule == run.cause and finding.seqs]
        if causes:
            return self._proof(causes[0]), causes[0]
        return next((entry.seq for entry in self.timed.items if entry.seq is not None), None), None

    def value_to_copy(self) -> str | None:
        """The selected value; for a finding, its fix."""
        if self.current == "right":
            rows: Rows[Finding] = self.query_one("#findings", Rows)
            return clean(fixes.plain(self.run.fix_for(rows.item.rule))) if rows.item and self.run else None
        return super().value_to_copy()

    def renamed(self, action: str) -> str:
        """``w`` leads from the sequence back to the waterfall."""
        return "Waterfall" if action == "other" and isinstance(self.timed, Diagram) else ""

    def action_other(self) -> None:
        """Switch between waterfall and sequence."""
        # The layout of both takes a while: respond to the key first.
        self.answer(f"drawing the {'waterfall' if isinstance(self.timed, Diagram) else 'sequence'} …")
        self.call_after_refresh(self._switch)

    def _switch(self) -> None:
        if not self.is_attached:
            return  # Escape was pressed meanwhile
        seq = self.record()
        for view in self.query(Timed):
            view.toggle_class("gone")
        if self._shown is not None:
            self.timed.load(self._shown, self._briefs, self._whole.values(), doing=self._doing(self._shown))
            self.draw()
            self.divide()
        if seq is not None:
            self.timed.go(seq)
        self.timed.focus()
        self.refresh_bindings()
        self.retitle()

    # -- what else can be done with a run ---------------------------------------------------------------

    def action_part(self, part: str) -> None:
        """Show the ``files``, the ``catalog`` or the ``connections`` of the run."""
        from inspector.tui.catalog import Catalog
        from inspector.tui.connections import Connections
        from inspector.tui.files import Files

        views: dict[str, Callable[[int], View]] = {"files": Files, "catalog": Catalog, "connections": Connections}
        self.app.push_screen(views[part](self.number))

    def action_findings(self) -> None:
        """Show all findings of this run."""
        self._list_findings()

    def _list_findings(self, before: Findings | None = None) -> None:
        """Show the findings of this run, as they were listed ``before`` one of them was followed."""
        from inspector.tui.findings import Findings

        screen = Findings(self.number, lambda finding: self._follow(finding, screen), before)
        self.app.push_screen(screen)

    def _follow(self, finding: Finding, listed: Findings) -> None:
        self._evidence(finding)
        self._came = partial(self._list_findings, listed)

    def _evidence(self, finding: Finding) -> None:
        """Show the record that is evidence for a finding."""
        if finding.seqs:
            self.show_record(self._proof(finding), finding)
            self.enter("left")

    def action_differences(self) -> None:
        """Show what is different from the last run of the node that went well."""
        self.inspector.open_differences(None, self.number)

    def action_back(self) -> None:
        """One step back: to the findings, if one of them led here; from the agent's state or the sequence to the
        exchanges; else cancel or clear a filter, or leave the run."""
        came, self._came = self._came, None
        if came is not None:
            came()
        elif self.filter_running:
            super().action_back()
        elif self.beside and self.query_one(Knowledge).has_focus:
            self.timed.focus()
        elif self.knowing and not self.query_one("#state").has_class("gone"):
            self.show_exchange()
            self.enter(self._asked_from or self.current)
        elif isinstance(self.timed, Diagram):
            self.action_other()
        else:
            super().action_back()

    def action_knowledge(self) -> None:
        self._asked_from = self.current
        super().action_knowledge()

    def action_cause(self) -> None:
        """Go to the finding that is the cause, with its fix; to the verdict if none is."""
        run = self.run
        if run is None or run.verdict is None:
            well = run is None or run.state is RunState.OVER
            self.show_message(
                "This run went well: it has no cause of a failure."
                if well
                else "This run has no verdict: it is not over."
            )
            return
        rows: Rows[Finding] = self.query_one("#findings", Rows)
        self._came = partial(self.enter, self.current)
        self.enter("right")
        found = run.cause_found
        if found is None or not rows.go(rows.key(found)):
            self._explain(in_full(run, self._wide), run.verdict)

    def action_neighbour(self, by: int) -> None:
        """Open the next or the previous run."""
        numbers = [run.number for run in self.source.runs]
        if self.number in numbers and 0 <= numbers.index(self.number) + by < len(numbers):
            self.app.pop_screen()
            self.inspector.open_run(numbers[numbers.index(self.number) + by])
        else:
            self.show_message(f"This is the {'last' if by > 0 else 'first'} run.")

    def action_open(self) -> None:
        seq = self.record()
        if seq is not None:
            self.inspector.open_exchange(self.number, seq)
        else:
            self.show_message(NO_RECORD)

    def filter_changed(self) -> None:
        self._shown = None

    def mark_changed(self) -> None:
        """Update the list as well, where marked records have a star."""
        super().mark_changed()
        self.timed.refresh()

    def record(self) -> int | None:
        """The selected record."""
        return self.timed.item.seq if self.timed.item else None

    def action_marked(self, direction: int) -> None:
        """Go to the next marked record."""
        marks = self.inspector.marks
        if not self.timed.seek(lambda entry: entry.seq is not None and marks.marked(entry.seq), forward=direction > 0):
            self.show_message("No record of this run is marked; m marks one.")

    def action_export(self) -> None:
        shown = {entry.seq for entry in self.timed.listed if entry.seq is not None}
        self.inspector.export(sorted(shown))
