"""Reads the bootstraps of a capture through its index: only the necessary records.

A hundred thousand exchanges are mostly downloads on connections whose certificate was seen before. Only the first and
the last of those are read.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from inspector.analysis.analyzer import Analyzer, Step
from inspector.explain.bootstrap import Bootstraps
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
_NO_RUN = -1
"""The place for records that belong to no run."""


class ReadingCancelled(Exception):
    """The caller cancelled the reading."""


def read(source: Source, progress: Callable[[int, int], bool], only: str | None = None) -> Bootstraps:
    """The bootstraps of all agents in a capture, as far as it is indexed; or of one certname (or address). The latter
    lacks what other agents downloaded.

    ``progress`` is called with the number of records read and their total, and returns whether to continue. Raises
    Cancelled and CaptureError. May run in a thread.
    """
    bootstraps = Bootstraps()
    with source.opened_index() as found:
        if found is None:
            return bootstraps
        runs = {place: run for place, run in found.runs().items() if run is not None}
        wanted, latest = _wanted(found, runs, only)
    feed = _Feed(bootstraps, {place: run.brief for place, run in runs.items()})
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
            bootstraps.add(Step(record))
    feed.finish()
    return bootstraps


class _Feed:
    """Analyzes each run separately: the index already assigned the records to runs, using more records than are read
    here."""

    def __init__(self, bootstraps: Bootstraps, briefs: dict[int, RunBrief]) -> None:
        self._bootstraps = bootstraps
        self._briefs = briefs
        self._analyzers: dict[int, Analyzer] = {}
        self._runs: dict[Run, RunBrief] = {}

    def take(self, record: Record, place: int) -> None:
        """Add the next record, of the run at this place."""
        analyzer = self._analyzers.get(place)
        if analyzer is None:
            analyzer = self._analyzers[place] = Analyzer(rules=())
        step = analyzer.feed(record)
        self._bootstraps.add(step)
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

    def take(self, brief: Brief) -> None:
        """Examine the run's next record."""
        if brief.kind == "exchange" and brief.endpoint is None:
            return
        refused = brief.authenticated and brief.status in (None, 401, 403)
        if self.all or brief.kind != "exchange" or brief.phase is Phase.CERTIFICATES or refused:
            self.close()
            self.seqs.add(brief.seq)
        elif brief.authenticated and brief.leg is not None:
            if brief.leg not in self.last:
                self.seqs.add(brief.seq)
            self.last[brief.leg] = brief.seq
            self.longest = max(self.longest, (brief.ended, brief.seq))
        if brief.leg is not None and brief.leg not in self.legs:
            # The first request of a connection contains the agent's version.
            self.legs.add(brief.leg)
            self.seqs.add(brief.seq)

    def close(self) -> None:
        """Select the last download of each connection, and the one that ended last."""
        if self.last:
            self.seqs.update(self.last.values())
            self.seqs.add(self.longest[1])
            self.last, self.longest = {}, (0.0, 0)


def _wanted(found: index.Index, runs: dict[int, index.IndexedRun], only: str | None) -> tuple[dict[int, int], int]:
    """The records to read, each with the place of its run; and the record that ended last."""
    joined = found.changes().gone
    choices = {place: _Choice(_old(run.brief)) for place, run in runs.items()}
    choices[_NO_RUN] = _Choice(all=True)
    latest = (0.0, 0)
    for page in found.pages(last=found.state().last):
        for brief in page:
            place = brief.place if brief.place in choices else joined.get(brief.place)
            choices[place if place in choices else _NO_RUN].take(brief)
            latest = max(latest, (brief.ended, brief.seq))
    wanted: dict[int, int] = {}
    for place, choice in choices.items():
        if only is not None and (place == _NO_RUN or runs[place].brief.name != only):
            continue
        choice.close()
        wanted |= dict.fromkeys(choice.seqs, place)
    return wanted, latest[1]


def _old(run: RunBrief) -> bool:
    """Whether the agent sends its version only in facts and reports (up to 3)."""
    return run.generation in ("2.7", "3")
