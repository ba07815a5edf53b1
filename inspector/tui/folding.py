"""A list with branches: lines that open into others below them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.binding import Binding
from textual.message import Message

from inspector.tui.rows import Rows

if TYPE_CHECKING:
    from textual import events


class Folding[T](Rows[T]):
    """A list with branches. An arrow key, or a click on its mark, opens and closes one; others know what is in it."""

    BINDINGS = [
        Binding("right,l", "fold(False)", "Unfold", show=False),
        Binding("left,h", "fold(True)", "Fold", show=False),
    ]

    class Fold[U](Message):
        """A branch, or the one around a line, is to be closed or opened."""

        def __init__(self, rows: Folding[U], item: U, *, fold: bool) -> None:
            super().__init__()
            self.rows = rows
            self.item = item
            self.fold = fold

    def marked(self, item: T) -> range:
        """The cells of a line in which its mark is; none if it is no branch."""
        raise NotImplementedError

    def is_open(self, item: T) -> bool:
        """Whether a branch is open."""
        raise NotImplementedError

    def action_fold(self, fold: bool) -> None:  # noqa: FBT001 - Textual passes it by position
        """Open or close the selected branch, or close the one around the selected line."""
        if self.item is not None:
            self.post_message(self.Fold(self, self.item, fold=fold))

    def on_click(self, event: events.Click) -> None:
        """Open or close a branch with one click on its mark; elsewhere a click is as in all lists."""
        place = event.y - 1 + self.scroll_offset.y
        if event.y > 0 and place < len(self.items) and event.x in self.marked(item := self.items[place]):
            event.stop()
            event.prevent_default()
            self.move_to(place)
            self.post_message(self.Fold(self, item, fold=self.is_open(item)))
