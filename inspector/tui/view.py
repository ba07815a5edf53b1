"""What all views have in common: a title, a body, a line to type in, and the keys at the bottom.

A new view is a subclass of ``View`` with a ``body`` and an ``update``; whoever opens it pushes it on the screen.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.binding import Binding
from textual.screen import Screen
from textual.widgets import Footer, Static

from inspector.tui.prompt import Prompt
from inspector.tui.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from textual.app import ComposeResult
    from textual.widget import Widget

    from inspector.tui.app import Inspector
    from inspector.tui.source import Source


class View(Screen[None]):
    """A full screen of the inspector."""

    BINDINGS = [
        Binding("escape", "back", "Back"),
        Binding("slash", "search", "Search", key_display="/"),
        Binding("n", "again(1)", "Next match", show=False),
        Binding("N", "again(-1)", "Previous match", show=False),
    ]
    DEFAULT_CSS = """
    View #title { height: 1; background: $primary-darken-2; color: $text; padding: 0 1; text-style: bold; }
    View #said { height: 1; padding: 0 1; background: $panel; display: none; }
    View #said.shown { display: block; }
    """

    @property
    def inspector(self) -> Inspector:
        """The application."""
        from inspector.tui.app import Inspector

        app = self.app
        assert isinstance(app, Inspector)  # noqa: S101 - a view lives in no other
        return app

    @property
    def source(self) -> Source:
        """What is shown."""
        return self.inspector.source

    def compose(self) -> ComposeResult:
        yield Static("", id="title", markup=False)
        yield from self.body()
        yield Static("", id="said", markup=False)
        yield Prompt()
        yield Footer()

    def on_mount(self) -> None:
        self.update()

    # -- for the views ----------------------------------------------------------------------------------

    def body(self) -> Iterable[Widget]:
        """The widgets between title and keys."""
        return ()

    def heading(self) -> str:
        """The title line."""
        return ""

    def update(self) -> None:
        """Show what the source knows now; called when the view opens and whenever something is new."""
        self.query_one("#title", Static).update(self.heading())

    def say(self, text: str) -> None:
        """One line above the keys; empty: none."""
        said = self.query_one("#said", Static)
        said.update(text)
        said.set_class(bool(text), "shown")

    def ask(self, label: str, then: Callable[[str], None], value: str = "") -> None:
        """Let the user type one line, and give it to ``then`` (not if Escape is pressed)."""
        self.query_one(Prompt).open(label, then, value)

    def searched(self) -> Rows[object] | None:
        """The list in which ``/`` searches: the one that has the focus, or else the first."""
        if isinstance(self.focused, Rows):
            return self.focused
        return next(iter(self.query(Rows)), None)

    # -- keys -------------------------------------------------------------------------------------------

    def action_search(self) -> None:
        self.ask("/", self._search)

    def _search(self, text: str) -> None:
        rows = self.searched()
        if rows is not None and not rows.search(text) and text:
            self.say(f"No line contains {text!r}.")
        else:
            self.say("")

    def action_again(self, direction: int) -> None:
        rows = self.searched()
        if rows is not None:
            rows.search(rows.pattern, forward=direction > 0, again=True)

    def action_back(self) -> None:
        if len(self.app.screen_stack) > 2:
            self.app.pop_screen()
