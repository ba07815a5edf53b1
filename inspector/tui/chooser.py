"""Small lists in a box to choose from: one line of some, and the columns of a table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from rich.text import Text
from textual.binding import Binding
from textual.containers import Vertical
from textual.screen import ModalScreen
from textual.widgets import Static

from inspector.pages.styles import DOUBT, GOOD
from inspector.text import clean
from inspector.tui.columns import Column, Layout
from inspector.tui.panes import Pane
from inspector.tui.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual.app import ComposeResult

    from inspector.tui.arranged import Arranged


class Choice(NamedTuple):
    """A line of the list."""

    name: str
    """What is chosen; unique in the list."""
    about: str = ""
    """What it is, in a clause."""


class Chooser(ModalScreen[str | None]):
    """A list to choose from: Enter or a click takes the line under the cursor, Esc none."""

    BINDINGS = [
        Binding("escape,q", "close", "Close"),
        Binding("delete,backspace", "remove", "Remove", show=False),
    ]
    DEFAULT_CSS = """
    Chooser { align: center middle; }
    Chooser Pane { width: 90%; max-width: 110; height: auto; max-height: 90%; background: $surface; }
    Chooser Rows { height: auto; max-height: 30; }
    Chooser #about { height: auto; padding: 0 1; color: $text-muted; border-top: solid $border-blurred; }
    """

    def __init__(
        self,
        title: str,
        choices: Sequence[Choice],
        *,
        chosen: str = "",
        remove: Callable[[str], object] | None = None,
    ) -> None:
        """``chosen`` is where the cursor begins; with ``remove`` the key Del removes the line under the cursor."""
        super().__init__()
        self._title = title
        self._choices = list(choices)
        self._chosen = chosen
        self._remove = remove

    def compose(self) -> ComposeResult:
        width = max((len(choice.name) for choice in self._choices), default=4)
        columns: tuple[Column[Choice], ...] = (
            Column("name", lambda choice, _: clean(choice.name), min(width, 50)),
            Column("", lambda choice, _: clean(choice.about), 10, 1, least=50),
        )
        with Pane() as pane:
            pane.name_it(self._title, "Enter takes it, Del removes it" if self._remove else "Enter takes it")
            yield Rows(columns, lambda choice: choice.name)
            yield Static("", id="about", markup=False)

    def on_mount(self) -> None:
        """Show the list, with the cursor on what is chosen now."""
        self._show()
        rows: Rows[Choice] = self.query_one(Rows)
        rows.focus()
        if self._chosen:
            rows.go(self._chosen)

    def _show(self) -> None:
        rows: Rows[Choice] = self.query_one(Rows)
        rows.show(self._choices)
        rows.styles.height = len(self._choices) + 1
        self._explain()

    def on_rows_moved(self) -> None:
        """Explain the line under the cursor."""
        self._explain()

    def _explain(self) -> None:
        """Show what the line under the cursor is, whole, if the list has no room for the longest."""
        rows: Rows[Choice] = self.query_one(Rows)
        name = max((len(choice.name) for choice in self._choices), default=0)
        cut = any(len(choice.about) + name + 3 > rows.room for choice in self._choices)
        about = self.query_one("#about", Static)
        about.display = cut
        about.update(clean(rows.item.about) if rows.item else "")

    def on_resize(self) -> None:
        """Explain it where it is cut now."""
        self._explain()

    def on_rows_chosen(self, event: Rows.Chosen[Choice]) -> None:
        """Take the line."""
        event.stop()
        self.dismiss(event.item.name)

    def action_close(self) -> None:
        """Take none."""
        self.dismiss(None)

    def action_remove(self) -> None:
        """Remove the line under the cursor, where that is possible."""
        rows: Rows[Choice] = self.query_one(Rows)
        if self._remove is None or rows.item is None:
            return
        self._remove(rows.item.name)
        self._choices.remove(rows.item)
        if self._choices:
            self._show()
        else:
            self.dismiss(None)


KEYS = (("Space", "show/hide"), ("Enter", "order"), ("Del", "default"), ("Esc", "close"))


class ColumnChooser(ModalScreen[None]):
    """The columns of a table. Each change is visible at once, and remembered for this table."""

    BINDINGS = [
        Binding("escape,number_sign,q", "dismiss", "Close"),
        Binding("space", "show", "Show or hide"),
        Binding("delete,backspace", "default", "Default"),
    ]
    DEFAULT_CSS = """
    ColumnChooser { align: right middle; background: $background 0%; }
    ColumnChooser Vertical {
        width: 56; max-width: 100%; height: auto; max-height: 90%; background: $surface; border: round $border;
        border-title-color: $text-accent; border-title-style: bold;
    }
    ColumnChooser Rows { height: auto; max-height: 20; scrollbar-size-vertical: 0; }
    ColumnChooser Static { height: auto; padding: 0 1; }
    """

    def __init__(self, rows: Arranged[Any]) -> None:
        """Choose the columns of ``rows``."""
        super().__init__()
        self._rows = rows

    def compose(self) -> ComposeResult:
        with Vertical() as box:
            box.border_title = "Columns"
            yield Rows[Column[Any]](
                (
                    Column("", lambda column, _: self._mark(column), 3),
                    Column("column", lambda column, _: column.name, 12, 1),
                    Column("order", lambda column, _: self._order(column), 11),
                    Column("", lambda column, _: self._note(column), 20),
                ),
                lambda column: column.name,
                id="columns",
            )
            yield Static("", id="why", markup=False)

    def on_mount(self) -> None:
        """Show the columns that have a name."""
        self._list()
        self._own.styles.height = len(self._own.items) + 1
        self._own.focus()
        self._explain()

    def _list(self) -> None:
        self._own.show([column for column in self._rows.columns if column.name])

    @property
    def _own(self) -> Rows[Column[Any]]:
        found: Rows[Column[Any]] = self.query_one("#columns", Rows)
        return found

    # -- what is shown ----------------------------------------------------------------------------------

    @property
    def _layout(self) -> Layout:
        return self._rows.arrangement

    def _shown(self, column: Column[Any]) -> bool:
        return self._layout.shows(column, self._rows.room)

    def _mark(self, column: Column[Any]) -> Text:
        shown = self._shown(column)
        return Text("[x]" if shown else "[ ]", style=GOOD if shown else "dim")

    def _order(self, column: Column[Any]) -> Text:
        if column.sort is None:
            return Text("-", style="dim")
        if self._layout.sort != column.name:
            return Text("")
        return Text("descending" if self._layout.descending else "ascending", style=DOUBT)

    def _note(self, column: Column[Any]) -> Text:
        narrow = self._rows.room < column.least and column.name not in self._layout.hidden | self._layout.shown
        beside = self.app.size.width - self._rows.room  # frames, and other panes
        return Text(f"from {column.least + beside} columns on" if narrow else "", style="dim")

    def _explain(self, why: str = "") -> None:
        keys = Text()
        for key, what in KEYS:
            keys.append(key, "bold").append(f" {what}  ")
        self.query_one("#why", Static).update(Text(why, DOUBT) if why else keys)

    # -- what is pressed --------------------------------------------------------------------------------

    def _use(self, layout: Layout) -> None:
        self._rows.choose(layout)
        self._list()
        self._explain()

    def on_rows_chosen(self, event: Rows.Chosen[Column[Any]]) -> None:
        """Sort by the selected column, or reverse the order, or restore the table's own."""
        event.stop()
        if event.item.sort is None:
            self._explain(f"The table cannot be sorted by {event.item.name}.")
        else:
            self._use(self._layout.sorted_by(event.item.name))

    def on_arranged_refused(self, event: Rows.Refused) -> None:
        """Say why a key does nothing."""
        event.stop()
        self._explain(event.why)

    def action_show(self) -> None:
        """Show or hide the selected column."""
        column = self._own.item
        if column is None:
            return
        shown = [other for other in self._rows.columns if other.name and self._shown(other)]
        if shown == [column]:
            self._explain("One column has to stay.")
        else:
            self._use(self._layout.with_column(column.name, shown=not self._shown(column)))

    def action_default(self) -> None:
        """Restore the columns and the order that the table had before anything was chosen."""
        self._use(Layout())

    async def action_dismiss(self, result: None = None) -> None:
        """Close."""
        self.dismiss(result)
