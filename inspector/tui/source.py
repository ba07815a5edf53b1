"""What the views read: a capture by way of its index, and single records from the capture itself.

The index is made and kept up by a process of its own; here it is only read, so nothing that a view asks for takes
longer than a look into a file. No widgets.
"""

from __future__ import annotations

import contextlib
import sqlite3
import subprocess
import sys
import threading
import time
from typing import TYPE_CHECKING, Self

from inspector import index
from inspector.brief import Sign
from inspector.errors import CaptureError
from inspector.store import Capture

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from inspector.analyzer import Step
    from inspector.brief import Brief, RunBrief
    from inspector.model import Connection, Record


AGAIN = 2.0
"""Seconds between two tries to have the index made, where another one makes it or it fails."""


class Source:
    """One capture, and what is known of it up to now. ``poll`` looks for more."""

    def __init__(self, path: Path) -> None:
        """Open a capture, starting the process that indexes it if need be. Raises CaptureError."""
        self.path = path
        self.total = 0
        """The capture's last record."""
        self.state = index.State(0, 0, complete=False, trouble="")
        self.open = False
        """Whether somebody may still write it."""
        self.revision = 0
        """Grows with everything that ``poll`` finds."""
        self._place = index.place(path)
        self._index: index.Index | None = None
        self._indexer: subprocess.Popen[bytes] | None = None
        self._runs: dict[int, index.Run] = {}
        """By where they stand among all that began in the capture."""
        self._by_number: dict[int, index.Run] = {}
        self._all: list[Brief] = []
        self._read = -1
        """The revision that these are of."""
        self._reading = threading.Lock()
        self._owner: dict[int, RunBrief] = {}
        self._owned = -1
        self._begun = -AGAIN
        self._inode = 0
        self.poll()

    def close(self) -> None:
        """Stop the process that indexes."""
        if self._index:
            self._index.close()
            self._index = None
        if self._indexer:
            if self._indexer.stdin:
                self._indexer.stdin.close()
            try:
                self._indexer.wait(2)
            except subprocess.TimeoutExpired:
                self._indexer.kill()
                self._indexer.wait()
            self._indexer = None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # -- what is new ----------------------------------------------------------------------------------

    def poll(self) -> bool:
        """Look for what was added since the last time. True if anything was. Raises CaptureError."""
        if self._index is not None and _inode(self._place) != self._inode:
            self._take(None)  # somebody made it anew
        with self.capture() as capture:
            self.total = capture.last
            self.open = capture.live
            if self._index is None:
                found = index.Index.open(self._place)
                if found is not None and not found.fits(capture):
                    found.close()
                    found = None
                self._take(found)
        if self._index is None:
            self._begin()
            return False
        before, self.state = self.state, self._index.state()
        if self.state.last < self.total or not self.state.complete:
            self._begin()
        if self.state.change == before.change:
            return False
        for place, run in self._index.runs(before.change).items():
            if run is None:
                self._runs.pop(place, None)
            else:
                self._runs[place] = run
        self._by_number = {
            run.brief.number: run for run in sorted(self._runs.values(), key=lambda run: run.brief.number)
        }
        self.revision += 1
        return True

    def _take(self, found: index.Index | None) -> None:
        """Read another index from its beginning."""
        if self._index:
            self._index.close()
        self._index = found
        self._inode = _inode(self._place)
        self.state = index.State(0, 0, complete=False, trouble="")
        self._runs, self._by_number, self._all, self._read = {}, {}, [], -1

    def _begin(self) -> None:
        """Have the index made. Whoever comes second finds that somebody is at it, and ends at once."""
        now = time.monotonic()
        if (self._indexer is not None and self._indexer.poll() is None) or now - self._begun < AGAIN:
            return
        self._begun = now
        command = [sys.executable, "-m", "inspector.indexer", str(self.path), str(self._place)]
        self._indexer = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )

    @property
    def indexing(self) -> bool:
        """Whether part of the capture is not known yet."""
        return self.state.last < self.total

    @property
    def trouble(self) -> str:
        """What keeps the capture from being known whole; empty if nothing does."""
        failed = self._indexer is not None and self._indexer.poll() not in (None, 0)
        return self.state.trouble or ("its index could not be made" if failed else "")

    # -- runs -----------------------------------------------------------------------------------------

    @property
    def runs(self) -> list[RunBrief]:
        """All runs, in the order in which they began."""
        return [each.brief for each in self._by_number.values()]

    def run(self, number: int) -> RunBrief | None:
        """A run by its number."""
        found = self._by_number.get(number)
        return found.brief if found else None

    def seqs(self, number: int) -> list[int]:
        """The numbers of a run's records, in order."""
        found = self._by_number.get(number)
        return list(found.seqs) if found else []

    def owner(self, seq: int) -> RunBrief | None:
        """The run that a record is part of."""
        if self._owned != self.revision:
            self._owner = {seq: run.brief for run in self._runs.values() for seq in run.seqs}
            self._owned = self.revision
        return self._owner.get(seq)

    # -- records --------------------------------------------------------------------------------------

    def briefs(self, number: int) -> list[Brief]:
        """A run's records in brief, with what they prove."""
        run = self.run(number)
        return _signed(self._index.briefs(self.seqs(number)), [run]) if run and self._index else []

    def all_briefs(self) -> list[Brief]:
        """All records in brief, with what they prove. For a hundred thousand it takes half a second the first time;
        a thread may have it done before."""
        with self._reading:
            revision = self.revision
            if self._index and self._read != revision:
                self._all = [*self._all, *self._index.all_briefs(self._all[-1].seq if self._all else 0)]
                _signed(self._all, self.runs)
                self._read = revision
            return self._all

    def record(self, seq: int) -> Record | None:
        """A record with its bodies. Raises CaptureError."""
        with self.capture() as capture:
            return capture.record(seq)

    def step(self, seq: int) -> Step | None:
        """A record, decoded. Its ``run`` is only of itself; ``owner`` tells whose it is. Raises CaptureError."""
        from inspector.analyzer import retrace

        record = self.record(seq)
        return next(retrace([record])) if record else None

    def steps(self, number: int, until: int | None = None) -> Iterator[Step]:
        """A run's records, decoded; all have the same ``run``, which grows with each. Raises CaptureError."""
        from inspector.analyzer import retrace

        with self.capture() as capture:
            seqs = [seq for seq in self.seqs(number) if until is None or seq <= until]
            yield from retrace(record for seq in seqs if (record := capture.record(seq)))

    def connection(self, ident: str) -> Connection | None:
        """A connection by its id, and how it ended. Raises CaptureError."""
        with self.capture() as capture:
            return capture.connection(ident)

    @contextlib.contextmanager
    def capture(self) -> Iterator[Capture]:
        """The capture itself, for one look: an open reader would keep the proxy from tidying up when it ends.

        Raises CaptureError.
        """
        try:
            with Capture.open(self.path) as capture:
                yield capture
        except sqlite3.Error as error:
            raise CaptureError(f"{self.path} can't be read: {error}.", "It is damaged, or its disk is.") from error


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0


def _signed(briefs: Iterable[Brief], runs: Iterable[RunBrief]) -> list[Brief]:
    """Say of each record what it proves."""
    signs: dict[int, dict[Sign, None]] = {}
    for run in runs:
        for finding in sorted(run.findings, key=lambda each: -each.severity.rank):
            sign = Sign(finding.rule, finding.severity)
            for seq in finding.seqs:
                signs.setdefault(seq, {})[sign] = None
    told = list(briefs)
    for each in told:
        found = signs.get(each.seq)
        each.signs = tuple(found) if found else ()
    return told
