"""The runs of a capture, one per line."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rich.text import Text
from textual.binding import Binding
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Static

from inspector.errors import InspectorError
from inspector.pages import palette
from inspector.pages.styles import DOUBT
from inspector.summaries import wording
from inspector.text import clean, clock, day, plural, seconds
from inspector.tui.columns import Column
from inspector.tui.filtered import Filtered
from inspector.tui.glance import Glance
from inspector.tui.histogram import BARS, Histogram
from inspector.tui.panes import Pane
from inspector.tui.rows import Rows
from inspector.tui.verdicts import in_full

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from textual.widget import Widget

    from inspector.summaries.summary import RunBrief
    from inspector.tui.prompt import Prompt


FOLLOWING = "The newest run is followed; W ends that."


class RunLine(NamedTuple):
    """A run; if ``of`` is not empty, the heading of an agent with its latest run."""

    run: RunBrief
    of: tuple[RunBrief, ...] = ()
    open: bool = False


def _cell(show: Callable[[RunBrief, int], Text | str]) -> Callable[[RunLine, int], Text | str]:
    return lambda line, width: show(line.run, width)


def _number(line: RunLine) -> Text | str:
    return ("v " if line.open else "> ") + str(len(line.of)) if line.of else line.run.label


def _agent(line: RunLine) -> Text:
    run = line.run
    text = Text(wording.agent(run) + (f" ({clean(run.tool)})" if run.tool else ""))
    if line.of:
        text.stylize("bold")
    return text


def _outcome(line: RunLine) -> Text:
    if not line.of:
        return palette.outcome(line.run)
    text = palette.outcome(line.run)
    if bad := sum(not run.well for run in line.of if run is not line.run):
        text = Text.assemble(text, (f", {bad} bad", palette.OUTCOMES["failed"]))
    return text


def _worst(run: RunBrief) -> int:
    return max((finding.severity.rank for finding in run.findings), default=0)


def _by(key: Callable[[RunBrief], Any]) -> Callable[[RunLine], Any]:
    return lambda line: key(line.run)


class RunRows(Rows[RunLine]):
    """Runs and headings of agents; an agent's runs stay below its heading in every sort order."""

    def _arrange(self) -> None:
        super()._arrange()
        groups = {line.run.name: [line] for line in self.items if line.of}
        if groups:
            for line in self.items:
                if not line.of:
                    groups[line.run.name].append(line)
            self.items = [line for group in groups.values() for line in group]


class Runs(Filtered):
    """The runs of the capture, one per line, with their phases to scale. Enter opens a run."""

    BINDINGS = [
        Binding("P", "saved", "Saved filters", show=False),
        Binding("f", "filter", "Filter"),
        Binding("a", "group", "By agent"),
        Binding("W", "follow", "Follow"),
        Binding("F", "findings", "Findings"),
        Binding("B", "bootstrap", "Bootstrap"),
        Binding("slash", "search", "Search", key_display="/", show=False),
        Binding("H", "histogram", "Histogram", show=False),
        Binding("d", "differences", "Differences"),
        Binding("m", "mark", "Mark", show=False),
        Binding("M", "note", "Note", show=False),
        Binding("apostrophe", "marked(1)", "Next mark", key_display="'", show=False),
        Binding("quotation_mark", "marked(-1)", "Previous mark", key_display='"', show=False),
        Binding("e", "export", "Export", show=False),
        Binding("E", "report", "Report in HTML", show=False),
        Binding("b", "bodies", "Search bodies", show=False),
    ]
    DEFAULT_CSS = """
    Runs #scroll { padding: 0 1; }
    Runs.asking #lower { display: none; }
    Runs #verdict { width: 3fr; }
    """

    def __init__(self, *, grouped: bool = False) -> None:
        super().__init__()
        self._typed: str | None = None
        """The filter that is being typed, which is applied already if that is fast."""
        self._shown_filter = ""
        self._grouped = grouped
        self._plain = False
        """Whether the histogram is hidden."""
        self._open: set[str] = set()
        self._newest: int | None = None
        """The run that was followed last."""
        self._applied: tuple[str, int] | None = None
        """The slow filter that was applied last, and the source's revision it was applied to."""

    def body(self) -> Iterable[Widget]:
        columns: tuple[Column[RunLine], ...] = (
            Column("", self._mark, 1),
            Column("run", lambda line, _: _number(line), 5, sort=_by(lambda run: run.number), right=True),
            Column("day", _cell(lambda run, _: day(run.started)), 10, least=130),
            Column("began", _cell(lambda run, _: clock(run.started)[:8]), 8, sort=_by(lambda run: run.started)),
            Column("agent", lambda line, _: _agent(line), 14, 2, sort=_by(lambda run: run.name)),
            Column("version", _cell(lambda run, _: clean(run.agent_version or "-")), 7, least=90),
            Column("master", _cell(lambda run, _: clean(run.master_version or "-")), 7, least=120),
            Column("environment", _cell(lambda run, _: clean(run.environment or "-")), 11,
                   sort=_by(lambda run: run.environment or ""), least=110),
            Column("phases", _cell(palette.bar), 10, 2, drawn=True),
            Column("time", _cell(lambda run, _: seconds(run.duration)), 9, right=True,
                   sort=_by(lambda run: run.duration)),
            Column("outcome", lambda line, _: _outcome(line), 15, sort=_by(lambda run: run.ending)),
            Column("findings", _cell(lambda run, _: palette.counts(run)), 8, sort=_by(lambda run: -_worst(run))),
            Column("verdict", _cell(lambda run, _: self._verdict(run)), 20, 5, least=130),
        )  # fmt: skip
        yield Histogram()
        with Pane(id="upper", title="Runs") as pane:
            pane.name_it("Runs", palette.phases())
            yield RunRows(
                columns, lambda line: (bool(line.of), (line.of and line.run.name) or line.run.number), id="runs"
            )
        with Horizontal(id="lower"):
            with Pane(id="verdict"), VerticalScroll(id="scroll", can_focus=False):
                yield Static("", id="detail", markup=False)
            yield Glance()

    def lay_out(self) -> None:
        self._divide()
        self._show_details()

    def _divide(self) -> None:
        """Give the verdict of the selected run what the list does not need, and always a third; a message takes its
        lines from there."""
        height = self.size.height - 2 - (0 if self.query_one(Histogram).has_class("gone") else BARS + 1)
        message = self.query_one("#message")
        taken = message.outer_size.height - 1 if message.has_class("shown") else 0
        self.query_one("#lower").styles.height = max(height // 3, height - len(self._rows.items) - 3) - max(0, taken)

    def show_message(self, text: str, *, stays: bool = False) -> None:
        before = self._message
        super().show_message(text, stays=stays)
        if self._message != before:
            self.call_after_refresh(self._divide)

    def heading(self) -> str:
        source = self.source
        text = f"{clean(source.path.name)}: {plural(len(source.runs), 'run')}"
        if self._shown_filter:
            text += f", {len(self._numbers())} shown: {clean(self._shown_filter)}"
        progress = self.progress()
        text += progress
        if progress and not source.indexing and self.inspector.following.on:
            text += ", following"
        if left := len(source.unanalyzed):
            text += f"   {plural(left, 'record')} {'was' if left == 1 else 'were'} not analyzed"
        return text + self.trouble()

    def opened(self) -> None:
        if self.inspector.following.on:
            self.show_message(FOLLOWING)

    @property
    def _rows(self) -> RunRows:
        return self.query_one(RunRows)

    @property
    def selected_run(self) -> RunBrief | None:
        """The selected run; of an agent, its latest."""
        line = self._rows.item
        return line.run if line else None

    def _numbers(self) -> set[int]:
        """The runs that are shown, including those of agents whose runs are hidden below their heading."""
        return {run.number for line in self._rows.items for run in line.of or (line.run,)}

    def _mark(self, line: RunLine, _: int) -> Text | str:
        marked = not line.of and self.inspector.marks.marked_run(line.run.number)
        return Text("*", style=f"bold {DOUBT}") if marked else ""

    def _verdict(self, run: RunBrief) -> str:
        """Its cause, without what other columns show."""
        over = run.over_since()
        lead = f"over since {over}: " if over else ""
        return (
            clean(f"{lead}{f'{run.cause or ""} {run.verdict.tensed(run.verdict.reason)}'.strip()}")
            if run.verdict
            else ""
        )

    def update(self) -> None:
        """Show the current state of the runs."""
        if self._typed:
            self._show(self.inspector.filtering.runs(self._typed))
        elif not self._filter or self._typed is not None:
            self._show(self.source.runs)
        elif self.inspector.filtering.slow(self._filter):
            now = self._filter, self.source.revision
            if not self.filter_running and now != self._applied:
                self._applied = now
                self.start_filter(lambda: self.inspector.filtering.read_runs(now[0]), self._show)
        else:
            self._show(self.inspector.filtering.runs(self._filter))
        super().update()

    def _show(self, runs: list[RunBrief]) -> None:
        chosen = self._filter if self._typed is None else self._typed
        following = self.inspector.following.on
        # Another filter leaves the cursor on its run.
        self._rows.show(self._lines(runs), tail=chosen == self._shown_filter, flash=following)
        self._shown_filter = chosen
        if following and runs and runs[-1].number != self._newest:
            self._newest = runs[-1].number
            self._rows.go((False, runs[-1].number)) or self._rows.go((True, runs[-1].name))
        histogram = self.query_one(Histogram)
        histogram.show(runs)
        histogram.set_class(self._plain or len(runs) < 2, "gone")  # a histogram of one run shows nothing
        self._divide()
        self._show_details()
        self.retitle()

    def _lines(self, runs: list[RunBrief]) -> list[RunLine]:
        if not self._grouped:
            return [RunLine(run) for run in runs]
        agents: dict[str, list[RunBrief]] = {}
        for run in runs:
            agents.setdefault(run.name, []).append(run)
        lines = []
        for name, own in agents.items():
            lines.append(RunLine(own[-1], tuple(own), name in self._open))
            if name in self._open:
                lines += map(RunLine, own)
        return lines

    def _show_details(self) -> None:
        line = self._rows.item
        self.query_one(Glance).show(line.run if line else None)
        if line is None:
            self.query_one("#detail", Static).update(self._nothing())
            return
        run = line.run
        self.query_one("#verdict", Pane).name_it(f"Run {run.label}")
        width = self.size.width * 3 // 5 if self.broad else self.size.width
        text = in_full(run, width - 6, self.source.judgement.doing(run.number))
        note = self.inspector.marks.note_of_run(run.number)
        if note:
            text.append(f"\nnote: {clean(note)}")
        self.query_one("#detail", Static).update(text)
        self.query_one("#scroll").scroll_home(animate=False)

    def _nothing(self) -> str:
        """Why no runs are shown."""
        if why := self.not_read("runs appear as they are analyzed"):
            return why
        if self._filter and self.filter_trouble:
            return self.filter_trouble
        if self._filter:
            return f"No run matches the filter: {clean(self._filter)}"
        found = self.source.judgement
        if lines := [*wording.going_on(found), *map(str, found.calls)]:
            return "\n".join(
                ["No run is recorded yet.", *lines] if found.under_way else ["No run of an agent.", *lines]
            )
        return "There are no runs in this capture."

    # -- what is pressed --------------------------------------------------------------------------------

    def on_rows_moved(self, event: Rows.Moved[RunLine]) -> None:
        if self.inspector.following.on and self._newest not in {
            run.number for run in event.item.of or (event.item.run,)
        }:
            self.inspector.following.on = False
            self.show_message("This is not the newest run: it is followed no more. W follows again.", stays=True)
            self.retitle()
        self._show_details()

    def on_rows_chosen(self, event: Rows.Chosen[RunLine]) -> None:
        line = event.item
        if line.of:
            self._open ^= {line.run.name}
            self.update()
        else:
            self.inspector.open_run(line.run.number)

    def on_histogram_picked(self, event: Histogram.Picked) -> None:
        run = self.source.run(event.number)
        if self._grouped and run:
            self._open.add(run.name)
            self.update()
        self._rows.go((False, event.number))

    def action_follow(self) -> None:
        """Stay on the newest run, or no more."""
        self.inspector.following.on = not self.inspector.following.on
        self._newest = None
        self.update()
        self.show_message(FOLLOWING if self.inspector.following.on else "No run is followed; W follows again.")

    def action_group(self) -> None:
        self._grouped = not self._grouped
        self.update()

    def action_histogram(self) -> None:
        self._plain = not self._plain
        self.update()

    def action_filter(self) -> None:
        self.ask_filter(self._matching)

    def on_prompt_closed(self, event: Prompt.Closed) -> None:
        """Show what the accepted filter matches."""
        event.stop()
        if self._typed is not None:
            self._typed = None
            self.update()

    def _matching(self, text: str) -> str:
        """Show the runs that match a filter that is being typed, and how many they are; empty while it is none."""
        every = len(self.source.runs)
        try:
            if not self.inspector.filtering.live(text):
                return "Enter applies it"
            number = len(self.inspector.filtering.runs(text)) if text.strip() else every
            self._typed = text.strip()
            self.update()
        except InspectorError:
            return ""
        return f"{number:,} of {every:,} runs"

    def filter_changed(self) -> None:
        self._typed = self._applied = None

    def action_mark(self) -> None:
        if (line := self._rows.item) and not line.of:
            self.attempt(lambda: self.inspector.marks.toggle_run(line.run.number))
            self._rows.refresh()

    def action_note(self) -> None:
        marks = self.inspector.marks
        if (line := self._rows.item) and not line.of and self.attempt(marks.begin_note):
            number = line.run.number

            def keep(text: str) -> None:
                self.attempt(lambda: marks.note_run(number, text))
                self._show_details()

            self.ask(f"note on run {number}: ", keep, marks.note_of_run(number), accept="Keep")

    def action_marked(self, direction: int) -> None:
        """Go to the next marked run."""
        marks = self.inspector.marks

        def wanted(line: RunLine) -> bool:
            return not line.of and marks.marked_run(line.run.number)

        if not self._rows.seek(wanted, forward=direction > 0):
            self.show_message("No run is marked; m marks one.")

    def action_differences(self) -> None:
        """Compare the two marked runs, or a marked one with the selected one, or that with its node's last good one."""
        marks = self.inspector.marks
        marked = [run.number for run in self.source.runs if marks.marked_run(run.number)]
        line = self._rows.item
        selected = line.run.number if line and not line.of else None
        if len(marked) == 2:
            self.inspector.open_differences(*marked)
        elif len(marked) == 1 and selected is not None and selected != marked[0]:
            self.inspector.open_differences(*sorted((marked[0], selected)))
        elif selected is not None:
            self.inspector.open_differences(None, selected)
        else:
            self.show_message("Select a run, or mark two: m.")

    def action_export(self) -> None:
        seqs = [seq for number in self._numbers() for seq in self.source.seqs(number)]
        self.inspector.export(sorted(seqs))
