"""Summaries of each agent's past runs: for deviations that only several runs show."""

from __future__ import annotations

from bisect import bisect_left, bisect_right, insort
from collections import deque
from dataclasses import dataclass, field
from itertools import takewhile
from typing import TYPE_CHECKING

from inspector.model import Phase
from inspector.protocol.files import is_plugin

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inspector.runs.run import Run

RUNS = 8
"""Maximum number of past runs per agent."""
NAMES = 200
"""Maximum number of files and resources of one past run: the first by name."""
STARTS = 1000
"""Maximum number of run starts of the fleet: the latest."""
REPEATED = 3
"""From how many runs in a row on a resource counts as one that changes in every run."""
AGENTS = 10_000
"""Maximum number of agents; the one that was silent longest is dropped first."""


@dataclass(frozen=True, slots=True)
class PastRun:
    """The summary of a past run."""

    number: int | None
    seqs: tuple[int, int]
    """Its first and its latest record."""
    started: float
    ended: float
    latest: float
    """When its latest request began."""
    catalog_time: float | None
    """When it requested its first catalog."""
    address: str | None
    key: str | None
    transaction_uuid: str | None
    phases: frozenset[Phase]
    fetched: frozenset[str]
    """Names of the files whose content was fetched, without plugins."""
    changed: frozenset[str]
    """Resources that the report lists as changed."""
    failed: frozenset[str] | None
    """Those that failed; None if there were more than ``NAMES``."""
    compile_time: float | None = None
    """Seconds that the master took for its latest catalog; None without one that could be applied."""
    ca_refreshed: int | None = None
    """The record in which it asked for a newer CA bundle."""


@dataclass(frozen=True, slots=True, order=True)
class Start:
    """The start of a run that requested a catalog."""

    time: float
    seq: int
    """Its first record."""
    certname: str = field(compare=False)


@dataclass(slots=True)
class Fleet:
    """What a capture has shown so far of whole runs."""

    runs: dict[str, deque[PastRun]] = field(default_factory=dict)
    """By certname, ordered by time."""
    starts: list[Start] = field(default_factory=list)
    """Ordered by time."""

    def before(self, run: Run) -> list[PastRun]:
        """The stored runs of the same agent, in the order in which they ended."""
        return list(self.runs.get(run.certname or "", ()))

    def changed_in_a_row(self, run: Run, refs: Iterable[str]) -> dict[str, int]:
        """In how many runs in a row, up to this one, each resource was changed."""
        reported = [past for past in reversed(self.before(run)) if Phase.REPORT in past.phases]
        return {ref: 1 + sum(takewhile(bool, (ref in past.changed for past in reported))) for ref in refs}

    def not_failed_before(self, run: Run, refs: Iterable[str]) -> set[str]:
        """Which of these resources are known not to have failed in the run before."""
        reported = next((past for past in reversed(self.before(run)) if Phase.REPORT in past.phases), None)
        if reported is None:
            return set(refs)
        return set() if reported.failed is None else set(refs) - reported.failed

    def remember(self, run: Run) -> None:
        """Add a finished run, after the rules have looked at it."""
        if run.certname is None or run.tool or run.command or not run.seqs or not run.authenticated:
            return
        past = self.runs.pop(run.certname, None)
        if past is None:
            past = deque(maxlen=RUNS)
            if len(self.runs) >= AGENTS:
                del self.runs[next(iter(self.runs))]
        self.runs[run.certname] = past
        fetched = (name for name in run.files.fetched if not is_plugin(name))
        catalog_time = run.catalogs[0].time if run.catalogs else None
        past.append(
            PastRun(
                run.number, (run.seqs[0], run.seqs[-1]), run.started, run.ended, run.latest, catalog_time, run.address,
                run.key, run.transaction_uuid, frozenset(run.spans), _some(fetched), _some(run.changed),
                run.failed if len(run.failed) <= NAMES else None,
                next((answer.waited for answer in reversed(run.catalogs) if answer.usable), None),
                next((answer.seq for answer in run.cas if answer.refresh), None),
            )
        )  # fmt: skip
        if Phase.CATALOG in run.spans:
            insort(self.starts, _start(run))
            del self.starts[: max(0, len(self.starts) - STARTS)]

    def herd(self, run: Run, agents: int, seconds: float) -> list[Start]:
        """The starts that form a thundering herd with this run: this many agents within this many seconds; else empty.

        A herd is reported once: by the run that completes it, not by later ones that join it.
        """
        own, time = _start(run), run.started
        before = self._between(time - 2 * seconds, time + 2 * seconds)
        near = sorted([*before, own])
        at = near.index(own)
        crowds = (_crowd(near, place, agents, seconds) for place in range(max(0, at - agents + 1), at + 1))
        found = next((crowd for crowd in crowds if own in crowd), [])
        known = found and any(_crowd(before, place, agents, seconds) for place in range(len(before) - agents + 1))
        return [] if known else found

    def _between(self, low: float, high: float) -> list[Start]:
        first = bisect_left(self.starts, low, key=lambda start: start.time)
        return self.starts[first : bisect_right(self.starts, high, key=lambda start: start.time)]


def _start(run: Run) -> Start:
    return Start(run.started, run.seqs[0], run.certname or "")


def _crowd(starts: list[Start], place: int, agents: int, seconds: float) -> list[Start]:
    """This many starts from an index on, if they lie within these seconds and belong to different agents."""
    last = place + agents - 1
    if agents < 1 or last >= len(starts) or starts[last].time - starts[place].time > seconds:
        return []
    crowd = starts[place : last + 1]
    return crowd if len({start.certname for start in crowd}) == agents else []


def _some(names: Iterable[str]) -> frozenset[str]:
    return frozenset(sorted(names)[:NAMES])
