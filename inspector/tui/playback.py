"""Playback of a run: the line with its position, its keys, and the state of the agent at a moment."""

from __future__ import annotations

import time
from bisect import bisect_right
from typing import TYPE_CHECKING

from rich.table import Table
from rich.text import Text
from textual.binding import Binding
from textual.containers import VerticalScroll
from textual.message import Message
from textual.widget import Widget
from textual.widgets import Static
from textual.worker import get_current_worker

from inspector.errors import InspectorError
from inspector.explain.agent_state import known
from inspector.explain.playback import Player
from inspector.pages import palette
from inspector.protocol import documents as d
from inspector.runs.run import Run
from inspector.tui.view import View, unread

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from textual import events
    from textual.app import ComposeResult
    from textual.timer import Timer

    from inspector.explain.timeline import Entry
    from inspector.model import Severity
    from inspector.tui.timed import Timed

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


TICK = 1 / 20
"""Seconds between two pictures during playback."""
AGAIN = 5.0
"""Seconds until what the agent of a run has is read again, while the run grows."""


class Played(View):
    """A view of one run that can be played back.

    It has a ``Transport``, the list ``timed``, and a ``Knowledge``, which ``lay_out`` shows: always ``beside`` the
    record if there is room, otherwise in its place while ``knowing``.
    """

    BINDINGS = [
        Binding("space", "play", "Play", show=False),
        Binding("i", "knowledge", "Agent state"),
        Binding("plus,equals_sign", "speed(1)", "Faster", key_display="+", show=False),
        Binding("minus", "speed(-1)", "Slower", key_display="-", show=False),
        Binding("full_stop", "step('next_exchange')", "Next exchange", key_display=".", show=False),
        Binding("comma", "step('previous_exchange')", "Previous exchange", key_display=",", show=False),
        Binding("p", "step('next_phase')", "Next phase", show=False),
        Binding("right_curly_bracket", "step('next_finding')", "Next finding", key_display="}", show=False),
        Binding("t", "jump", "Jump to a time", show=False),
    ]

    number: int

    def __init__(self) -> None:
        super().__init__()
        self._player: Player | None = None
        self._timer: Timer | None = None
        self._ticked = 0.0
        self._known: list[tuple[float, list[tuple[str, str]]]] = []
        self._learning = False
        self._again = 0.0
        """When the state of a run that grows is read again."""
        self.knowing = False
        """Whether the agent's state was asked for."""
        self.driven: Entry | None = None
        """The entry to which playback, not the user, moved the cursor."""
        self._stale = True
        """Whether the run has grown since the agent's state was read."""

    @property
    def timed(self) -> Timed:
        """The list that shows the moment."""
        raise NotImplementedError

    def follow_cursor(self) -> None:
        """Show the selected exchange."""
        raise NotImplementedError

    @property
    def playing(self) -> bool:
        """Whether playback is running."""
        return self._player is not None and self._player.playing

    def take(self, entries: Sequence[Entry]) -> None:
        """Use these entries; a player that was at the end stays at the end."""
        if self._player is None:
            self._player = Player(entries)
            self._player.end()
        else:
            self._player.extend(entries)
        self._stale = True
        self.draw()

    def action_knowledge(self) -> None:
        """Show the state of the agent at the current moment instead of the exchange, or the exchange again."""
        if self.beside:
            self.query_one(Knowledge).focus()
        elif self.knowing:
            self.show_exchange()
        else:
            self._show_knowledge()
            self.revealed()

    @property
    def growing(self) -> bool:
        """Whether the run is under way."""
        return False

    @property
    def beside(self) -> bool:
        """Whether the agent's state is beside the record."""
        return False

    def _show_knowledge(self) -> None:
        self._know(knowing=True)
        self.draw()

    def show_exchange(self) -> None:
        """Show the exchange instead of the state of the agent."""
        self._know(knowing=False)

    def _know(self, *, knowing: bool) -> None:
        if knowing != self.knowing:
            self.knowing = knowing
            self.lay_out()

    def revealed(self) -> None:
        """Show the pane of the agent's state, if only one pane is shown at a time."""

    # -- playing ----------------------------------------------------------------------------------------

    def action_play(self) -> None:
        if self._player is None:
            return
        if self._player.at_end and not self._player.playing:
            self._player.begin()
        self._player.toggle()
        self._ticked = time.monotonic()
        if self._timer is None:
            self._timer = self.set_interval(TICK, self._tick)
        if self._player.playing:
            self._show_knowledge()
        self.draw()

    def _tick(self) -> None:
        now = time.monotonic()
        elapsed, self._ticked = now - self._ticked, now
        if self._player is not None and self._player.playing:
            self._player.tick(elapsed)
            self.draw()

    def action_speed(self, by: int) -> None:
        if self._player is not None:
            (self._player.faster if by > 0 else self._player.slower)()
            self.draw()

    def action_step(self, to: str) -> None:
        if self._player is not None:
            getattr(self._player, to)()
            self.draw()
            self.follow_cursor()
            self.show_exchange()

    def action_jump(self) -> None:
        player = self._player

        def jump(text: str) -> None:
            if player is not None and self.attempt(lambda: player.jump(text)):
                self.draw()
                self.follow_cursor()

        self.ask("jump to (12.5 seconds, 50%, 14:03:05): ", jump, accept="Jump")

    def on_transport_sought(self, event: Transport.Sought) -> None:
        if self._player is not None:
            self._player.to(event.moment)
            self.draw()

    async def on_transport_pressed(self, event: Transport.Pressed) -> None:
        await self.run_action(event.action)

    def draw(self) -> None:
        """Draw the current moment of the player."""
        player = self._player
        if player is None:
            return
        until = None if player.at_end and not player.playing else player.at
        shown = self.timed
        shown.until = until
        if until is not None:
            shown.move_to(len(shown.items) - 1)
        self.driven = shown.item
        self.query_one(Transport).show(player)
        if self.knowing:
            self.show_state(player.at)
        elif self.beside and shown.item is not None:
            self.show_state(shown.item.ended)

    def show_state(self, at: float) -> None:
        """Show the state of the agent at a moment; it is read before, in a thread."""
        # One thread at a time: there are twenty pictures a second, and a run that grows does so with each record.
        now = time.monotonic()
        if self._stale and not self._learning and (now >= self._again or not self.growing):
            self._stale, self._learning, self._again = False, True, now + AGAIN
            self.run_worker(self._learn, thread=True, group="knowledge")
        if not self._known:
            return
        place = bisect_right(self._known, at, key=lambda entry: entry[0])
        self.query_one(Knowledge).show(self._known[place - 1][1])

    def _learn(self) -> None:
        """Read the state of the agent after each of its records; called in a thread."""
        worker = get_current_worker()
        learned = [(float("-inf"), known(Run(address=None)))]
        request: d.CatalogRequest | None = None
        catalog: d.Catalog | None = None
        trouble = ""
        try:
            for step in self.source.steps(self.number):
                if worker.is_cancelled:
                    return
                request = step.request if isinstance(step.request, d.CatalogRequest) else request
                catalog = step.response if isinstance(step.response, d.Catalog) else catalog
                if step.run is not None:
                    learned.append((step.record.ended, known(step.run, request, catalog)))
        except InspectorError as error:  # what was read so far is valid
            trouble = f"The agent's state {unread(error)}"
        learned.sort(key=lambda entry: entry[0])
        self.later(self._learned, learned, trouble)

    def _learned(self, learned: list[tuple[float, list[tuple[str, str]]]], trouble: str) -> None:
        self._known, self._learning = learned, False
        if trouble:
            self.show_message(trouble, stays=True)
        self.draw()
