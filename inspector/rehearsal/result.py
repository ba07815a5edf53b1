"""What a rehearsal found: nodes in groups, how long their catalogs took, what was noise."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from inspector import regex
from inspector.compare.differences import NODE
from inspector.compare.groups import Groups
from inspector.protocol import bodies, decode
from inspector.rehearsal.requests import V4

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspector.compare.comparison import Comparison
    from inspector.compare.documents import RunDocuments
    from inspector.compare.masks import Masks
    from inspector.model import Exchange

MOST = 1000
"""Messages of one compile."""
LONGEST = 2**16
"""Characters of a message."""
_OF_V4 = regex.compile(r".* contains an? .* value\. It will be converted to the String .*", regex.DOTALL)
"""Messages about values that v4 makes text of: for an agent, whose catalog has rich data, none is logged."""
LEVELS = ("emerg", "alert", "crit", "err", "warning")
"""The worst first."""


class _Entry(msgspec.Struct):
    level: str = ""
    message: str = ""
    file: str | None = None
    line: int | None = None


class _Answer(msgspec.Struct):
    logs: list[_Entry] = []


class Logged(msgspec.Struct, frozen=True):
    """A message, and the nodes whose catalogs it is about."""

    level: str
    message: str
    """As of the first of them, with masks."""
    place: str
    """File and line; empty if they are not known."""
    nodes: list[str]


@dataclass(slots=True)
class Logs:
    """The messages so far."""

    _found: dict[tuple[str, str], Logged] = field(default_factory=dict)

    def add(self, of: RunDocuments, exchange: Exchange, masks: Masks) -> None:
        """Add what is in the answer to a node."""
        for entry in _entries(exchange):
            place = entry.file or ""
            if place and entry.line is not None:
                place = f"{place}:{entry.line}"
            message, place = masks.text(entry.message[:LONGEST]), masks.text(place)
            same = f"{message}\n{place}"
            for name, kind in sorted(of.own_names.items(), key=lambda item: len(item[0]), reverse=True):
                same = same.replace(name, NODE.format(kind))
            logged = self._found.setdefault((entry.level, same), Logged(entry.level, message, place, []))
            if of.name not in logged.nodes[-1:]:
                logged.nodes.append(of.name)

    def __iter__(self) -> Iterator[Logged]:
        """The worst first; of one level, those of most nodes."""
        order = {level: number for number, level in enumerate(LEVELS)}
        return iter(sorted(self._found.values(), key=lambda each: (order.get(each.level, 99), -len(each.nodes))))


def _entries(exchange: Exchange) -> list[_Entry]:
    response = exchange.response
    if exchange.request.target != V4 or response is None or (body := decode.content(response)) is None:
        return []
    try:
        found = bodies.structure(body, bodies.content_type(response), _Answer).logs[:MOST]
    except (bodies.Unreadable, msgspec.MsgspecError):
        return []
    return [entry for entry in found if not _OF_V4.fullmatch(entry.message)]


SLOWEST = 10
"""Nodes that are listed with their times."""
PERCENTILES = (50, 90, 99)
HALF = 2
"""Catalogs of the half by which it is seen that a master was cold."""
COLD = 1.5
"""How many times as long the earlier half of the catalogs takes, compared with the later half, if a master was cold."""


class Time(NamedTuple):
    """How long the catalog of a node took."""

    node: str
    before: float
    """Seconds when it was recorded."""
    after: float
    asked: float = 0.0
    """When the new master was asked."""

    @property
    def ratio(self) -> float:
        """How many times as long it takes now."""
        return self.after / self.before if self.before > 0 else 1.0


@dataclass(slots=True)
class Result:
    """The differences so far."""

    groups: Groups = field(default_factory=Groups)
    times: list[Time] = field(default_factory=list)
    noise: dict[str, list[str]] = field(default_factory=dict)
    """The differences that were left out because two compiles of the same have them: their addresses, and the nodes."""
    noisy: list[str] = field(default_factory=list)
    """The nodes of which two compiles of the same differ."""
    unmeasured: list[str] = field(default_factory=list)
    """The nodes whose catalog the recorded master no longer compiles: what is noise there is not known."""
    unasked: int = 0
    """Files that were not compared, because the agents did not ask for them when they were recorded."""
    effective: set[str] = field(default_factory=set)
    """The changes of facts that change a fact of some node."""
    logs: Logs = field(default_factory=Logs)
    """The messages of the new master."""
    deferred: int = 0
    """Deferred values that could not be compared, because v4 showed them as text."""
    waited: float = 0.0
    """Seconds for which the master was too busy, by its own words."""
    warnings: list[str] = field(default_factory=list)
    """Why the rehearsal says little, known before anything is sent."""
    old_versions: set[str] = field(default_factory=set)
    new_versions: set[str] = field(default_factory=set)
    reused: int = 0
    """Nodes that had been answered before the rehearsal was continued."""
    each: dict[str, Comparison | str] | None = None
    """By node, if they are wanted: what is different, or why it could not be compared."""

    def add(self, name: str, comparison: Comparison) -> None:
        """Add a node that was compared."""
        self.groups.add(comparison)
        if self.each is not None:
            self.each[name] = comparison

    def fail(self, name: str, reason: str) -> None:
        """Add a node that could not be compared."""
        self.groups.fail(name, reason)
        if self.each is not None:
            self.each[name] = reason

    @property
    def measured(self) -> bool:
        """Whether the noise of any node is known, or is known to be unknown."""
        return bool(self.groups.changed or self.groups.same or self.noisy or self.unmeasured)

    def ratio(self, percentile: int) -> float | None:
        """How many times as long catalogs take, at a percentile of the nodes; None without any."""
        ratios = sorted(time.ratio for time in (self.later if self.cold else self.times))
        return ratios[min(len(ratios) - 1, len(ratios) * percentile // 100)] if ratios else None

    @property
    def cold(self) -> float | None:
        """How many times as long the earlier half of the catalogs takes, if the master became faster meanwhile, as
        after a start; None if not, or if that cannot be seen by so few."""
        earlier, later = _median(self._by_time[: len(self.times) // 2]), _median(self.later)
        return earlier if len(self.times) >= 2 * HALF and earlier >= COLD * later else None

    @property
    def later(self) -> list[Time]:
        """The later half, in the order in which the master was asked."""
        return self._by_time[len(self.times) // 2 :]

    @property
    def _by_time(self) -> list[Time]:
        return sorted(self.times, key=lambda time: time.asked)

    @property
    def slowest(self) -> list[Time]:
        """The nodes whose catalogs take the longest, compared with before."""
        return sorted(self.later if self.cold else self.times, key=lambda time: -time.ratio)[:SLOWEST]


def _median(times: list[Time]) -> float:
    return statistics.median(time.ratio for time in times) if times else 0.0
