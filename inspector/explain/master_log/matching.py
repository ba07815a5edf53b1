"""Which line of a log is about which recorded exchange, with the difference of the clocks taken out.

A line and an exchange that belong together have the same key (method, path with query, status), the line was written
when the exchange ended, and took no longer than it. One pass over the log finds the difference of its clock and the
proxy's: a line and an exchange that are nearest to each other vote for one, and the median of the votes in the two
seconds that have most of them is taken. In the second pass the lines that fit are noted at each exchange. Then what
fits nothing else is matched first, which leaves less to choose from for the others. Equal requests at the same time
that remain, as many lines as exchanges, are paired in the order of their durations; others stay unmatched.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator

VOTES = 2.0
"""Seconds within which the differences of the clocks agree: a log's times may be cut to the second."""
SLACK = 0.5
"""Seconds by which a line's time may be off, beyond what its rounding explains."""
LONGER = 0.25
"""Seconds by which a line may have taken longer than its exchange: masters log when the last byte is given away, which
differs by a few milliseconds from when it arrives (measured)."""
MOST = 32
"""Lines that fit one exchange, from which on it is not matched."""


@dataclass(frozen=True, slots=True, eq=False)
class Logged[Line]:
    """A line of a log; two equal ones are two lines."""

    key: Hashable
    time: float
    """By the log's clock."""
    line: Line
    took: float | None = None
    """Seconds, as far as it is known."""
    sent: int | None = None
    """Bytes of the request's body, if they are known. Those of an answer are no help: it is compressed after they were
    counted."""
    trace: str | None = None


@dataclass(slots=True, eq=False)
class Wanted[Line]:
    """A recorded exchange of which a line is looked for."""

    seq: int
    began: float
    ended: float
    sent: int = 0
    trace: str | None = None
    nearest: float | None = None
    """By how many seconds the time of the nearest line, whose nearest it is too, is later than ``ended``."""
    fits: list[Logged[Line]] = field(default_factory=list)
    crowded: bool = False
    """More lines fit than are noted."""


class Assigned[Line](NamedTuple):
    """What was matched."""

    lines: dict[int, Line]
    """By record number."""
    exact: int
    """How many by their traceparent."""
    by_duration: int
    """How many only by their duration."""
    ambiguous: int
    """Exchanges that more than one line fits, and that are not matched."""


class Matching[Line]:
    """The exchanges of a capture, and the lines of logs of one kind that fit them."""

    def __init__(self, rounded: float, *, within: bool = False) -> None:
        """``rounded`` is what the log's times are cut to, in seconds. ``within``: the lines are written at any moment
        of an exchange, not when it ends."""
        self._rounded, self._within = rounded, within
        self._wanted: dict[Hashable, list[Wanted[Line]]] = {}
        self._ends: dict[Hashable, list[float]] = {}
        self._longest: dict[Hashable, float] = {}
        self._open: dict[Hashable, list[int]] = {}
        """For each place that of the next exchange that is not crowded, or of one on the way to it."""

    def add(self, key: Hashable, wanted: Wanted[Line]) -> None:
        """Look for a line of an exchange."""
        self._wanted.setdefault(key, []).append(wanted)

    def prepare(self) -> None:
        """Put the exchanges in order, once all are added."""
        for key, found in self._wanted.items():
            found.sort(key=lambda wanted: wanted.ended)
            self._ends[key] = [wanted.ended for wanted in found]
            self._longest[key] = max(wanted.ended - wanted.began for wanted in found)
            self._open[key] = list(range(len(found) + 1))

    def wants(self, key: Hashable) -> bool:
        """Whether any exchange has a key."""
        return key in self._wanted

    # -- the difference of the clocks ---------------------------------------------------------------------

    def difference(self, logged: Iterable[Logged[Line]], expected: float, reach: float) -> float | None:
        """Return by how many seconds the log's clock is ahead of the proxy's, if that is within ``reach`` of what is
        ``expected``; None if no line is so near an exchange."""
        for wanted in self.every():
            wanted.nearest = None
        for one in logged:
            self._vote(one, expected, reach)
        votes = sorted(wanted.nearest for wanted in self.every() if wanted.nearest is not None)
        best, agreed, low = (0, 0.0), votes, 0
        for high, vote in enumerate(votes):
            while vote - votes[low] > VOTES:
                low += 1
            number = high + 1 - low
            if (number, -abs(vote - expected)) > best:
                best, agreed = (number, -abs(vote - expected)), votes[low : high + 1]
        return median(agreed) if agreed else None

    def _vote(self, one: Logged[Line], expected: float, reach: float) -> None:
        ends = self._ends.get(one.key, ())
        time = one.time + self._rounded / 2
        at = bisect_left(ends, time - expected)
        candidates = self._wanted.get(one.key, ())[max(0, at - 1) : at + 1]
        # Each must be the other's nearest: an exchange that no line is about does not vote for somebody else's.
        wanted = min(candidates, key=lambda wanted: abs(time - wanted.ended - expected), default=None)
        if wanted is None or abs(time - wanted.ended - expected) > reach:
            return
        away = time - wanted.ended
        if wanted.nearest is None or abs(away - expected) < abs(wanted.nearest - expected):
            wanted.nearest = away

    # -- the lines that fit -------------------------------------------------------------------------------

    def note(self, logged: Iterable[Logged[Line]], difference: float) -> None:
        """Note the lines that fit exchanges, if the log's clock is this many seconds ahead."""
        early = SLACK + self._rounded / 2
        for one in logged:
            if one.key not in self._wanted:
                continue
            time = one.time + self._rounded / 2 - difference
            ends, found, following = self._ends[one.key], self._wanted[one.key], self._open[one.key]
            late = time + early + (self._longest[one.key] if self._within else 0)
            at = _next(following, bisect_left(ends, time - early))
            while at < len(ends) and ends[at] <= late:
                wanted = found[at]
                if self._fits(one, time, wanted):
                    if len(wanted.fits) < MOST:
                        wanted.fits.append(one)
                    else:
                        wanted.crowded = True
                        following[at] = at + 1
                at = _next(following, at + 1)

    def _fits(self, one: Logged[Line], time: float, wanted: Wanted[Line]) -> bool:
        if self._within and time < wanted.began - SLACK - self._rounded / 2:
            return False
        return one.took is None or one.took <= wanted.ended - wanted.began + LONGER

    # -- one line for each exchange -----------------------------------------------------------------------

    def assigned(self) -> Assigned[Line]:
        """Return the line of each exchange."""
        lines: dict[int, Line] = {}
        exact = by_duration = ambiguous = 0
        for found in self._wanted.values():
            exact += _take_exact(found, lines)
            _prefer_size(found)
            _eliminate(found, lines)
            for group in _groups([wanted for wanted in found if wanted.fits]):
                paired = _paired(group)
                lines |= paired
                by_duration += len(paired)
                ambiguous += 0 if paired else len(group)
        return Assigned(lines, exact, by_duration, ambiguous)

    def every(self) -> Iterator[Wanted[Line]]:
        """Yield all exchanges."""
        for found in self._wanted.values():
            yield from found


def _next(following: list[int], at: int) -> int:
    """The place of the next exchange that is not crowded: equal requests by the thousand are not gone through for each
    line."""
    found = at
    while following[found] != found:
        found = following[found]
    while following[at] != found:
        following[at], at = found, following[at]
    return found


def _take_exact[Line](found: list[Wanted[Line]], lines: dict[int, Line]) -> int:
    """Match what has the same traceparent, if nothing else has it; return how many."""
    traced: dict[str, set[Logged[Line]]] = {}
    asked: dict[str, list[Wanted[Line]]] = {}
    for wanted in found:
        if wanted.trace:
            asked.setdefault(wanted.trace, []).append(wanted)
        for one in wanted.fits:
            if one.trace:
                traced.setdefault(one.trace, set()).add(one)
    taken: set[Logged[Line]] = set()
    for trace, those in asked.items():
        same = traced.get(trace, set())
        if len(those) == len(same) == 1:
            lines[those[0].seq] = next(iter(same)).line
            those[0].fits = []
            taken |= same
    for wanted in found:
        # One that has another identifier is about another one.
        wanted.fits = [
            one
            for one in wanted.fits
            if one not in taken and (one.trace is None or wanted.trace is None or one.trace == wanted.trace)
        ]
    return len(taken)


def _prefer_size[Line](found: list[Wanted[Line]]) -> None:
    """Where several lines fit an exchange, leave those of its request's size, if there are any."""
    for wanted in found:
        same = [one for one in wanted.fits if one.sent in (None, wanted.sent)]
        if len(wanted.fits) > 1 and same:
            wanted.fits = same


def _eliminate[Line](found: list[Wanted[Line]], lines: dict[int, Line]) -> None:
    """Match exchanges that one line fits, and take it from the others, until nothing changes."""
    fitting = _by_line(found)
    sure = deque(wanted for wanted in found if len(wanted.fits) == 1 and not wanted.crowded)
    while sure:
        wanted = sure.popleft()
        if not wanted.fits:
            continue
        (one,) = wanted.fits
        rivals = [other for other in fitting[one] if other is not wanted and one in other.fits]
        if any(len(other.fits) == 1 for other in rivals):
            continue  # two exchanges, one line: whose it is, is not known
        lines[wanted.seq] = one.line
        wanted.fits = []
        for other in rivals:
            other.fits.remove(one)
            if len(other.fits) == 1 and not other.crowded:
                sure.append(other)


def _by_line[Line](found: list[Wanted[Line]]) -> dict[Logged[Line], list[Wanted[Line]]]:
    """Return the exchanges that each line fits."""
    result: dict[Logged[Line], list[Wanted[Line]]] = {}
    for wanted in found:
        for one in wanted.fits:
            result.setdefault(one, []).append(wanted)
    return result


def _groups[Line](found: list[Wanted[Line]]) -> list[list[Wanted[Line]]]:
    """Return exchanges in groups that no line connects, each in the order of their ends."""
    by_line = _by_line(found)
    reached: set[Wanted[Line]] = set()
    groups = []
    for first in found:
        if first in reached:
            continue
        reached.add(first)
        group, waiting = [first], [first]
        while waiting:
            for one in waiting.pop().fits:
                for other in by_line.pop(one, ()):
                    if other not in reached:
                        reached.add(other)
                        group.append(other)
                        waiting.append(other)
        groups.append(group)
    return groups


def _paired[Line](group: list[Wanted[Line]]) -> dict[int, Line]:
    """Pair exchanges with as many lines, the longest with the longest; return nothing if that is not possible.

    Exchanges of nearly the same duration may have ended at different times: where a line does not fit, those next to
    each other in this order exchange their lines.
    """
    lines = sorted({one for wanted in group for one in wanted.fits}, key=lambda one: -(one.took or 0.0))
    if len(lines) != len(group) or any(wanted.crowded for wanted in group) or any(one.took is None for one in lines):
        return {}
    longest = sorted(group, key=lambda wanted: wanted.began - wanted.ended)
    for at, wanted in enumerate(longest):
        if lines[at] not in wanted.fits:
            moved = _exchanged(longest, lines, at)
            if not moved:
                return {}
            for place, line in moved.items():
                lines[place] = line
    return {wanted.seq: one.line for wanted, one in zip(longest, lines, strict=True)}


def _exchanged[Line](longest: list[Wanted[Line]], lines: list[Logged[Line]], at: int) -> dict[int, Logged[Line]]:
    """Return the lines that change places, by their new ones, so that the exchange at ``at`` gets one that fits: the
    fewest that do; none if that is not possible."""
    near = sorted(range(max(0, at - MOST), min(len(longest), at + MOST)), key=lambda other: abs(other - at))
    gives: dict[int, int] = {}
    """For each place the one that gets its line."""
    waiting = deque([at])
    while waiting and at not in gives:
        place = waiting.popleft()
        fitting = [other for other in near if other not in gives and lines[other] in longest[place].fits]
        gives |= dict.fromkeys(fitting, place)
        waiting += fitting
    if at not in gives:
        return {}
    moved = {gives[at]: lines[at]}
    while at not in moved:
        place = next(reversed(moved))
        moved[gives[place]] = lines[place]
    return moved
