"""The line at the bottom of a view in which something is typed: a search, a filter, a note."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.binding import Binding
from textual.containers import Horizontal
from textual.widgets import Input, Label

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual.app import ComposeResult


class Prompt(Horizontal):
    """Hidden until it is opened; Enter gives what was typed, Escape drops it."""

    BINDINGS = [Binding("escape", "cancel", "Cancel", show=False)]
    DEFAULT_CSS = """
    Prompt { height: 1; display: none; background: $panel; }
    Prompt.open { display: block; }
    Prompt Label { width: auto; padding: 0 1; text-style: bold; }
    Prompt Input { width: 1fr; height: 1; border: none; padding: 0; background: $panel; }
    """

    def __init__(self) -> None:
        super().__init__()
        self._then: Callable[[str], None] | None = None

    def compose(self) -> ComposeResult:
        yield Label("", markup=False)
        yield Input(compact=True)

    def open(self, label: str, then: Callable[[str], None], value: str = "") -> None:
        """Let the user type."""
        self._then = then
        self.query_one(Label).update(label)
        line = self.query_one(Input)
        line.value = value
        line.cursor_position = len(value)
        self.add_class("open")
        line.focus()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        event.stop()
        then = self._then
        self.action_cancel()
        if then:
            then(event.value)

    def action_cancel(self) -> None:
        self._then = None
        self.remove_class("open")
        self.screen.focus_next()
