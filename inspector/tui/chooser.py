"""A small list in the middle of the screen, of which one line is chosen."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from textual.binding import Binding
from textual.screen import ModalScreen
from textual.widgets import Static

from inspector.text import clean
from inspector.tui.columns import Column
from inspector.tui.panes import Pane
from inspector.tui.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from textual.app import ComposeResult


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
        Binding("d,delete", "remove", "Remove", show=False),
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
        """``chosen`` is where the cursor begins; with ``remove`` the key d removes the line under the cursor."""
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
            pane.name_it(self._title, "Enter takes it, d removes it" if self._remove else "Enter takes it")
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
