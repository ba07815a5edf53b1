"""The runs of a capture: the first screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual.binding import Binding

from inspector.text import clean, clock, day, seconds
from inspector.tui import palette
from inspector.tui.rows import Column, Rows
from inspector.tui.view import View

if TYPE_CHECKING:
    from collections.abc import Iterable

    from textual.widget import Widget

    from inspector.brief import RunBrief

COLUMNS: tuple[Column[RunBrief], ...] = (
    Column("run", lambda run, _: str(run.number), 5, sort=lambda run: run.number, right=True),
    Column("day", lambda run, _: day(run.started), 10, least=120),
    Column("began", lambda run, _: clock(run.started)[:8], 8, sort=lambda run: run.started),
    Column("agent", lambda run, _: _agent(run), 16, 2, sort=lambda run: run.name),
    Column("agent version", lambda run, _: clean(run.agent_version or "-"), 8, least=100),
    Column("master version", lambda run, _: clean(run.master_version or "-"), 8, least=120),
    Column(
        "environment",
        lambda run, _: clean(run.environment or "-"),
        11,
        sort=lambda run: run.environment or "",
        least=100,
    ),
    Column("phases", palette.bar, 12, 2),
    Column("took", lambda run, _: seconds(run.duration), 9, sort=lambda run: run.duration, right=True),
    Column("outcome", lambda run, _: palette.outcome(run), 10, sort=lambda run: run.outcome),
    Column("found", lambda run, _: palette.counts(run), 9, sort=lambda run: -_worst(run)),
    Column("verdict", lambda run, _: clean(run.verdict[0]) if run.verdict else "", 12, 4, least=100),
)


def _agent(run: RunBrief) -> Text:
    return Text(clean(run.name) + (f" ({clean(run.tool)})" if run.tool else ""))


def _worst(run: RunBrief) -> int:
    return max((each.severity.rank for each in run.findings), default=0)


class Runs(View):
    """One row a run; Enter opens it."""

    BINDINGS = [Binding("enter", "open", "Open", priority=False)]

    def body(self) -> Iterable[Widget]:
        yield Rows(COLUMNS, lambda run: run.number, id="runs")

    def heading(self) -> str:
        source = self.source
        told = f"{len(source.runs)} runs of {clean(source.path.name)}"
        if source.indexing:
            told += f"   reading {source.state.last:,} of {source.total:,} records"
        return told + (f"   {clean(source.trouble)}" if source.trouble else "")

    def update(self) -> None:
        super().update()
        rows: Rows[RunBrief] = self.query_one("#runs", Rows)
        rows.show(self.source.runs, tail=True)
