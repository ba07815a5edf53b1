"""A run at a glance, beside its verdict: its phases to scale, and what was found in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text
from textual.containers import VerticalScroll
from textual.widgets import Static

from inspector.explain.timeline import SILENCES
from inspector.pages import palette
from inspector.text import clean, seconds, size
from inspector.tui.panes import BROAD, Pane

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from inspector.summaries.summary import RunBrief


class Glance(Pane):
    """The phases and findings of the run under the cursor, where there is room for them."""

    DEFAULT_CSS = """
    Glance { display: none; width: 2fr; }
    Glance VerticalScroll { padding: 0 1; }
    """

    def compose(self) -> ComposeResult:
        with VerticalScroll(can_focus=False):
            yield Static("", markup=False)

    def show(self, run: RunBrief | None) -> None:
        """Show a run, if the terminal is wide enough for this pane."""
        if self.app.size.width < BROAD:
            return
        self.name_it(f"Phases and findings of run {run.label}" if run else "")
        self.query_one(Static).update(Group(_phases(run), _findings(run)) if run else "")
        self.query_one(VerticalScroll).scroll_home(animate=False)


def _phases(run: RunBrief) -> Table:
    """A line for each phase and each silence: how much was exchanged, and what share of the time it took."""
    table = Table.grid(padding=(0, 2))
    for justify in ("left", "right", "right"):
        table.add_column(justify=justify)
    table.add_column(ratio=1)
    whole = max([span.duration for span in run.spans] + [*run.waits.values()], default=0.0) or 1.0
    silent = run.waits.get("certificate", 0.0)
    for span in run.spans:
        style = palette.PHASES[span.phase][1]
        # Waiting to be signed is part of that phase, and has a line of its own.
        took = max(0.0, span.duration - (silent if span.phase == "certificates" else 0.0))
        bar = Text("█" * max(1, round(took / whole * BAR)), style)
        table.add_row(palette.phase(span.phase), f"{span.exchanges:,}", seconds(took), bar)
    for wait, took in run.waits.items():
        table.add_row(
            Text(SILENCES[wait], "dim"), "", seconds(took), Text("." * max(1, round(took / whole * BAR)), "dim")
        )
    table.add_row("", "", "", "")
    received = f"{size(run.received)} received, {size(run.sent)} sent"
    table.add_row(Text("connections", "dim"), f"{run.connections:,}", "", Text(received, "dim"))
    return table


BAR = 30
"""Columns of the longest bar."""


def _findings(run: RunBrief) -> Table:
    """The findings, the cause first."""
    table = Table.grid(padding=(0, 1))
    table.add_column()
    table.add_column()
    table.add_column(ratio=1)
    table.add_row("", "", "")
    for finding in run.ordered:
        message = Text(clean(finding.message), "dim" if finding.rule in run.symptoms else "", overflow="fold")
        table.add_row(palette.severity(finding.severity), finding.rule, message)
    if not run.findings:
        table.add_row("", "", Text("Nothing was found.", "dim"))
    return table
