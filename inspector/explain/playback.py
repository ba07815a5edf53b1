"""Playback of a run: its position, its speed, and the targets for jumps. It has no clock.

Silences play in real time like everything else, unless ``skip`` is set (the default): then one of more than ``LONG``
seconds takes one second of playback.
"""

from __future__ import annotations

import datetime
from bisect import bisect_left, bisect_right
from typing import TYPE_CHECKING

from inspector import clocks, regex
from inspector.errors import InspectorError
from inspector.text import clock, seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspector.explain.timeline import Entry
    from inspector.model import Phase

SPEEDS = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0)
LONG = 5.0
"""Seconds of silence above which ``skip`` shortens it."""
SHORTENED = 1.0
"""Seconds of playback (at speed 1) that a shortened silence takes."""
ROUNDED = 0.1
"""Seconds by which a time may be beyond the end, because the run's length is displayed rounded."""
_CLOCK = regex.compile(r"(\d{1,2}):(\d\d)(?::(\d\d(?:\.\d{1,6})?))?")
_NUMBER = regex.compile(r"(\d+(?:\.\d+)?)\s*(%|s|)")


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
        """The current time within the run."""

    def _take(self, entries: Sequence[Entry]) -> None:
        records = [entry for entry in entries if entry.kind == "record"]
        self.start = min((record.began for record in records), default=0.0)
        self.finish = max((record.ended for record in records), default=self.start)
        self._exchanges = sorted(record.began for record in records)
        phases = [(entry.began, entry.brief.phase) for entry in entries if entry.kind == "phase" and entry.brief]
        self._phase_starts = [began for began, _ in phases]
        self._phases = [phase for _, phase in phases]
        # The evidence of a finding is complete when its record is.
        self.marks = sorted(
            (record.ended, record.brief.signs[0].severity) for record in records if record.brief and record.brief.signs
        )
        """When a record with findings ended, and the worst severity of them."""
        self._findings = [moment for moment, _ in self.marks]
        self._silences = sorted(
            (entry.began, entry.ended)
            for entry in entries
            if entry.kind == "silence" and entry.ended - entry.began > LONG
        )

    def extend(self, entries: Sequence[Entry]) -> None:
        """Replace the run's entries with the current ones, including the old. A position at the end moves with the
        end."""
        follows = self.at_end
        self._take(entries)
        self.at = self.finish if follows else min(max(self.at, self.start), self.finish)

    # -- position -------------------------------------------------------------------------------------------

    @property
    def at_end(self) -> bool:
        return self.at >= self.finish

    @property
    def speed(self) -> float:
        """Seconds of the run per second of playback."""
        return SPEEDS[self._speed]

    @property
    def phase(self) -> Phase | None:
        """The phase at the current time."""
        return self.phase_at(self.at)

    def phase_at(self, moment: float) -> Phase | None:
        """The phase at a time; None before the first one."""
        at = bisect_right(self._phase_starts, moment) - 1
        return self._phases[at] if at >= 0 else None

    @property
    def skipping(self) -> bool:
        """Whether a long silence is being shortened now."""
        return self.skip and self._silence() is not None

    def _silence(self) -> tuple[float, float] | None:
        """Return the long silence that the current time is in; its end does not belong to it."""
        at = bisect_right(self._silences, (self.at, float("inf"))) - 1
        return self._silences[at] if at >= 0 and self.at < self._silences[at][1] else None

    # -- playing --------------------------------------------------------------------------------------------

    def tick(self, elapsed_seconds: float) -> None:
        """Advance by this much of the user's time, if it is playing; at the end it stops."""
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
        """Go to this time, or to the nearest time within the run."""
        self.at = min(max(moment, self.start), self.finish)

    def begin(self) -> None:
        self.at = self.start

    def end(self) -> None:
        self.at = self.finish

    def next_exchange(self) -> bool:
        """Pause where the next record begins; at the end and False if there is none."""
        return self._step(self._exchanges)

    def previous_exchange(self) -> bool:
        """Pause where the previous record begins; False if there is none."""
        self.playing = False
        place = bisect_left(self._exchanges, self.at) - 1
        self.at = self._exchanges[place] if place >= 0 else self.start
        return place >= 0

    def next_phase(self) -> bool:
        """Pause where the next phase begins; at the end and False if there is none."""
        return self._step(self._phase_starts)

    def next_finding(self) -> bool:
        """Pause at the evidence of the next finding; return False without moving if there is none."""
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
        """Go to the time that a user typed: ``12.5`` (seconds from the run's start), ``50%``, ``14:03:20`` (local
        time). Raises InspectorError."""
        text = text.strip()
        length, slack = self.finish - self.start, ROUNDED
        if number := _NUMBER.fullmatch(text):
            value = float(number[1])
            moment = self.start + (length * value / 100 if number[2] == "%" else value)
            slack = 0.0 if number[2] == "%" else slack
        elif time := _CLOCK.fullmatch(text):
            moment = self._local(text, int(time[1]), int(time[2]), float(time[3] or 0))
            slack = 1.0  # typed times have no fractions of a second
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
        """The first time since the run's start with this local time of day."""
        if hour > 23 or minute > 59 or second >= 60:
            raise InspectorError(f"{text!r} is not a time of day.", "It is between 00:00:00 and 23:59:59.")
        day, margin = datetime.timedelta(days=1), 2 * clocks.DAY
        start = clocks.date(min(max(self.start, clocks.FIRST + margin), clocks.LAST - margin)).astimezone()
        whole = int(second)
        moment = start.replace(hour=hour, minute=minute, second=whole, microsecond=int((second - whole) * 1e6))
        while moment < start - datetime.timedelta(seconds=1):
            moment += day
        return moment.timestamp()
