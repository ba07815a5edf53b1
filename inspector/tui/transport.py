"""The position of the player below a run, and the state of the agent at that moment beside it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text
from textual.containers import VerticalScroll
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static

from inspector.pages import palette

if TYPE_CHECKING:
    from collections.abc import Iterable

    from textual import events
    from textual.app import ComposeResult

    from inspector.explain.playback import Player
    from inspector.model import Phase

SHORT = 10.0
"""Length of a run, in seconds, below which moments are shown in milliseconds."""
PLAYING, PAUSED = "▶ playing", "■ paused "


class Transport(Widget):
    """One line: playing or paused, speed, position, phase. It can be clicked and dragged."""

    DEFAULT_CSS = """
    Transport { height: 1; color: $foreground; }
    """

    class Sought(Message):
        """The user wants to go to this moment."""

        def __init__(self, moment: float) -> None:
            super().__init__()
            self.moment = moment

    class Toggled(Message):
        """The user wants to play or to pause."""

    class Speed(Message):
        """The user wants to play faster (1) or slower (-1)."""

        def __init__(self, by: int) -> None:
            super().__init__()
            self.by = by

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self._at = self._start = self._finish = 0.0
        self._playing = self._skipping = False
        self._speed = 1.0
        self._phase: Phase | None = None
        self._dragged = False
        self._faster = self._slower = range(0)
        self._bar = range(0)

    def show(self, player: Player) -> None:
        """Show the position of a player."""
        self._at, self._start, self._finish = player.at, player.start, player.finish
        self._playing, self._skipping = player.playing, player.skipping
        self._speed, self._phase = player.speed, player.phase
        self.refresh()

    def render(self) -> Text:
        """Draw the line and remember where its parts are, for the mouse."""
        length = self._finish - self._start
        text = Text(f" {PLAYING if self._playing else PAUSED} ", no_wrap=True, end="")
        text.append(" - ", style="reverse")
        self._slower = range(text.cell_len - 3, text.cell_len)
        text.append(f" x{self._speed:<4g}")
        text.append(" + ", style="reverse")
        self._faster = range(text.cell_len - 3, text.cell_len)
        digits = 3 if length < SHORT else 1
        text.append(f"  {self._at - self._start:.{digits}f} s of {length:.{digits}f} s  ")
        after = Text("  ")
        if self._phase is not None:
            after.append_text(palette.phase(self._phase))
        if self._skipping:
            after.append(" long silence, shortened")
        after.append(" ")
        room = self.size.width - text.cell_len - after.cell_len
        self._bar = range(text.cell_len, text.cell_len + max(0, room))
        if room > 0:
            done = round((self._at - self._start) / length * (room - 1)) if length > 0 else room - 1
            text.append("━" * done + "●", style="bold")
            text.append("─" * (room - 1 - done), style="dim")
        return text.append_text(after)

    # -- the mouse --------------------------------------------------------------------------------------

    def on_mouse_down(self, event: events.MouseDown) -> None:
        event.stop()
        if event.x in self._bar:
            self._dragged = True
            self.capture_mouse()
            self._seek(event.x)
        elif event.x in self._slower:
            self.post_message(self.Speed(-1))
        elif event.x in self._faster:
            self.post_message(self.Speed(1))
        elif event.x < self._slower.start:
            self.post_message(self.Toggled())

    def on_mouse_move(self, event: events.MouseMove) -> None:
        if self._dragged:
            event.stop()
            self._seek(event.x)

    def on_mouse_up(self, event: events.MouseUp) -> None:
        if self._dragged:
            event.stop()
            self._dragged = False
            self.release_mouse()

    def _seek(self, x: int) -> None:
        share = (x - self._bar.start) / max(1, len(self._bar) - 1)
        self.post_message(self.Sought(self._start + (self._finish - self._start) * min(max(share, 0.0), 1.0)))


class Knowledge(VerticalScroll):
    """The state of the agent at a moment: labels and texts."""

    DEFAULT_CSS = """
    Knowledge { padding: 0 1; }
    Knowledge Static { height: auto; }
    """

    def __init__(self, *, id: str | None = None, classes: str | None = None) -> None:  # noqa: A002
        super().__init__(id=id, classes=classes)
        self._table = Static("", markup=False)

    def compose(self) -> ComposeResult:
        yield self._table

    def show(self, pairs: Iterable[tuple[str, str]]) -> None:
        """Show the pairs returned by ``inspector.explain.agent_state.known``."""
        table = Table.grid(padding=(0, 1))
        for label, words in pairs:
            table.add_row(Text(label, style="bold"), Text(words, style="dim" if words == "not seen" else ""))
        self._table.update(table)
