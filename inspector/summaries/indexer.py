"""Builds the derived index of a capture, and updates it while a proxy writes the capture.

It is a separate process, so that readers of the index never wait for the analysis. It ends when the capture is
complete, or when its parent process ends (its standard input is closed).
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import os
import select
import sqlite3
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from inspector.analysis import limits
from inspector.analysis.analyzer import Analyzer, merged
from inspector.capture import guard
from inspector.capture.store import Capture
from inspector.errors import CaptureError
from inspector.summaries import index, summary, wording
from inspector.text import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from inspector.model import Record
    from inspector.runs.run import Run

BATCH = 1000
"""Records between two commits: each commit shows progress to readers."""
INTERVAL = 0.2
"""Seconds between two polls of a capture that is being written."""


def build(capture: Path, target: Path, wait: Callable[[], bool] = lambda: False) -> None:
    """Bring an index up to date, and while ``wait`` returns True also with what is added. Raises CaptureError.

    Does nothing if another process writes the index.
    """
    with _mine(target) as mine:
        if mine:
            writer = _Writer(capture, target)
            try:
                while not writer.read() and wait():
                    pass
            finally:
                writer.close()


@contextlib.contextmanager
def _mine(target: Path) -> Iterator[bool]:
    """Lock the index for this process; return False if another process has the lock."""
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    descriptor = os.open(f"{target}.lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            # The previous owner may have removed the file: then another process may have a lock on a new file at its
            # path.
            mine = _inode(Path(f"{target}.lock")) == os.fstat(descriptor).st_ino
            try:
                yield mine
            finally:
                if mine:
                    Path(f"{target}.lock").unlink(missing_ok=True)
    finally:
        os.close(descriptor)


class _Writer:
    """Reads a capture from its beginning and writes what is not in the index yet."""

    def __init__(self, capture: Path, target: Path) -> None:
        self._path = capture
        self._target = target
        self._analyzer = Analyzer()
        self._after = 0
        self._dirty: dict[Run, None] = {}
        self._written: dict[Run, None] = {}
        self._rows: list[tuple[int, bytes]] = []
        self._trouble = ""
        with Capture.open(capture) as records:
            found = index.Index.open(target)
            good = found is not None and found.fits(records)
            state = found.state() if found and good else None
            if found:
                found.close()
        if not good:
            _anew(target)
        self._known = state.last if state else 0
        self._change = state.change if state else 0
        self._db = sqlite3.connect(target, isolation_level=None, timeout=5)
        guard.distrust(self._db)
        if not good:
            self._db.executescript(index.SCHEMA)
            self._db.execute("INSERT INTO meta VALUES ('maker', ?)", (index.maker(),))
        self._db.execute("PRAGMA synchronous = OFF")  # an index damaged by a power failure is rebuilt
        self._inode = _inode(target)

    def close(self) -> None:
        self._db.close()

    def read(self) -> bool:
        """Add what is new. Returns True if nothing more will come."""
        with Capture.open(self._path) as capture:
            live = capture.live
            if capture.last < self._after:
                raise CaptureError(f"{self._path} was replaced by another capture.", "Open it again.")
            for record in self._records(capture):
                self._take(record)
                if len(self._rows) >= BATCH or (record.seq <= self._known and record.seq % BATCH == 0):
                    self._flush(capture)
            if not live:
                for run in self._analyzer.finish():
                    self._dirty[run] = None
            self._flush(capture, complete=not live)
        return not live

    def _records(self, capture: Capture) -> Iterator[Record]:
        """The new records; damaged parts are reported and left out."""
        while True:
            try:
                for record in capture.records(self._after):
                    yield record
                    self._after = record.seq
                return
            except (CaptureError, sqlite3.DatabaseError) as error:
                following = capture.following(self._after)
                self._trouble = clean(str(error))
                if following is None:
                    return
                self._after = following

    def _take(self, record: Record) -> None:
        step = self._analyzer.feed(record)
        if record.seq > self._known:
            self._rows.append((record.seq, msgspec.msgpack.encode(summary.of(step, ()))))
        if step.run:
            self._dirty[step.run] = None
        for run in step.over:
            self._dirty[run] = None
            self._analyzer.forget(run)

    def _flush(self, capture: Capture, *, complete: bool = False) -> None:
        if _inode(self._target) != self._inode:
            raise CaptureError(f"The index {self._target} was removed.", "It will be rebuilt.")
        self._change += 1
        fresh = self._after > self._known
        runs: list[tuple[int, int, bytes | None, bytes]] = []
        if fresh or complete:
            open_now = {run.place for run in self._analyzer.runs}
            for run in self._dirty:
                if run.number is not None and (run.closed or run.place in open_now):
                    runs.append((run.place, self._change, self._brief(run), run.seqs.tobytes()))
                    self._written[run] = None
            for run in [entry for entry in self._written if entry.closed or entry.place not in open_now]:
                del self._written[run]
                if not run.closed:  # it turned out to be the beginning of another run
                    runs.append((run.place, self._change, None, b""))
            self._dirty = {}
        last = max(self._after, self._known)
        meta = {"change": self._change, "last": last, "complete": int(complete), "trouble": self._trouble,
                "first": capture.digest(capture.first) or "", "digest": capture.digest(last) or ""}  # fmt: skip
        self._db.execute("BEGIN IMMEDIATE")
        self._db.executemany("INSERT OR REPLACE INTO brief VALUES (?, ?)", self._rows)
        self._db.executemany("INSERT OR REPLACE INTO run VALUES (?, ?, ?, ?)", runs)
        self._db.executemany("INSERT OR REPLACE INTO unanalyzed VALUES (?, ?)", self._analyzer.unanalyzed.items())
        self._db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", [(key, str(meta[key])) for key in meta])
        self._db.execute("COMMIT")
        self._rows = []

    def _brief(self, run: Run) -> bytes:
        if not run.closed:
            run = dataclasses.replace(run, findings=merged(run.findings, self._analyzer.judge(run)))
        return msgspec.msgpack.encode(summary.of_run(run, wording.conclusion(run)))


def _inode(path: Path) -> int:
    try:
        return path.stat().st_ino
    except OSError:
        return 0


def _anew(target: Path) -> None:
    for path in (target, *(target.with_name(f"{target.name}{end}") for end in guard.BESIDE)):
        path.unlink(missing_ok=True)
    os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))


def main(arguments: Sequence[str]) -> None:
    """Build the index of a capture, and follow it while standard input is open."""
    limits.arm()
    capture, target = map(Path, arguments)
    waits = select.poll()
    waits.register(sys.stdin, select.POLLIN)
    build(capture, target, lambda: not waits.poll(INTERVAL * 1000))
