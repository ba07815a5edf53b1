"""The fleet's screen: the top lists of a directory of tables. Left the lists, right the one that is chosen."""

from __future__ import annotations

import multiprocessing
from multiprocessing import resource_tracker
from typing import TYPE_CHECKING, NamedTuple

from rich.text import Text
from textual.binding import Binding
from textual.containers import Horizontal

from inspector.errors import InspectorError
from inspector.fleet.lists import lists_of
from inspector.fleet.overview import overview_of
from inspector.pages.styles import BAD, DOUBT, GOOD
from inspector.text import clean
from inspector.tui.columns import Column
from inspector.tui.panes import Pane
from inspector.tui.rows import Rows
from inspector.tui.themes import ThemedApp
from inspector.tui.view import View

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from textual.driver import Driver
    from textual.widget import Widget

    from inspector.fleet.directory import TableDirectory
    from inspector.fleet.lists import Cell, TopList
    from inspector.fleet.overview import Overview

_STYLES = {"failing": BAD, "errors": BAD, "waiting": DOUBT, "warnings": DOUBT, "silent": "dim", "open": "dim",
           "well": GOOD, "error": BAD, "warning": DOUBT}  # fmt: skip


class Line(NamedTuple):
    """A row of a list, and its place in it."""

    place: int
    cells: tuple[Cell, ...]


class FleetView(View):
    """The lists of a fleet."""

    BINDINGS = [
        Binding("tab", "app.focus_next", "Next pane", show=False),
    ]
    DEFAULT_CSS = """
    FleetView #lists { width: 42; margin-right: 1; }
    FleetView.-slim #lists { width: 30; }
    """

    def __init__(self, directory: TableDirectory) -> None:
        super().__init__()
        self._directory = directory
        self._found: Overview | None = None
        self.lists: tuple[TopList, ...] = ()
        self._shown: TopList | None = None

    def body(self) -> Iterable[Widget]:
        titles = (
            Column["TopList"]("list", lambda each, _: each.title, 20, 1),
            Column["TopList"]("rows", lambda each, _: f"{len(each.rows):,}", 6, right=True),
        )
        yield Horizontal(
            Pane(Rows(titles, lambda each: each.title, id="titles"), title="Fleet", id="lists"),
            Pane(title="", id="list"),
        )

    def opened(self) -> None:
        self.query_one("#titles").focus()
        self.run_worker(self._read, thread=True)

    def _read(self) -> None:
        try:
            found = overview_of(self._directory)
        except InspectorError as error:
            self.later(self.show_message, str(error))
            return
        self.later(self._take, found)

    def _take(self, found: Overview) -> None:
        self._found, self.lists = found, lists_of(found)
        self.query_one("#titles", Rows).show(self.lists)
        self.retitle()

    def heading(self) -> str:
        if self._found is None:
            return f"Fleet in {clean(str(self._directory.root))}: reading ..."
        return f"Fleet in {clean(str(self._directory.root))}: {self._found.headline}"

    def on_rows_moved(self, event: Rows.Moved[TopList | Line]) -> None:
        """Show the list that is chosen."""
        if event.rows.id == "titles" and event.item is not self._shown:
            self._show(event.item)  # type: ignore[arg-type]

    def on_rows_chosen(self, event: Rows.Chosen[TopList | Line]) -> None:
        """Go to the list; of a row, show its cells in full."""
        if event.rows.id == "titles":
            if rows := self.query("#list Rows"):
                rows.first().focus()
        elif self._shown is not None and isinstance(event.item, Line):
            cells = zip(self._shown.heads, event.item.cells, strict=True)
            self.show_message("; ".join(f"{head}: {_text(cell)}" for head, cell in cells if cell != ""), stays=True)

    def _show(self, chosen: TopList) -> None:
        self._shown = chosen
        self.show_message("")
        pane = self.query_one("#list", Pane)
        pane.remove_children()
        pane.border_title = chosen.title
        rows = Rows([_column(chosen, place) for place in range(len(chosen.heads))], lambda line: line.place)
        pane.mount(rows)
        lines: Sequence[Line] = [Line(place, cells) for place, cells in enumerate(chosen.rows)]
        self.call_after_refresh(rows.show, lines)
        if not lines:
            self.show_message("There is nothing in this list.")

    def action_marks(self) -> None:
        """Tables have no marks."""
        self.show_message("Marks belong to captures.")


def _column(chosen: TopList, place: int) -> Column[Line]:
    number = any(isinstance(row[place], (int, float)) for row in chosen.rows[:20])
    wide = place == 0 or chosen.heads[place] in ("what", "reason", "node", "name")

    def cell(line: Line, _: int) -> Text | str:
        text = _text(line.cells[place])
        return Text(text, style=_STYLES[text]) if text in _STYLES else text

    return Column(chosen.heads[place], cell, 8 if number else 10, 2 if wide else 1, sort=_by(place), right=number)


def _by(place: int) -> Callable[[Line], tuple[bool, Cell]]:
    return lambda line: (isinstance(line.cells[place], str), line.cells[place])


def _text(cell: Cell) -> str:
    return f"{cell:,}" if isinstance(cell, int) else str(cell)


class FleetApp(ThemedApp[None]):
    """A directory of tables in a terminal."""

    TITLE = "puppet-inspector"
    BINDINGS = [Binding("q", "quit", "Quit"), Binding("T", "theme", "Next theme", show=False)]
    ENABLE_COMMAND_PALETTE = False

    def __init__(
        self, directory: TableDirectory, *, driver: type[Driver] | None = None, theme: str | None = None
    ) -> None:
        super().__init__(driver=driver, theme=theme)
        self._directory = directory
        # What starts the process that reads the tables inherits standard error, which this app will replace.
        resource_tracker.ensure_running()

    def on_mount(self) -> None:
        """Show the lists."""
        self.push_screen(FleetView(self._directory))

    def on_unmount(self) -> None:
        """End what is still reading: whoever leaves does not wait for tables that take long."""
        for process in multiprocessing.active_children():
            process.kill()
