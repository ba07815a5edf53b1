"""Reads the bootstraps of a capture through its index: only the necessary records.

A hundred thousand exchanges are mostly downloads on connections whose certificate was seen before. Only the first and
the last of those are read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from inspector.analysis.analyzer import Analyzer, Step
from inspector.explain.bootstrap import Ladders
from inspector.model import Phase

if TYPE_CHECKING:
    from collections.abc import Callable

    from inspector.model import Record
    from inspector.runs.run import Run
    from inspector.summaries import index
    from inspector.summaries.source import Source
    from inspector.summaries.summary import Brief, RunBrief

PAGE = 200
"""Records per read of the capture."""
_NOBODY = -1
"""The place for records that belong to no run."""


class ReadingCancelled(Exception):
    """The caller cancelled the reading."""


def read(source: Source, progress: Callable[[int, int], bool], only: str | None = None) -> Ladders:
    """The bootstraps of all agents in a capture, as far as it is indexed; or of one certname (or address). The latter
    lacks what other agents downloaded.

    ``progress`` is called with the number of records read and their total, and returns whether to continue. Raises
    Cancelled and CaptureError. May run in a thread.
    """
    ladders = Ladders()
    with source.opened_index() as found:
        if found is None:
            return ladders
        runs = {place: run for place, run in found.runs().items() if run is not None}
        wanted, latest = _wanted(found, runs, only)
    feed = _Feed(ladders, {place: run.brief for place, run in runs.items()})
    left: dict[int, int] = {}
    for place in wanted.values():
        left[place] = left.get(place, 0) + 1
    seqs = sorted(wanted)
    for at in range(0, len(seqs), PAGE):
        if not progress(at, len(seqs)):
            raise ReadingCancelled
        with source.capture() as capture:
            for seq in seqs[at : at + PAGE]:
                record, place = capture.record(seq), wanted[seq]
                if record is not None:
                    feed.take(record, place)
                left[place] -= 1
                if not left[place]:
                    feed.forget(place)
    if latest:
        # The end of the capture: it shows whether a waiting agent should have tried again.
        with source.capture() as capture:
            record = capture.record(latest)
        if record is not None:
            ladders.add(Step(record))
    feed.finish()
    return ladders


class _Feed:
    """Analyzes each run separately: the index already assigned the records to runs, using more records than are read
    here."""

    def __init__(self, ladders: Ladders, briefs: dict[int, RunBrief]) -> None:
        self._ladders = ladders
        self._briefs = briefs
        self._analyzers: dict[int, Analyzer] = {}
        self._runs: dict[Run, RunBrief] = {}

    def take(self, record: Record, place: int) -> None:
        """Add the next record, of the run at this place."""
        analyzer = self._analyzers.get(place)
        if analyzer is None:
            analyzer = self._analyzers[place] = Analyzer(rules=())
        step = analyzer.feed(record)
        self._ladders.add(step)
        if step.run is not None and place in self._briefs:
            self._runs[step.run] = self._briefs[place]

    def forget(self, place: int) -> None:
        """Close the run at this place: it has no more records."""
        self._analyzers.pop(place, None)

    def finish(self) -> None:
        """Set what only a whole run shows (number, certname, address, version), from the index."""
        for run, brief in self._runs.items():
            run.number, run.certname, run.address = brief.number, brief.certname, brief.address
            run.agent_version = run.agent_version or brief.agent_version


@dataclass(slots=True)
class _Choice:
    """Selects the necessary records of one run."""

    all: bool
    legs: set[str] = field(default_factory=set)
    seqs: set[int] = field(default_factory=set)
    last: dict[str, int] = field(default_factory=dict)
    """The last download of each connection since the latest record of another kind."""
    longest: tuple[float, int] = (0.0, 0)
    """The one of them that ended last."""

    def take(self, each: Brief) -> None:
        """Examine the run's next record."""
        if each.kind == "exchange" and each.endpoint is None:
            return
        refused = each.authenticated and each.status in (None, 401, 403)
        if self.all or each.kind != "exchange" or each.phase is Phase.CERTIFICATES or refused:
            self.close()
            self.seqs.add(each.seq)
        elif each.authenticated and each.leg is not None:
            if each.leg not in self.last:
                self.seqs.add(each.seq)
            self.last[each.leg] = each.seq
            self.longest = max(self.longest, (each.ended, each.seq))
        if each.leg is not None and each.leg not in self.legs:
            # The first request of a connection contains the agent's version.
            self.legs.add(each.leg)
            self.seqs.add(each.seq)

    def close(self) -> None:
        """Select the last download of each connection, and the one that ended last."""
        if self.last:
            self.seqs.update(self.last.values())
            self.seqs.add(self.longest[1])
            self.last, self.longest = {}, (0.0, 0)


def _wanted(found: index.Index, runs: dict[int, index.IndexedRun], only: str | None) -> tuple[dict[int, int], int]:
    """The records to read, each with the place of its run; and the record that ended last."""
    owner = {seq: place for place, run in runs.items() for seq in run.seqs}
    choices = {place: _Choice(_old(run.brief)) for place, run in runs.items()}
    choices[_NOBODY] = _Choice(all=True)
    latest = (0.0, 0)
    for brief in found.all_briefs():
        choices[owner.get(brief.seq, _NOBODY)].take(brief)
        latest = max(latest, (brief.ended, brief.seq))
    wanted: dict[int, int] = {}
    for place, choice in choices.items():
        if only is not None and (place == _NOBODY or runs[place].brief.name != only):
            continue
        choice.close()
        wanted |= dict.fromkeys(choice.seqs, place)
    return wanted, latest[1]


def _old(run: RunBrief) -> bool:
    """Whether the agent sends its version only in facts and reports (up to 3)."""
    return run.generation in ("2.7", "3")
