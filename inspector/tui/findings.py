"""The findings of the whole capture or of one run, grouped by rule, agent or severity."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.widgets import Static

from inspector.model import Severity
from inspector.pages.finding_groups import ORDERS, Group, GroupLine, Member, grouped, shown
from inspector.rules import fixes
from inspector.text import clean, counts
from inspector.tui import verdicts
from inspector.tui.columns import Column
from inspector.tui.paned import Tabbed
from inspector.tui.panes import Pane, PaneTabs
from inspector.tui.rows import Folding
from inspector.tui.view import unread

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from textual.widget import Widget

    from inspector.model import Finding
    from inspector.pages.finding_groups import Order
    from inspector.tui.rows import Rows

LEVELS = (Severity.ERROR, Severity.WARNING, Severity.NOTICE)


class FoundRows(Folding[GroupLine]):
    """Groups and the findings in them. Enter, an arrow key or a click on the mark opens a group."""

    def marked(self, item: GroupLine) -> range:
        return range(2 if isinstance(item, Group) else 0)

    def is_open(self, item: GroupLine) -> bool:
        return isinstance(item, Group) and item.unfolded


class Findings(Tabbed):
    """All findings of the capture or of a run, in groups. Enter on a finding opens its run at the evidence,
    or the evidence, if that is part of no run."""

    BINDINGS = [
        Binding("a", "order", "Group by"),
        Binding("e", "least", "Severities"),
        Binding("1", "enter('list')", "Findings", show=False),
        Binding("2", "enter('detail')", "Fix", show=False),
        Binding("v", "whole", "Whole message"),
        Binding("y", "copy", "Copy fix"),
        Binding("tab", "pane", "Next pane", show=False),
    ]
    PANES = {"list": "1 Findings", "detail": "2 Fix"}
    DEFAULT_CSS = """
    Findings #list { height: auto; max-height: 60%; min-height: 5; }
    Findings #detail { height: 1fr; }
    Findings VerticalScroll { padding: 0 1; }
    """

    def __init__(
        self,
        number: int | None = None,
        follow: Callable[[Finding], None] | None = None,
        before: Findings | None = None,
    ) -> None:
        """Show the findings of run ``number``, on which this screen is then opened: ``follow`` gets the one that is
        chosen. None: show all of the capture. ``before`` is the screen that was left for a finding: they are listed as
        there."""
        super().__init__()
        self._number, self._follow = number, follow
        self._order: Order = before._order if before else ORDERS[0]
        self._least: Severity = before._least if before else Severity.NOTICE
        self._open: set[str] = set(before._open) if before else set()
        self._chosen: tuple[str, int, str, str] | None = before._chosen if before else None
        """The line that was followed last."""
        self._groups: list[Group] = []
        self._revision = -1
        self._whole = False
        self._several = True
        """Whether the agent of each line is to be named: there are several, and each may be in any group."""

    def body(self) -> Iterable[Widget]:
        yield PaneTabs(self.PANES)
        with Pane(id="list", title="Findings"):
            yield FoundRows(self._columns(), lambda line: line.ident, id="found")
        with Pane(id="detail", title="Fix"), VerticalScroll():
            yield Static("", id="explanation", markup=False)

    def _columns(self) -> tuple[Column[GroupLine], ...]:
        """The columns; what is the same in all lines is in the title, and leaves its room to the message."""
        run: Column[GroupLine] = Column("run", lambda line, _: line.where, 8, right=True, least=100 * self._several)
        return (
            Column("", lambda line, _: line.mark, 1),
            Column("severity", lambda line, _: line.level, 8),
            Column("rule", lambda line, _: line.name, 6),
            *([run] if self._number is None else []),
            *([Column[GroupLine]("agent", lambda line, _: line.who, 16, 1)] if self._several else []),
            Column("message", lambda line, _: line.what, 28, 4),
            Column("first seen", lambda line, _: line.since, 19, least=110),
            Column("last seen", lambda line, _: line.last, 19, least=140),
        )

    @property
    def _rows(self) -> FoundRows:
        return self.query_one(FoundRows)

    def heading(self) -> str:
        if not self.source.runs and (trouble := self.source.trouble):
            return f"findings of {clean(self.source.path.name)} {unread(trouble)}"
        title = counts([member.finding for group in self._groups for member in group.members]) or "no findings"
        limit = {Severity.ERROR: ", errors only", Severity.WARNING: ", without notices"}.get(self._least, "")
        run = self.source.run(self._number) if self._number is not None else None
        where = f"run {run.label} of {clean(run.name)}" if run else clean(self.source.path.name)
        title = f"{title} in {where}, by {self._order}{limit}"
        return title + ("   reading ..." if self.source.indexing else "")

    # -- what is shown ----------------------------------------------------------------------------------

    def opened(self) -> None:
        self.lay_out()
        if self._chosen is not None:
            self._rows.go(self._chosen)
        self._rows.focus()
        self._show_details()

    def update(self) -> None:
        """Show the current state of the source."""
        if self._revision != self.source.revision:
            self._revision = self.source.revision
            self._group()
        super().update()

    def _group(self) -> None:
        if self._number is None:
            runs = [*self.source.runs, *self.source.apart.found]
        else:
            runs = [run for run in self.source.runs if run.number == self._number]
        self._groups = grouped(runs, self._order, self._least)
        self._several = self._order != "agent" and len({run.name for run in runs}) > 1
        if len(columns := self._columns()) != len(self._rows.columns):
            self._rows.set_columns(columns)
        self._fill()

    def _fill(self) -> None:
        self._rows.show(shown(self._groups, self._open))
        self._rows.styles.height = len(self._rows.items) + 1
        self._show_details()

    def unfold(self, key: str, *, unfold: bool) -> None:
        """Show or hide the findings of a group."""
        rows = self._rows
        if unfold:
            self._open.add(key)
        else:
            self._open.discard(key)
            rows.go(key)
        self._fill()

    def on_folding_fold(self, event: Folding.Fold[GroupLine]) -> None:
        """Open or close the group of a line."""
        self.unfold(event.item.group.key, unfold=not event.fold)

    def on_rows_moved(self) -> None:
        """Show the selected line in full."""
        self._show_details()

    def on_rows_chosen(self, event: Rows.Chosen[GroupLine]) -> None:
        """Open or close a group, or open a finding."""
        line = event.item
        if isinstance(line, Group):
            self.unfold(line.key, unfold=line.key not in self._open)
        else:
            self._open_finding(line)

    def _open_finding(self, member: Member) -> None:
        if self._follow:
            self._chosen = member.ident
            self.app.pop_screen()
            self._follow(member.finding)
            return
        seqs = member.finding.seqs
        if member.run.number:
            self.inspector.open_run(member.run.number, seqs[0] if seqs else None, member.finding)
        elif seqs:
            from inspector.tui.exchange import ExchangeView

            self.app.push_screen(ExchangeView(list(seqs), seqs[0], member.finding))

    @property
    def chosen(self) -> Member | None:
        """The selected finding; of a group with one rule, its latest."""
        line = self._rows.item
        if isinstance(line, Group):
            return line.members[-1] if line.rule else None
        return line

    @property
    def agent(self) -> str:
        line = self._rows.item
        members = line.members if isinstance(line, Group) else [line] if line else []
        names = {member.run.name for member in members}
        return names.pop() if len(names) == 1 else ""

    def _show_details(self) -> None:
        self.query_one("#explanation", Static).update(verdicts.hung(self._detail()))
        self.query_one(VerticalScroll).scroll_home(animate=False)

    def _detail(self) -> Text:
        line, chosen = self._rows.item, self.chosen
        if line is None:
            return Text(self._nothing(), style="dim")
        if chosen is None:
            return self._of_group(line.group)
        text = verdicts.finding_in_full(chosen.finding, chosen.run, self.size.width - 8)
        if chosen.follows:
            text.append(f"  {chosen.follows}\n", style="dim")
        text.append_text(verdicts.to_pass_on(chosen.finding, chosen.run, self.source.path, self.size.width - 8))
        if self._whole:
            text.append("\n")
            verdicts.add_whole(text, chosen.finding, self.source)
        return text

    def _nothing(self) -> str:
        source = self.source
        if trouble := source.trouble:
            return unread(trouble)
        return "" if source.indexing else "No deviations from the protocol."

    def _of_group(self, group: Group) -> Text:
        text = Text(f"{group.title}: {group.counted}\n", style="bold")
        run = group.members[-1].run
        return text.append_text(verdicts.in_full(run, self.size.width - 8)) if group.order == "agent" else text

    def copy_value(self) -> str | None:
        """The fix of the selected finding, with its commands."""
        chosen = self.chosen
        return clean(fixes.plain(chosen.run.fix_for(chosen.finding.rule))) if chosen else None

    # -- keys -------------------------------------------------------------------------------------------

    def action_order(self) -> None:
        """Group by the next criterion."""
        self._order = ORDERS[(ORDERS.index(self._order) + 1) % len(ORDERS)]
        self._open.clear()
        self._group()
        self._rows.move_to(0)
        super().update()

    def action_least(self) -> None:
        """Show all findings, only errors, or errors and warnings: the next of these."""
        self._least = LEVELS[(LEVELS.index(self._least) + 1) % len(LEVELS)]
        self._group()
        super().update()

    def _search(self, text: str) -> None:
        """Search also closed groups, and open those that contain the text."""
        wanted = text.casefold()
        for group in self._groups if wanted else ():
            if group.key not in self._open and any(wanted in member.plain for member in group.members):
                self._open.add(group.key)
        self._fill()
        super()._search(text)

    def action_whole(self) -> None:
        """Show or hide the whole message of the master or the agent."""
        self._whole = not self._whole
        self._show_details()

    def action_copy(self) -> None:
        """Copy the fix."""
        self.inspector.copy_text(self.copy_value(), "the fix")

    def action_pane(self) -> None:
        """Go to the other pane."""
        self.enter("detail" if self.current == "list" else "list")

    def target(self, pane: str) -> Widget:
        return self._rows if pane == "list" else self.query_one(VerticalScroll)
