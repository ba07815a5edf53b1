"""What a capture shows: its runs in brief, from its index if that contains all of it, otherwise from its records."""

from __future__ import annotations

import contextlib
import heapq
import time
from dataclasses import dataclass, field
from itertools import chain
from typing import TYPE_CHECKING

from inspector.analysis.analyzer import Analyzer
from inspector.capture.store import Capture
from inspector.errors import CaptureError
from inspector.model import NOTHING_OPEN
from inspector.progress import unwatched, watched
from inspector.runs.history import Ledger
from inspector.summaries import conclusions, filters, wording
from inspector.summaries.calls import Apart
from inspector.summaries.filtering import Filtering
from inspector.summaries.index import IndexedRun
from inspector.summaries.indexed import IndexedCapture
from inspector.summaries.judgement import Judgement, Recorded, judge
from inspector.summaries.keys import WireKeys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from inspector.analysis.analyzer import Step
    from inspector.model import Present, Record
    from inspector.progress import Watch
    from inspector.runs.run import Run
    from inspector.summaries.keys import WireKey
    from inspector.summaries.summary import RunBrief


@dataclass(slots=True)
class CaptureRuns:
    """The runs of a capture, in the order in which they began, and what else its records show."""

    capture: Path
    runs: list[IndexedRun] = field(default_factory=list)
    every: int = 0
    """How many runs there are without the filter."""
    unanalyzed: dict[int, str] = field(default_factory=dict)
    """The records that were not analyzed, and why."""
    keys: list[WireKey] = field(default_factory=list)
    """The public keys in its traffic."""
    failed: dict[str, str] = field(default_factory=dict)
    """The rules that failed, and why."""
    apart: Apart = field(default_factory=Apart)
    """What is part of no run."""
    present: Present = NOTHING_OPEN
    """What is under way, or was when the recording ended."""
    judgement: Judgement = field(default_factory=Judgement)
    """Without the filter, if it was judged alone."""

    _by_agent: dict[str, list[IndexedRun]] = field(default_factory=dict, repr=False, compare=False)

    @property
    def briefs(self) -> list[RunBrief]:
        return [run.brief for run in self.runs]

    @property
    def by_agent(self) -> dict[str, list[IndexedRun]]:
        """The runs of each agent in the order of time, without the calls of tools; the agents in that order, too."""
        if not self._by_agent:
            for run in sorted(self.runs, key=lambda run: run.brief.started):
                if run.brief.number and not run.brief.tool:
                    self._by_agent.setdefault(run.brief.name, []).append(run)
        return self._by_agent


def judged(read: Iterable[CaptureRuns], now: float) -> Judgement:
    """Return what captures show of their nodes, and let their runs be as they were judged; ``now`` is the present.
    Raises CaptureError."""
    read = list(read)
    for found in read:
        with Capture.open(found.capture) as capture:
            found.present = capture.present(now)
    made = judge([Recorded(found.briefs, found.capture, found.present, found.apart) for found in read], now)
    for found in read:
        found.runs = [run.judged(made.runs[found.capture, run.brief.number]) for run in found.runs]
    return made


def read(path: Path, filtered: str = "", watch: Watch = unwatched, now: float | None = None) -> CaptureRuns:
    """Return the runs of a capture that match a filter, judged; ``now`` is the present (default: what the clock says).
    Raises InspectorError."""
    now = time.time() if now is None else now
    filters.parse(filtered)  # a mistake in it is reported at once
    with IndexedCapture.whole(path) as indexed:
        if indexed is not None:
            with contextlib.suppress(CaptureError):  # an index that is damaged
                found = _of_index(indexed)
                found.judgement = judged([found], now)
                if filtered.strip():
                    numbers = {run.number for run in Filtering(indexed).runs(filtered)}
                    found.runs = [run for run in found.runs if run.brief.number in numbers]
                return found
    chosen = filters.parse(filtered, latest(path))
    marked: set[int] = set()

    def mark(step: Step) -> None:
        if chosen.marks(filters.candidate(step)):
            marked.add(step.record.seq)

    (found,) = _stream([path], watch, mark if chosen.about_exchanges else None)
    found.judgement = judged([found], now)
    found.runs = [
        run
        for run in found.runs
        if chosen.matches_run(
            run.brief, wording.words(run.brief), marked=bool(marked) and not marked.isdisjoint(run.seqs)
        )
    ]
    return found


def _raise(error: CaptureError) -> None:
    """Raise the error: one capture that cannot be read ends the reading of all."""
    raise error


def read_together(
    paths: Sequence[Path], watch: Watch = unwatched, unreadable: Callable[[CaptureError], None] = _raise
) -> list[CaptureRuns]:
    """Return the runs of several captures, with the findings that need records of more than one of them.

    An index has what the rules find in one capture. ``unreadable`` is called for each capture that cannot be read; it
    is left out.
    """
    if len(paths) == 1:
        with IndexedCapture.whole(paths[0]) as indexed:
            if indexed is not None:
                with contextlib.suppress(CaptureError):
                    return [_of_index(indexed)]
    return _stream(paths, watch, unreadable=unreadable)


def latest(path: Path) -> float | None:
    """When the latest record of a capture ended; None if there is none. Raises CaptureError."""
    with Capture.open(path) as capture:
        record = capture.record(capture.last)
    return record.ended if record else None


def _of_index(indexed: IndexedCapture) -> CaptureRuns:
    runs = indexed.indexed_runs
    return CaptureRuns(
        indexed.path, runs, len(runs), indexed.unanalyzed_all(), indexed.wire_keys(), indexed.failed(), indexed.apart
    )


class Reader:
    """Analyzes one capture; of a run that is over only what is needed stays in memory."""

    def __init__(self, path: Path, ledger: Ledger) -> None:
        self.path = path
        self.error: CaptureError | None = None
        """Why it cannot be read to its end."""
        self._analyzer = Analyzer(ledger=ledger)
        self._runs: dict[int, IndexedRun] = {}
        self._keys = WireKeys()
        self._apart = Apart()

    def records(self, capture: Capture) -> Iterator[tuple[Reader, Record]]:
        """Yield its records, each with this reader."""
        try:
            for record in capture.records():
                yield self, record
        except CaptureError as error:
            self.error = error

    def take(self, record: Record) -> Step:
        """Analyze the next record."""
        step = self._analyzer.feed(record)
        self._keys.add(step)
        for run in step.over:
            self._keep(run)
            self._analyzer.forget(run)
        return step

    def _keep(self, run: Run) -> None:
        brief = conclusions.of_run(run)
        if run.number is not None:
            self._runs[run.number] = IndexedRun.of(brief, run.seqs)
        else:
            self._apart.add(brief)

    def finish(self) -> CaptureRuns:
        """Return what was found."""
        for run in self._analyzer.end():
            self._keep(run)
        runs = [self._runs[number] for number in sorted(self._runs)]
        return CaptureRuns(self.path, runs, len(runs), self._analyzer.unanalyzed, self._keys.all(),
                           self._analyzer.failed, self._apart)  # fmt: skip


def _stream(
    paths: Sequence[Path],
    watch: Watch,
    on_step: Callable[[Step], None] | None = None,
    unreadable: Callable[[CaptureError], None] = _raise,
) -> list[CaptureRuns]:
    ledger = Ledger()
    readers = [Reader(path, ledger) for path in paths]
    with contextlib.ExitStack() as stack:
        streams, total = [], 0
        for reader in readers:
            try:
                capture = stack.enter_context(Capture.open(reader.path))
                total += capture.count()
                streams.append(reader.records(capture))
            except CaptureError as error:
                reader.error = error
        merged = heapq.merge(*streams, key=lambda pair: pair[1].ended) if len(streams) > 1 else chain(*streams)
        for reader, record in watched(merged, watch, total):
            step = reader.take(record)
            if on_step:
                on_step(step)
    # What comes before the damage may end in the middle of a run: its outcome would be none.
    for reader in readers:
        if reader.error:
            unreadable(reader.error)
    return [reader.finish() for reader in readers if reader.error is None]
