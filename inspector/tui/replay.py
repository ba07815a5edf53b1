"""Playback of a run: the clock, its keys, and the state of the agent at a moment."""

from __future__ import annotations

import time
from bisect import bisect_right
from typing import TYPE_CHECKING

from textual.binding import Binding
from textual.worker import get_current_worker

from inspector.errors import InspectorError
from inspector.explain.agent_state import known
from inspector.explain.playback import Player
from inspector.protocol import documents as d
from inspector.runs.run import Run
from inspector.tui.transport import Knowledge, Transport
from inspector.tui.view import View, unread

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.timer import Timer

    from inspector.explain.timeline import Entry
    from inspector.tui.waterfall import Timed

TICK = 1 / 20
"""Seconds between two pictures during playback."""


class Played(View):
    """A view of one run that can be played back.

    It has a ``Transport``, the list ``timed``, and a ``Knowledge`` with the id ``knowledge`` that takes the place of
    the widget ``exchange``.
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
        if self.query_one("#knowledge").has_class("gone"):
            self._show_knowledge()
            self.revealed()
        else:
            self.show_exchange()

    def _show_knowledge(self) -> None:
        self.query_one("#exchange").add_class("gone")
        self.query_one("#knowledge").remove_class("gone")
        self.named("Agent state")
        self.draw()

    def show_exchange(self) -> None:
        """Show the exchange instead of the state of the agent."""
        self.query_one("#knowledge").add_class("gone")
        self.query_one("#exchange").remove_class("gone")
        self.named("")

    def named(self, what: str) -> None:
        """Name what is shown in that pane; empty: the exchange."""

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

        self.ask("jump to (12.5 seconds, 50%, 14:03:05): ", jump)

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
        if not self.query_one("#knowledge").has_class("gone"):
            self._show_known(player.at)

    def _show_known(self, at: float) -> None:
        if self._stale and not self._learning:  # one thread at a time: there are twenty pictures a second
            self._stale, self._learning = False, True
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
            self.show_message(trouble)
        self.draw()
