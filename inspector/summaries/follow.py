"""A capture line by line, while a proxy writes it.

``Follower`` prints each record with what is known when it arrives: for ``follow``, and for the proxy's own console
(``analysis_worker``).
"""

from __future__ import annotations

import dataclasses
import functools
import select
import sqlite3
import sys
import time
from typing import TYPE_CHECKING, NamedTuple

from inspector.analysis.analyzer import Analyzer, merged
from inspector.capture import paths
from inspector.capture.store import Capture
from inspector.errors import CaptureError
from inspector.summaries import conclusions, filters, listing, reading, summary, wording
from inspector.summaries.run_ends import RunEnds
from inspector.text import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from pathlib import Path

    from inspector.analysis.analyzer import Step
    from inspector.model import Present
    from inspector.runs.run import Run
    from inspector.summaries.filters import Filter

INTERVAL = 0.2
"""Seconds between two polls of a capture: a proxy writes as often."""
PATIENCE = 5.0
"""Seconds for which a capture may be unreadable: it may just be in creation."""
DO = "  do: "
"""The prefix of a line with a fix."""
NEVER = "the analysis has ended at it"
"""Why a record was left out."""
QUIET = 5.0
"""Seconds of silence after which a run without a proper end is summarised."""


def follow(
    path: Path | None,
    text: str = "",
    *,
    everything: bool = False,
    width: int | None = None,
    pause: Callable[[], None] | None = None,
) -> Iterator[str]:
    """Lines for what is added to a capture (with ``everything``: first for its existing records), without end;
    ``width`` is that of the terminal.

    Without a path it is the capture in ``captures.FOLDER`` that was written last, and then every new one that appears
    there. ``pause`` is called whenever there is nothing new, and may stop the loop with an exception. Raises
    InspectorError.
    """
    known = set() if path else set(paths.FOLDER.glob("*.sqlite"))
    followed = path or paths.newest()
    chosen = filters.parse(text, reading.latest(followed))
    follower = Follower(followed, chosen, after=0 if everything else last(followed))
    while True:
        for line in follower.look():
            if line.step:
                yield from listing.lines(summary.of(line.step), line.step.run, width)
            else:
                yield from wording.flowing(line.text, width)
        if path is None and (fresh := set(paths.FOLDER.glob("*.sqlite")) - known):
            known |= fresh
            followed = max(fresh, key=paths.written)
            yield f"-- new capture: {clean(str(followed))}"
            follower = Follower(followed, chosen)
            continue
        (pause or wait)()


def last(path: Path) -> int:
    """The number of a capture's last record. Raises CaptureError."""
    with Capture.open(path) as capture:
        return capture.last


def wait() -> None:
    """Wait for some time. Raises BrokenPipeError as soon as the reader of our output is gone."""
    out = select.poll()
    out.register(sys.stdout, 0)
    if out.poll(INTERVAL * 1000):
        raise BrokenPipeError


class PrintedLine(NamedTuple):
    """A line, and its subject."""

    text: str
    step: Step | None = None
    """The record on the line."""
    run: Run | None = None
    """The run summarised on the line. If both are None, the line is about the capture."""
    trouble: tuple[str, ...] = ()
    """Internal errors while summarising it."""


class Follower:
    """Reads what is added to one capture.

    The capture is opened for each poll. A reader that stays open would prevent the proxy from cleaning up at its end,
    and one opened before the proxy started would not see the proxy's records.
    """

    def __init__(
        self,
        path: Path,
        chosen: Filter,
        *,
        after: int = 0,
        skipped: Collection[int] = (),
        begin_record: Callable[[int], None] = lambda _: None,
        end_run: Callable[[Run], None] | None = None,
    ) -> None:
        """Records up to ``after`` are analyzed but not printed, ``skipped`` ones not analyzed. ``begin_record`` is
        called with the number of each record before it is analyzed, and with 0 after the last; ``end_run`` once with
        each run that is over, of which a record is new."""
        self._path = path
        self._chosen = chosen
        self._silent = after
        self._skipped = skipped
        self._begin_record = begin_record
        self._end_run = end_run
        self._file: tuple[int, int] | None = None
        self._readable = time.monotonic()
        self._begin()

    def _begin(self) -> None:
        self._analyzer = Analyzer()
        self._after = 0
        self._marked: set[int] = set()
        self._active: dict[Run, float] = {}
        self._shown: dict[Run, str] = {}
        self._ends = RunEnds(self._end_run) if self._end_run else None

    def look(self) -> Iterator[PrintedLine]:
        """Lines for what was added since the last poll. Raises CaptureError."""
        try:
            yield from self._check()
            while self._file is not None:
                with Capture.open(self._path) as capture:
                    yield from self._read(capture)
                    following = capture.continued_in
                if following is None or not following.exists():
                    break
                # The same traffic continues in another capture, and so do the numbers.
                self._path, self._file = following, None
                yield from self._check()
            self._readable = time.monotonic()
        except (CaptureError, sqlite3.Error) as error:
            if time.monotonic() - self._readable > PATIENCE:
                if isinstance(error, CaptureError):
                    raise
                raise CaptureError(f"{self._path} cannot be read: {error}.", "Check its disk.") from error
        yield from self.sum_up()

    def _check(self) -> Iterator[PrintedLine]:
        """Report that the capture was deleted or replaced."""
        try:
            status = self._path.stat()
        except OSError:
            if self._file is not None:
                yield PrintedLine(f"-- {clean(str(self._path))} was deleted")
                self._file = None
                self._silent = 0
                self._begin()
            return
        file = status.st_dev, status.st_ino
        if self._file not in (None, file):
            yield self._anew()
        self._file = file

    def _anew(self) -> PrintedLine:
        self._silent = 0
        self._begin()
        return PrintedLine(f"-- {clean(str(self._path))} was replaced by another capture")

    def _read(self, capture: Capture) -> Iterator[PrintedLine]:
        if 0 < capture.last < self._after:  # deleted and recreated between two polls
            yield self._anew()
        for record in capture.records(self._after):
            if record.seq in self._skipped:
                step = self._analyzer.leave_out(record, NEVER)
            else:
                self._begin_record(record.seq)
                step = self._analyzer.feed(record)
            self._after = record.seq
            candidate = filters.candidate(step)
            candidate.line = functools.partial(wording.line, candidate.brief, step.run)
            if self._chosen.marks(candidate):
                self._marked.add(record.seq)
            silent = record.seq <= self._silent
            if not silent:
                if step.run:
                    self._active[step.run] = time.monotonic()
                    if self._ends:
                        self._ends.note(step.run)
                if self._chosen.matches_step(candidate):
                    yield PrintedLine(candidate.line(), step)
            for run in step.over:
                if not silent:
                    yield from self._tell(run)
                if self._ends:
                    self._ends.end(run)
                self._forget(run)
            if record.seq == self._silent:
                self._shown = {run: _state(run) for run in self._analyzer.runs}
        self._begin_record(0)

    @property
    def runs(self) -> list[Run]:
        """The runs of which more may come."""
        return self._analyzer.runs

    def present(self, now: float) -> Present:
        """Return what is under way in the capture. Raises CaptureError."""
        with Capture.open(self._path) as capture:
            return capture.present(now)

    def _forget(self, run: Run) -> None:
        self._analyzer.forget(run)
        self._active.pop(run, None)
        self._shown.pop(run, None)
        self._marked.difference_update(run.seqs)

    def sum_up(self, *, ended: bool = False) -> Iterator[PrintedLine]:
        """The runs that fell silent without a proper end; with ``ended`` all open runs."""
        now = time.monotonic()
        due = [run for run, last in self._active.items() if ended or now - last >= QUIET]
        for run in due:
            del self._active[run]
        # A run without a certname that became part of another run is not a separate run any more.
        for run in [open_run for open_run in self._analyzer.runs if open_run in due] if due else ():
            yield from self._tell(run)
        if self._ends:
            self._ends.lapse(lambda: self._analyzer.runs, self._judged, ended=ended)

    def _judged(self, run: Run, trouble: list[str] | None = None) -> Run:
        """Return an open run with the findings about the whole of it so far."""
        judgement = self._analyzer.judge(run, [] if trouble is None else trouble)
        return dataclasses.replace(run, findings=merged(run.findings, judgement))

    def _tell(self, run: Run) -> list[PrintedLine]:
        """A run's summary and verdict, unless they were printed already or the filter does not match the run."""
        if not run.real or self._shown.get(run) == _state(run):
            return []
        self._shown[run] = _state(run)
        trouble: list[str] = []
        if not run.closed:
            run = self._judged(run, trouble)
        brief = conclusions.of_run(run)
        lines = [wording.summary(brief)]
        if brief.verdict is not None:
            lines += [f"run {run.number}: {brief.verdict.message}", f"{DO}{brief.fix}"]
        if not self._chosen.matches_run(brief, "\n".join(lines), marked=not self._marked.isdisjoint(run.seqs)):
            return []
        return [PrintedLine(line, run=run, trouble=() if at else tuple(trouble)) for at, line in enumerate(lines)]


def _state(run: Run) -> str:
    return f"{run.outcome} {len(run.seqs)}"
