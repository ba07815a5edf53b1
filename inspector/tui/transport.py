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
    from inspector.model import Severity

SHORT = 10.0
"""Length of a run, in seconds, below which moments are shown in milliseconds."""
PLAYING, PAUSED = "▶ playing", "■ paused "
ROOMY = 120
"""Columns from which all keys of playback are named."""


class Transport(Widget):
    """One line: playing or paused, speed, position, and a time line with the phases and findings of the run. Its parts
    can be clicked, the time line dragged."""

    COMPONENT_CLASSES = {"transport--key"}
    DEFAULT_CSS = """
    Transport { height: 1; color: $foreground; }
    Transport > .transport--key { color: $text-accent; text-style: bold; }
    """

    class Sought(Message):
        """The user wants to go to this moment."""

        def __init__(self, moment: float) -> None:
            super().__init__()
            self.moment = moment

    class Pressed(Message):
        """The name of a key was clicked."""

        def __init__(self, action: str) -> None:
            super().__init__()
            self.action = action
            """What the key does, as in a binding."""

    def __init__(self, *, id: str | None = None) -> None:  # noqa: A002 - Textual's own name
        super().__init__(id=id)
        self._player: Player | None = None
        self._dragged = False
        self._keys: dict[str, range] = {}
        """The columns of the keys that can be clicked, by what they do."""
        self._bar = range(0)

    def show(self, player: Player) -> None:
        """Show the position of a player."""
        self._player = player
        self.refresh()

    def render(self) -> Text:
        """Draw the line and remember where its parts are, for the mouse."""
        player, self._keys = self._player, {}
        text = Text(" ", no_wrap=True, end="")
        if player is None:
            return text
        length = player.finish - player.start
        self._key(text, "Space", "play", PLAYING if player.playing else PAUSED)
        self._key(text, "-", "speed(-1)", "")
        text.append(f"x{player.speed:g}".ljust(6))
        self._key(text, "+", "speed(1)", "")
        text.append(" ")
        if self.size.width >= ROOMY:
            self._key(text, ",", "step('previous_exchange')", "")
            self._key(text, ".", "step('next_exchange')", "step")
            self._key(text, "p", "step('next_phase')", "phase")
            self._key(text, "}", "step('next_finding')", "finding")
        digits = 3 if length < SHORT else 1
        text.append(f" {player.at - player.start:.{digits}f} s of {length:.{digits}f} s  ")
        after = Text("  ")
        if player.phase is not None:
            after.append_text(palette.phase(player.phase))
        if player.skipping:
            after.append(" ≈ shortened")
        after.append(" ")
        room = self.size.width - text.cell_len - after.cell_len
        self._bar = range(text.cell_len, text.cell_len + max(0, room))
        if room > 0:
            text.append_text(_time_line(player, room))
        return text.append_text(after)

    def _key(self, text: Text, name: str, action: str, what: str) -> None:
        """Add a key that can be clicked, and what it does in a word."""
        begun = text.cell_len
        text.append(name, style=self.get_component_rich_style("transport--key", partial=True))
        text.append(f" {what}  " if what else " ")
        self._keys[action] = range(begun, text.cell_len)

    # -- the mouse --------------------------------------------------------------------------------------

    def on_mouse_down(self, event: events.MouseDown) -> None:
        event.stop()
        if event.x in self._bar:
            self._dragged = True
            self.capture_mouse()
            self._seek(event.x)
        else:
            for action, columns in self._keys.items():
                if event.x in columns:
                    self.post_message(self.Pressed(action))

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
        if self._player is not None:
            share = min(max((x - self._bar.start) / max(1, len(self._bar) - 1), 0.0), 1.0)
            self.post_message(self.Sought(self._player.start + (self._player.finish - self._player.start) * share))


def _time_line(player: Player, width: int) -> Text:
    """The run from left to right: phases in their colours, findings as marks, and the position."""
    length = max(player.finish - player.start, 1e-9)

    def column(moment: float) -> int:
        return min(width - 1, max(0, round((moment - player.start) / length * (width - 1))))

    found: dict[int, Severity] = {}
    for moment, severity in player.marks:
        at = column(moment)
        if at not in found or severity.rank > found[at].rank:
            found[at] = severity
    here = column(player.at)
    text = Text()
    for at in range(width):
        phase = player.phase_at(player.start + (at + 0.5) / width * length)
        style = palette.PHASES[phase][1] if phase else "dim"
        if at == here:
            text.append("●", style="bold")
        elif at in found:
            text.append("◆", style=palette.SEVERITIES[found[at]])
        else:
            text.append("━" if at < here else "─", style=style)
    return text


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
