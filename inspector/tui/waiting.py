"""Waits for a capture: what is shown where nothing was recorded yet."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.text import Text
from textual.binding import Binding
from textual.widgets import Static

from inspector.capture import paths
from inspector.pages.styles import COMMAND
from inspector.text import clean
from inspector.tui.keys import Keys
from inspector.tui.panes import Pane
from inspector.tui.themes import ThemedApp

if TYPE_CHECKING:
    from pathlib import Path

    from textual.app import ComposeResult
    from textual.driver import Driver

INTERVAL = 0.25
"""Seconds between two looks at the directory."""
WAYS = (
    ("Record this host's agent, once:", "puppet-inspector run -- puppet agent -t"),
    ("Start the proxy between agents and their master:", "puppet-inspector proxy"),
    ("Try it in a lab, without Puppet:", "puppet-inspector demo --serve"),
)


class Waiting(ThemedApp["Path"]):
    """Shows how a capture is made, and returns the first one that is there; none if the user leaves before."""

    BINDINGS = [Binding("q,escape", "quit", "Quit", key_display="q")]
    ENABLE_COMMAND_PALETTE = False
    DEFAULT_CSS = """
    Waiting { background: $surface; }
    Waiting Pane { height: 1fr; padding: 0 1; }
    """

    def __init__(self, folder: Path, *, driver: type[Driver] | None = None) -> None:
        super().__init__(driver=driver)
        self._folder = folder

    def compose(self) -> ComposeResult:
        text = Text(f"There is no capture in {clean(str(self._folder))}/ yet. It opens as soon as there is one.\n")
        for what, command in WAYS:
            text.append(f"\n{what}\n")
            text.append(f"  {command}\n", style=COMMAND)
        with Pane(title="Waiting for a capture"):
            yield Static(text, markup=False)
        yield Keys()

    def on_mount(self) -> None:
        """Begin to look."""
        self.set_interval(INTERVAL, self._look)

    def _look(self) -> None:
        found = paths.newest_in(self._folder)
        if found is not None:
            self.exit(found)
