"""The terminal inspector's application: which views there are, and what is the same in all of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from textual.app import App
from textual.binding import Binding

from inspector.tui.source import Source

if TYPE_CHECKING:
    from pathlib import Path

    from textual.driver import Driver

LOOK = 0.25
"""Seconds between two looks for something new."""


class Inspector(App[None]):
    """A capture in a terminal."""

    TITLE = "puppet-inspector"
    ENABLE_COMMAND_PALETTE: ClassVar[bool] = True
    BINDINGS: ClassVar = [
        Binding("q", "quit", "Quit"),
        Binding("question_mark", "help", "Keys", key_display="?"),
    ]

    def __init__(self, path: Path, *, driver: type[Driver] | None = None) -> None:
        """Open a capture. Raises CaptureError."""
        super().__init__(driver_class=driver)
        self.source = Source(path)

    def on_mount(self) -> None:
        from inspector.tui.runs import Runs

        self.push_screen(Runs())
        self.set_interval(LOOK, self.look)

    def on_unmount(self) -> None:
        self.source.close()

    def look(self) -> None:
        """Show what is new in the capture."""
        from inspector.tui.view import View

        before = self.source.total, self.source.trouble
        if (self.source.poll() or (self.source.total, self.source.trouble) != before) and isinstance(self.screen, View):
            self.screen.update()


def run(path: Path, *, ascii_only: bool = False) -> None:
    """Open a capture in this terminal until the user quits. Raises CaptureError."""
    driver: type[Driver] | None = None
    if ascii_only:
        from inspector.tui.ascii import AsciiDriver

        driver = AsciiDriver
    Inspector(path, driver=driver).run()
