"""Where the time of a request, or of a run, went: the parts of ``timeline.pieces``, added up by who needed it.

Everything but queue, compile and serve is measured by the proxy. Those three are only known with the master's logs; a
sum contains what is not known as ``waiting``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Literal, NamedTuple

from inspector.explain.timeline import opens, pieces
from inspector.text import seconds

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from inspector.explain.master_log.measured import MasterTime, MasterTimes
    from inspector.explain.timeline import Work
    from inspector.summaries.summary import Brief

type Part = Literal["network", "tls", "proxy", "queue", "compile", "serve", "waiting", "silence"]

PARTS: Mapping[Work, Part] = {
    "connect": "network",
    "sending": "network",
    "receiving": "network",
    "network": "network",
    "tls": "tls",
    "proxy": "proxy",
    "queue": "queue",
    "compile": "compile",
    "serve": "serve",
    "waiting": "waiting",
}
"""What the parts of a record's time count as."""
WORDS: dict[Part, str] = {
    "queue": "queue (waiting for a JRuby)",
    "compile": "compile",
    "serve": "serve",
    "waiting": "waiting for the master",
    "network": "network",
    "tls": "TLS",
    "proxy": "proxy",
    "silence": "agent's silence",
}
"""What the parts are called."""
SHORT: dict[Part, str] = {part: words.partition(" (")[0] for part, words in WORDS.items()} | {
    "waiting": "waiting", "silence": "silence",
}  # fmt: skip
"""The same for the heads of tables."""
LEAST = 0.005
"""The share of the whole from which on a part is listed."""


@dataclass(frozen=True, slots=True)
class Split:
    """Seconds by what they were needed for; none is negative, and together they are the whole."""

    network: float = 0.0
    """Connecting to the master, the request's way to the proxy, the answer's way from the master, and what the proxy
    waited longer for the master than that needed. An agent that sends slowly counts here too."""
    tls: float = 0.0
    """TLS handshakes, with the agent and with the master."""
    proxy: float = 0.0
    """The proxy's own."""
    queue: float = 0.0
    """Waiting for a JRuby (``MasterTime.parts`` says how it is computed)."""
    compile: float = 0.0
    """Compiling catalogs; without a line of the server log, all work on a request for one."""
    serve: float = 0.0
    """The master's other work."""
    waiting: float = 0.0
    """Waiting for the master: the logs do not say for what, or there are none."""
    silence: float = 0.0
    """The agent's own: nothing was on the wire since the run's last record ended, or since TLS was finished."""

    @property
    def whole(self) -> float:
        return sum(self.parts().values())

    @property
    def largest(self) -> Part:
        """What most of the time was needed for."""
        parts = self.parts()
        return max(parts, key=lambda part: parts[part])

    def parts(self) -> dict[Part, float]:
        """Return the seconds of each part."""
        return {each.name: getattr(self, each.name) for each in fields(self)}  # type: ignore[misc]

    def rounded(self) -> Split:
        """Return it in milliseconds, as JSON has it."""
        return Split(*(round(took, 3) for took in self.parts().values()))

    def words(self) -> str:
        """Return the parts that count, the largest first: ``queue (waiting for a JRuby) 2.1 s, compile 1.2 s``."""
        parts, least = self.parts(), self.whole * LEAST
        ordered = sorted(parts, key=lambda part: -parts[part])
        return ", ".join(f"{WORDS[part]} {seconds(parts[part])}" for part in ordered if parts[part] > least)

    def __add__(self, other: Split) -> Split:
        return Split(*(getattr(self, each.name) + getattr(other, each.name) for each in fields(self)))


class RunSplits:
    """The time of a run, while its records are added in the order in which they began."""

    def __init__(self) -> None:
        self.total = Split()
        """Of the run so far. What two requests at once need is counted once, for the earlier one."""
        self._legs: set[str] = set()
        self._until = math.nan
        """When the last record so far ended."""

    def add(self, brief: Brief, master: MasterTime | None = None) -> Split:
        """Return the split of the next record: from the end of the last one before it, if it began later, to its own
        end."""
        agent, upstream = opens(brief, self._legs)
        parts = pieces(brief, opens_agent_leg=agent, opens_master_leg=upstream, master=master)
        own: dict[Part, float] = {}
        new: dict[Part, float] = {}
        began = parts[0].began if parts else brief.time
        ended = parts[-1].ended if parts else max(brief.time, brief.ended)
        if not (math.isfinite(began) and math.isfinite(ended)):
            return Split()
        until = began if math.isnan(self._until) else self._until
        at = min(until, began)
        for piece in parts:
            _count(own, new, "silence", at, piece.began, until)
            _count(own, new, PARTS[piece.kind], piece.began, piece.ended, until)
            at = piece.ended
        _count(own, new, "silence", at, ended, until)
        self._until = max(until, ended)
        self.total += Split(**new)
        return Split(**own)


class RunTime(NamedTuple):
    """Where the time of a run went."""

    total: Split
    records: dict[int, Split]
    """By record number."""


def of_run(briefs: Iterable[Brief], times: MasterTimes) -> RunTime:
    """Return where the time of a run's records went."""
    splits, records = RunSplits(), {}
    for brief in sorted(briefs, key=lambda brief: (brief.time if math.isfinite(brief.time) else 0.0, brief.seq)):
        records[brief.seq] = splits.add(brief, times.get(brief.seq))
    return RunTime(splits.total, records)


def _count(
    own: dict[Part, float], new: dict[Part, float], part: Part, began: float, ended: float, until: float
) -> None:
    own[part] = own.get(part, 0.0) + max(0.0, ended - began)
    new[part] = new.get(part, 0.0) + max(0.0, ended - max(began, until))
