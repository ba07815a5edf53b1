"""Playing a run as it happened: the clock, its keys, and what the agent knew at that moment."""

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
from inspector.tui.view import View

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.timer import Timer

    from inspector.explain.timeline import Entry
    from inspector.tui.waterfall import Timed

TICK = 1 / 20
"""Seconds between two pictures of a run that is played."""


class Played(View):
    """A view of one run that can be played. It has a ``Transport``, a ``Knowledge`` with the id ``knowledge`` in the
    place of the widget ``exchange``, and the list ``timed``."""

    BINDINGS = [
        Binding("space", "play", "Play"),
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
        """Where the cursor was put by playing, not by the user."""
        self._stale = True
        """The run has grown since that was learned."""

    @property
    def timed(self) -> Timed:
        """The list that shows the moment."""
        raise NotImplementedError

    def follow_cursor(self) -> None:
        """Show what the cursor is on now."""
        raise NotImplementedError

    @property
    def playing(self) -> bool:
        """Whether time goes on."""
        return self._player is not None and self._player.playing

    def take(self, entries: Sequence[Entry]) -> None:
        """These are the entries now; whoever was at the end stays there."""
        if self._player is None:
            self._player = Player(entries)
            self._player.end()
        else:
            self._player.extend(entries)
        self._stale = True
        self.draw()

    def action_knowledge(self) -> None:
        """What the agent knew at the moment that is shown, instead of the exchange; and back."""
        if self.query_one("#knowledge").has_class("gone"):
            self._show_knowledge()
            self.revealed()
        else:
            self.show_exchange()

    def _show_knowledge(self) -> None:
        self.query_one("#exchange").add_class("gone")
        self.query_one("#knowledge").remove_class("gone")
        self.draw()

    def show_exchange(self) -> None:
        """The exchange again, instead of what the agent knew."""
        self.query_one("#knowledge").add_class("gone")
        self.query_one("#exchange").remove_class("gone")

    def revealed(self) -> None:
        """What the agent knew was asked for: where one pane is shown at a time it has to be that one."""

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

    def on_transport_toggled(self) -> None:
        self.action_play()

    def on_transport_speed(self, event: Transport.Speed) -> None:
        self.action_speed(event.by)

    def draw(self) -> None:
        """The picture at the moment where the player is."""
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
        if self._stale and not self._learning:  # one at a time: there are twenty pictures a second
            self._stale, self._learning = False, True
            self.run_worker(self._learn, thread=True, group="knowledge")
        if not self._known:
            return
        place = bisect_right(self._known, at, key=lambda entry: entry[0])
        self.query_one(Knowledge).show(self._known[place - 1][1])

    def _learn(self) -> None:
        """In a thread: what the agent knew after each of its records."""
        worker = get_current_worker()
        learned = [(float("-inf"), known(Run(address=None)))]
        asked: d.CatalogRequest | None = None
        got: d.Catalog | None = None
        trouble = ""
        try:
            for step in self.source.steps(self.number):
                if worker.is_cancelled:
                    return
                asked = step.request if isinstance(step.request, d.CatalogRequest) else asked
                got = step.response if isinstance(step.response, d.Catalog) else got
                if step.run is not None:
                    learned.append((step.record.ended, known(step.run, asked, got)))
        except InspectorError as error:  # what was learned up to there is good
            trouble = str(error)
        learned.sort(key=lambda entry: entry[0])
        self.later(self._learned, learned, trouble)

    def _learned(self, learned: list[tuple[float, list[tuple[str, str]]]], trouble: str) -> None:
        self._known, self._learning = learned, False
        if trouble:
            self.say(trouble)
        self.draw()
