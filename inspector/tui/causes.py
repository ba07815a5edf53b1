"""What is wrong now, by cause: the first screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual.binding import Binding
from textual.containers import Horizontal, VerticalScroll
from textual.widgets import Static

from inspector.rules import fixes
from inspector.summaries import incidents
from inspector.summaries.judgement import Judgement, NodeState
from inspector.text import clean
from inspector.tui.cause_lines import COLUMNS, CauseLine, detail, outside_runs, under_way
from inspector.tui.glance import Glance
from inspector.tui.histogram import Histogram
from inspector.tui.panes import Pane
from inspector.tui.rows import Rows
from inspector.tui.view import View

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable

    from textual.widget import Widget

    from inspector.summaries.summary import RunBrief


class Causes(View):
    """The causes of what failed, the worst first, each with its nodes and its fix. Enter opens the latest run."""

    BINDINGS = [
        Binding("y", "copy", "Copy fix"),
        Binding("r", "runs", "All runs"),
        Binding("a", "agents", "By agent"),
        Binding("W", "follow", "Follow", show=False),
        Binding("F", "findings", "Findings"),
        Binding("B", "bootstrap", "Bootstrap"),
        Binding("o", "good", "Last good run"),
        Binding("d", "differences", "Differences"),
        Binding("v", "whole", "Whole message"),
        Binding("p", "pairs", "Rehearsal"),
        Binding("E", "report", "Report in HTML", show=False),
        Binding("right,l", "unfold(True)", "Unfold", show=False),
        Binding("left,h", "unfold(False)", "Fold", show=False),
        Binding("b", "bodies", "Search bodies", show=False),
    ]
    DEFAULT_CSS = """
    Causes #now { height: auto; max-height: 10; padding: 0 1; }
    Causes #outside { height: auto; max-height: 2; padding: 0 1; }
    Causes #upper { height: auto; max-height: 45%; min-height: 4; }
    Causes #verdict { width: 3fr; }
    Causes #detail { padding: 0 1; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._judgement = Judgement()
        self._incidents = incidents.by_cause(self._judgement)
        self._open: set[tuple[str | None, str]] = set()
        self._revision: tuple[int, int] | None = None
        self._whole = False
        self._detailed: Hashable = None
        """The line whose details are shown."""

    def body(self) -> Iterable[Widget]:
        yield Histogram()
        with Pane(id="now"):
            yield Static("", id="doing", markup=False)
        with Pane(id="upper", title="Causes"):
            yield Rows(COLUMNS, lambda line: line.ident, id="causes")
        yield Static("", id="outside")
        with Horizontal(id="lower"):
            with Pane(id="verdict", title="Verdict and fix"), VerticalScroll(id="detail"):
                yield Static("", id="answer", markup=False)
            yield Glance()

    def heading(self) -> str:
        lab = self.inspector.lab_state
        text = f"{clean(self.source.path.name)}: {self._judgement.headline}{f'   {lab}' if lab else ''}"
        return text + self.progress() + self.trouble()

    @property
    def _rows(self) -> Rows[CauseLine]:
        return self.query_one("#causes", Rows)

    @property
    def selected_run(self) -> RunBrief | None:
        """The latest run that shows the selected cause."""
        line = self._rows.item
        return line.run if line else None

    def opened(self) -> None:
        self._rows.focus()

    def update(self) -> None:
        """Show the current state of the runs."""
        now = self.source.revision, len(self.source.runs)
        if now != self._revision:
            self._revision = now
            self._judgement = self.source.judgement
            self._incidents = self.source.causes
            self._show_present()
            self._fill()
            histogram = self.query_one(Histogram)
            histogram.show(self.source.runs)
            histogram.set_class(len(self.source.runs) < 2, "gone")
        super().update()

    def _fill(self) -> None:
        found = self._judgement
        groups = [CauseLine(incident, tuple(incident.runs)) for incident in self._incidents.every]
        history = {node.name: [each.run for each in node.runs] for node in found.nodes.values()}
        if well := found.of(NodeState.WELL, NodeState.SILENT):
            runs = (run for node in well for run in history[node.name])
            last = tuple(node.latest.run for node in well if node.latest)
            groups.append(CauseLine(None, last, tuple(sorted(runs, key=lambda run: run.started))))
        lines: list[CauseLine] = []
        for line in groups:
            lines.append(line)
            if line.group in self._open or len(groups) == 1:
                lines += [
                    CauseLine(line.incident, (run,), tuple(history[name]), name)
                    for name, run in self._shown_by(line).items()
                ]
        rows = self._rows
        top = rows.at == 0
        rows.show(lines)
        if top:  # the cursor stays on the worst cause, unless the user moved it
            rows.move_to(0)
        rows.styles.height = len(lines) + 1
        self._show_detail()

    def _show_present(self) -> None:
        """What is under way, or was when the recording ended, and what was found beside runs."""
        found = self._judgement
        doing = found.under_way or found.cut_off
        pane = self.query_one("#now", Pane)
        pane.set_class(not doing, "gone")
        pane.name_it("Under way" if found.under_way else "Under way when the recording ended")
        self.query_one("#doing", Static).update(under_way(doing))
        outside, line = outside_runs(found.apart), self.query_one("#outside", Static)
        line.set_class(outside is None, "gone")
        line.update(outside or "")

    def _shown_by(self, line: CauseLine) -> dict[str, RunBrief]:
        """The nodes of a cause, or of what went well, each with the run that shows it."""
        nodes, incident = self._judgement.nodes, line.incident
        if incident and incident.nodes:
            return {name: run for name in incident.nodes if (run := nodes[name].run)}
        chosen = {run.number for run in line.runs}
        return {name: each.run for name, node in nodes.items() for each in node.runs if each.run.number in chosen}

    def on_rows_moved(self) -> None:
        """Show the selected cause."""
        self._show_detail()

    def lay_out(self) -> None:
        """Wrap the text anew."""
        self._show_detail()

    def _show_detail(self) -> None:
        line = self._rows.item
        text = self._of(line) if line else Text(self._nothing())
        self.query_one(Glance).show(line.run if line else None)
        self.query_one("#answer", Static).update(text)
        ident = line.ident if line else None
        if ident != self._detailed:  # the same text stays where it was scrolled to while the capture grows
            self._detailed = ident
            self.query_one("#detail", VerticalScroll).scroll_home(animate=False)

    def _of(self, line: CauseLine) -> Text:
        alone = not self._incidents.now and self.query_one("#outside").has_class("gone")
        width = self.size.width * 3 // 5 if self.broad else self.size.width
        return detail(line, self.source, width, alone=alone, whole=self._whole)

    def _nothing(self) -> str:
        if why := self.not_read("causes appear as runs are analyzed"):
            return why
        found = self._judgement
        if found.under_way or found.cut_off:
            listed = ": r lists those that began" if self.source.runs else ""
            return f"No run is over{' yet' if found.under_way else ''}{listed}."
        if found.calls:
            more = " r lists the calls." if self.source.runs else ""
            return f"No run of an agent: {'; '.join(map(str, found.calls))}.{more} F shows what was found."
        return "There are no runs in this capture."

    def copy_value(self) -> str | None:
        """The fix of the selected cause, its commands on lines of their own."""
        line = self._rows.item
        return "\n".join(fixes.lines(line.run.steps)) if line and line.run.verdict else None

    # -- what is pressed --------------------------------------------------------------------------------

    def on_rows_chosen(self, event: Rows.Chosen[CauseLine]) -> None:
        """Open the run at its evidence; nodes of several below a cause first."""
        run = event.item.run
        finding = run.cause_found
        self.inspector.open_run(run.number, finding.seqs[0] if finding and finding.seqs else None, finding)

    def on_histogram_picked(self, event: Histogram.Picked) -> None:
        """Open the run that was clicked."""
        self.inspector.open_run(event.number)

    def action_unfold(self, unfold: bool) -> None:  # noqa: FBT001 - Textual passes it by position
        """Show or hide the nodes of the selected cause."""
        if line := self._rows.item:
            if unfold:
                self._open.add(line.group)
            else:
                self._open.discard(line.group)
                self._rows.go((*line.group, ""))
            self._fill()

    def action_follow(self) -> None:
        """Show all runs, and stay on the newest."""
        self.inspector.following.on = True
        self.inspector.open_runs()

    def action_runs(self) -> None:
        """Show all runs in the order of time."""
        self.inspector.open_runs()

    def action_agents(self) -> None:
        """Show all runs by agent."""
        self.inspector.open_runs(grouped=True)

    def action_good(self) -> None:
        """Open the last run of the node that went well."""
        line = self._rows.item
        good = incidents.last_good(self.source.runs, line.run) if line and line.incident else None
        if good is None:
            self.show_message("No earlier run of this node in the capture went well.")
        else:
            self.inspector.open_run(good.number)

    def action_pairs(self) -> None:
        """Show the rehearsal that this capture is of."""
        self.inspector.open_pairs()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Offer the rehearsal only where there is one; nothing is behind the first screen."""
        if action == "back":
            return False
        return self.inspector.rehearsal if action == "pairs" else super().check_action(action, parameters)

    def action_differences(self) -> None:
        """Show what is different from the last run of the node that went well."""
        if (line := self._rows.item) and line.incident:
            self.inspector.open_differences(None, line.run.number)
        else:
            self.show_message("Nothing is wrong here.")

    def action_whole(self) -> None:
        """Show or hide the whole message of the master or the agent."""
        self._whole = not self._whole
        self._show_detail()

    def action_copy(self) -> None:
        """Copy the fix."""
        self.inspector.copy_text(self.copy_value(), "the fix")
