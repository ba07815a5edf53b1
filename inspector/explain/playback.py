"""A run played as it happened: where it stands, how fast it goes, and what to jump to. No clock of its own.

Silences play in real time like everything else, unless ``skip`` is set (as it is at first): then one of more than
``LONG`` seconds goes by in one second of playing.
"""

from __future__ import annotations

import datetime
import re
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from inspector import clocks
from inspector.errors import InspectorError
from inspector.text import clock, seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspector.explain.timeline import Entry
    from inspector.model import Phase

SPEEDS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
LONG = 5.0
"""Seconds of silence from which on ``skip`` shortens it."""
SHORTENED = 1.0
"""Seconds of playing (at speed 1) that a shortened silence takes."""
ROUNDED = 0.1
"""Seconds by which a time may be beyond the end: the run's length is shown rounded."""
_CLOCK = re.compile(r"(\d{1,2}):(\d\d)(?::(\d\d(?:\.\d{1,6})?))?")
_NUMBER = re.compile(r"(\d+(?:\.\d+)?)\s*(%|s|)")


class Player:
    """Plays the entries of a run."""

    def __init__(self, entries: Sequence[Entry]) -> None:
        """``entries`` in the order in which they began."""
        self.playing = False
        self.skip = True
        """Shorten long silences."""
        self._speed = SPEEDS.index(1.0)
        self.start = self.finish = 0.0
        """When the run's first record began and when its last one ended."""
        self._take(entries)
        self.at = self.start
        """The moment that is shown."""

    def _take(self, entries: Sequence[Entry]) -> None:
        records = [entry for entry in entries if entry.kind == "record"]
        self.start = min((record.began for record in records), default=0.0)
        self.finish = max((record.ended for record in records), default=self.start)
        self._exchanges = sorted(record.began for record in records)
        phases = [(entry.began, entry.brief.phase) for entry in entries if entry.kind == "phase" and entry.brief]
        self._phase_starts = [began for began, _ in phases]
        self._phases = [phase for _, phase in phases]
        # A finding is proved once the record is whole.
        self._findings = sorted(record.ended for record in records if record.brief and record.brief.signs)
        self._silences = sorted(
            (entry.began, entry.ended)
            for entry in entries
            if entry.kind == "silence" and entry.ended - entry.began > LONG
        )

    def extend(self, entries: Sequence[Entry]) -> None:
        """Take the run's entries as they are now, the old ones included. Who stands at the end goes along with it."""
        follows = self.at_end
        self._take(entries)
        self.at = self.finish if follows else min(max(self.at, self.start), self.finish)

    # -- where it stands ------------------------------------------------------------------------------------

    @property
    def at_end(self) -> bool:
        return self.at >= self.finish

    @property
    def speed(self) -> float:
        """Seconds of the run in a second of playing."""
        return SPEEDS[self._speed]

    @property
    def phase(self) -> Phase | None:
        """The phase that the run is in at this moment."""
        at = bisect_right(self._phase_starts, self.at) - 1
        return self._phases[at] if at >= 0 else None

    @property
    def skipping(self) -> bool:
        """Whether a long silence is being shortened at this moment."""
        return self.skip and self._silence() is not None

    def _silence(self) -> tuple[float, float] | None:
        """The long silence that this moment is in, its last moment not included."""
        at = bisect_right(self._silences, (self.at, float("inf"))) - 1
        return self._silences[at] if at >= 0 and self.at < self._silences[at][1] else None

    # -- playing --------------------------------------------------------------------------------------------

    def tick(self, elapsed_seconds: float) -> None:
        """Go on by this much of the user's time, if it is playing; at the end it stops."""
        left = elapsed_seconds * self.speed
        while self.playing and left > 0 and not self.at_end:
            silence = self._silence() if self.skip else None
            if silence:
                pace, upto = (silence[1] - silence[0]) / SHORTENED, silence[1]
            else:
                pace, upto = 1.0, self._next_silence() if self.skip else self.finish
            if self.at + left * pace < upto:
                self.at += left * pace
                return
            left -= (upto - self.at) / pace
            self.at = upto
        self.playing = self.playing and not self.at_end

    def _next_silence(self) -> float:
        at = bisect_right(self._silences, (self.at, float("inf")))
        return self._silences[at][0] if at < len(self._silences) else self.finish

    def toggle(self) -> None:
        """Play or pause; at the end, play it again from the beginning."""
        if not self.playing and self.at_end:
            self.begin()
        self.playing = not self.playing and not self.at_end

    def faster(self) -> None:
        self._speed = min(self._speed + 1, len(SPEEDS) - 1)

    def slower(self) -> None:
        self._speed = max(self._speed - 1, 0)

    # -- jumping --------------------------------------------------------------------------------------------

    def to(self, moment: float) -> None:
        """Show this moment, or the nearest that the run has."""
        self.at = min(max(moment, self.start), self.finish)

    def begin(self) -> None:
        self.at = self.start

    def end(self) -> None:
        self.at = self.finish

    def next_exchange(self) -> bool:
        """Pause where the next record begins; at the end and False if none does."""
        return self._step(self._exchanges)

    def previous_exchange(self) -> bool:
        """Pause where the record before this moment begins; False if there is none."""
        self.playing = False
        place = bisect_left(self._exchanges, self.at) - 1
        self.at = self._exchanges[place] if place >= 0 else self.start
        return place >= 0

    def next_phase(self) -> bool:
        """Pause where the next phase begins; at the end and False if none does."""
        return self._step(self._phase_starts)

    def next_finding(self) -> bool:
        """Pause where the next finding is proved; stay and False if none is."""
        return self._step(self._findings, stay=True)

    def _step(self, moments: Sequence[float], *, stay: bool = False) -> bool:
        self.playing = False
        place = bisect_right(moments, self.at)
        if place < len(moments):
            self.at = moments[place]
        elif not stay:
            self.end()
        return place < len(moments)

    def jump(self, text: str) -> None:
        """Show the moment that a user typed: ``12.5`` (seconds from the run's start), ``50%``, ``14:03:20`` (local
        time). Raises InspectorError."""
        text = text.strip()
        length, slack = self.finish - self.start, ROUNDED
        if number := _NUMBER.fullmatch(text):
            value = float(number[1])
            moment = self.start + (length * value / 100 if number[2] == "%" else value)
            slack = 0.0 if number[2] == "%" else slack
        elif time := _CLOCK.fullmatch(text):
            moment = self._local(text, int(time[1]), int(time[2]), float(time[3] or 0))
            slack = 1.0  # it is typed to the second
        else:
            raise InspectorError(
                f"{text!r} is not a time.",
                "Type seconds from the run's start (12.5), a share (50%), or a time (14:03:20).",
            )
        if not self.start - slack <= moment <= self.finish + slack:
            raise InspectorError(
                f"The run does not contain {text}.",
                f"It took {seconds(length)}, from {clock(self.start)} to {clock(self.finish)}.",
            )
        self.to(moment)

    def _local(self, text: str, hour: int, minute: int, second: float) -> float:
        """The first moment from the run's start on that has this local time of day."""
        if hour > 23 or minute > 59 or second >= 60:
            raise InspectorError(f"{text!r} is not a time of day.", "It is between 00:00:00 and 23:59:59.")
        day, margin = datetime.timedelta(days=1), 2 * clocks.DAY
        start = clocks.date(min(max(self.start, clocks.FIRST + margin), clocks.LAST - margin)).astimezone()
        whole = int(second)
        moment = start.replace(hour=hour, minute=minute, second=whole, microsecond=int((second - whole) * 1e6))
        while moment < start - datetime.timedelta(seconds=1):
            moment += day
        return moment.timestamp()
