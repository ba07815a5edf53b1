"""A capture read through its index: runs and records in brief, and which record belongs to which run."""

from __future__ import annotations

import contextlib
import sqlite3
import threading
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.capture.store import Capture
from inspector.errors import CaptureError
from inspector.summaries import incidents
from inspector.summaries.calls import Apart
from inspector.summaries.index import Index
from inspector.summaries.judgement import Judgement, Recorded, judge
from inspector.summaries.summary import Sign

if TYPE_CHECKING:
    from array import array
    from collections.abc import Iterable, Iterator, Mapping

    from inspector.model import Present
    from inspector.summaries.index import Changes, IndexedRun
    from inspector.summaries.keys import WireKey
    from inspector.summaries.summary import Brief, RunBrief

JOINED = 10
"""Most runs in a row of which each became part of the next."""


class IndexedCapture:
    """A capture and its index. Methods that return runs or records raise CaptureError if the index cannot be read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.revision = 0
        """Increases with every change that is read."""
        self.last = 0
        """The last record in the index."""
        self._index: Index | None = None
        self._runs: dict[int, IndexedRun] = {}
        """By their position among everything that started in the capture."""
        self._gone: dict[int, int | None] = {}
        """The positions of those that became part of another run, and of that one."""
        self._by_number: dict[int, IndexedRun] = {}
        self.judgement = Judgement()
        """What the runs that were read show of their nodes."""
        self._causes: incidents.Incidents | None = None
        self._replaced: dict[int, int] = {}
        """The runs that were read first, by their negative number: their last record."""
        self._signs: tuple[int, dict[int, tuple[Sign, ...]]] = -1, {}
        """The findings that mark each record, and the revision that they are of."""
        self._reading = threading.Lock()

    @classmethod
    @contextlib.contextmanager
    def whole(cls, path: Path) -> Iterator[IndexedCapture | None]:
        """Open a capture whose index contains all of it; None if it has no such index. Raises CaptureError."""
        with Capture.open(path) as capture, Index.whole(capture) as index:
            made = None
            if index is not None:
                with contextlib.suppress(CaptureError):
                    indexed = cls(path)
                    indexed._index, indexed.last = index, index.state().last
                    indexed._take_changes(index.changes())
                    indexed._by_number = {run.brief.number: run for run in indexed._numbered_runs()}
                    made = indexed
            yield made

    def _take_changes(self, changes: Changes) -> None:
        """Take over the runs that were changed."""
        self._runs |= changes.runs
        self._gone |= changes.gone
        for place in changes.gone:
            if (gone := self._runs.pop(place, None)) and place < 0:
                self._replaced[gone.brief.number] = gone.seqs[-1]
        self.revision += 1

    def _numbered_runs(self) -> list[IndexedRun]:
        """The runs as they were read, in the order of their numbers; the newest, whose numbers are not known yet, come
        last."""
        numbered = (run for run in self._runs.values() if run.brief.number)
        return sorted(numbered, key=lambda run: (run.brief.number < 0, run.brief.number))

    def judge(self, present: Present, now: float) -> None:
        """Judge the runs that were read; ``now`` is the present."""
        numbered = self._numbered_runs()
        self.judgement = made = judge(
            [Recorded([run.brief for run in numbered], present=present, apart=self.apart)], now
        )
        self._causes = None
        self._by_number = {run.brief.number: run.judged(made.runs[Path(), run.brief.number]) for run in numbered}

    def _forget_all(self) -> None:
        """Drop everything that was read: the index was replaced by another one."""
        self._runs, self._gone, self._by_number, self._replaced = {}, {}, {}, {}
        self.judgement, self._causes = Judgement(), None
        self._signs = -1, {}

    def _doubt(self, error: CaptureError) -> None:
        """Decide what happens after an index could not be read."""
        raise error

    # -- runs -----------------------------------------------------------------------------------------

    @property
    def causes(self) -> incidents.Incidents:
        """What is wrong, or was, by cause."""
        if self._causes is None:
            self._causes = incidents.by_cause(self.judgement)
        return self._causes

    @property
    def runs(self) -> list[RunBrief]:
        """All runs, in the order in which they began."""
        return [entry.brief for entry in self._by_number.values()]

    @property
    def indexed_runs(self) -> list[IndexedRun]:
        """All runs with the numbers of their records, in the order in which they began."""
        return list(self._by_number.values())

    @property
    def apart(self) -> Apart:
        """The requests that are part of no run."""
        found = Apart()
        for entry in self._runs.values():
            if not entry.brief.number:
                found.add(entry.brief)
        return found

    def run(self, number: int) -> RunBrief | None:
        """A run by its number."""
        found = self._numbered(number)
        return found.brief if found else None

    def seqs(self, number: int) -> array[int] | tuple[int, ...]:
        """The numbers of a run's records, in order."""
        found = self._numbered(number)
        return found.seqs if found else ()

    def _numbered(self, number: int) -> IndexedRun | None:
        """Return the run with a number; None if there is none. If a run had this number until the whole capture was
        read, return the run that replaced it."""
        found = self._by_number.get(number)
        if found is None and number in self._replaced and (owner := self.owner(self._replaced[number])):
            return self._by_number.get(owner.number)
        return found

    def owner(self, seq: int) -> RunBrief | None:
        """The agent's run that a record is part of."""
        owner = self.owners([seq]).get(seq)
        return owner if owner and owner.number else None

    def owners(self, seqs: Iterable[int]) -> dict[int, RunBrief]:
        """The runs that records are part of, by the records' numbers; a run without a number is no agent's."""
        found = ((seq, self.owner_of(brief)) for seq, brief in self.briefs_of(seqs).items())
        return {seq: run for seq, run in found if run}

    def owner_of(self, brief: Brief) -> RunBrief | None:
        """The run that a record is part of, given the record in brief; one without a number is no agent's."""
        place = brief.place
        for _ in range(JOINED):
            if found := self._runs.get(place):
                return self._judged(found.brief)
            place = self._gone.get(place) or 0
        return None

    def _judged(self, run: RunBrief) -> RunBrief:
        """Return a run with the verdict that the judgement of its node gave it."""
        found = self._by_number.get(run.number) if run.number else None
        return found.brief if found else run

    # -- records --------------------------------------------------------------------------------------

    def latest(self) -> float | None:
        """When the last record ended; None if there is none."""
        briefs = self._index.briefs([self.last]) if self._index else iter(())
        return next((brief.ended for brief in briefs), None)

    def wire_keys(self) -> list[WireKey]:
        """The public keys in the traffic."""
        return self._index.keys() if self._index else []

    def unanalyzed_all(self) -> dict[int, str]:
        """The numbers of records that were not analyzed, and why."""
        return self._index.unanalyzed() if self._index else {}

    def failed(self) -> dict[str, str]:
        """The rules that failed, and why."""
        return self._index.failed() if self._index else {}

    def briefs(self, number: int) -> list[Brief]:
        """A run's records in brief, with its findings."""
        run = self._numbered(number)
        if run is None:
            return []
        briefs = list(self.briefs_of(run.seqs).values())
        _sign(briefs, self._signs_of([run]))
        return briefs

    def briefs_of(self, seqs: Iterable[int]) -> dict[int, Brief]:
        """Records in brief, by their numbers."""
        if self._index is None:
            return {}
        try:
            return {brief.seq: brief for brief in self._index.briefs(seqs)}
        except CaptureError as error:
            self._doubt(error)
            return {}

    def pages(self) -> Iterator[list[Brief]]:
        """All records in brief, in order, page by page, with all findings. May run in a thread.

        Up to some hundred thousand stay in memory; more are read anew each time.
        """
        if self._index is None:
            return
        signs = self._all_signs()
        try:
            for page in self._index.pages(last=self.last):
                _sign(page, signs)
                yield page
        except CaptureError as error:
            self._doubt(error)

    def _all_signs(self) -> dict[int, tuple[Sign, ...]]:
        """The findings that mark each record, the worst first."""
        with self._reading:
            if self._signs[0] != self.revision:
                self._signs = self.revision, self._signs_of(list(self._runs.values()))
            return self._signs[1]

    def _signs_of(self, runs: Iterable[IndexedRun]) -> dict[int, tuple[Sign, ...]]:
        signs: dict[int, dict[Sign, None]] = {}
        foreign: list[tuple[int, Sign]] = []
        for entry in runs:
            own = set(entry.seqs) if entry.brief.findings else set()
            for finding in sorted(entry.brief.findings, key=lambda found: -found.severity.rank):
                sign = Sign(finding.rule, finding.severity)
                for seq in finding.seqs:
                    if seq in own:
                        signs.setdefault(seq, {})[sign] = None
                    else:
                        foreign.append((seq, sign))
        owners = self.owners({seq for seq, _ in foreign})
        for seq, sign in foreign:
            # In another run that went well it would look like a fault.
            if (owner := owners.get(seq)) is None or owner.outcome != "complete":
                signs.setdefault(seq, {})[sign] = None
        return {seq: tuple(found) for seq, found in signs.items()}

    @contextlib.contextmanager
    def capture(self) -> Iterator[Capture]:
        """The capture itself, opened for one read: an open reader prevents the proxy from cleaning up when it ends.

        Raises CaptureError.
        """
        try:
            with Capture.open(self.path) as capture:
                yield capture
        except sqlite3.Error as error:
            raise CaptureError(f"{self.path} cannot be read: {error}.", "The file or the disk is damaged.") from error


def _sign(briefs: Iterable[Brief], signs: Mapping[int, tuple[Sign, ...]]) -> None:
    """Add to each record the findings that mark it."""
    for brief in briefs:
        brief.signs = signs.get(brief.seq, ())
