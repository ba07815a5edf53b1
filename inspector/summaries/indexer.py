"""Builds the derived index of a capture, and updates it while a proxy writes the capture.

It is a separate process, so that readers of the index never wait for the analysis. It ends when the capture is
complete, or when its parent process ends (its standard input is closed).

Of a large capture the newest records are read first, without what came before them: they show within a second what is
wrong now. Their runs have negative places and numbers, and are replaced as soon as the whole capture was read.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import math
import os
import select
import sqlite3
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import zstandard

from inspector import rules
from inspector.analysis import limits
from inspector.analysis.analyzer import Analyzer, merged
from inspector.capture import guard
from inspector.capture.store import Capture
from inspector.errors import CaptureError
from inspector.progress import unwatched
from inspector.summaries import conclusions, index, newest, ruleset, summary
from inspector.summaries.keys import WireKeys

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from inspector.analysis.analyzer import Step
    from inspector.progress import Watch
    from inspector.runs.run import Run
    from inspector.summaries.summary import Brief

    type _RunRow = tuple[int, int | None, bytes | None]
    """A run's place, the place of the run that it became part of, and its data."""

BATCH = 1000
"""Records between two commits: each commit shows progress to readers."""
INTERVAL = 0.2
"""Seconds between two polls of a capture that is being written."""
LEARNT = 64
"""Runs of which the dictionary is made."""


def build(
    capture: Path,
    target: Path,
    wait: Callable[[], bool] = lambda: False,
    watch: Watch = unwatched,
) -> None:
    """Bring an index up to date, and while ``wait`` returns True also with what is added. Raises CaptureError.

    Does nothing if another process writes the index.
    """
    with _mine(target) as mine:
        if mine:
            writer = _Writer(capture, target, watch)
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
            mine = index.inode(Path(f"{target}.lock")) == os.fstat(descriptor).st_ino
            try:
                yield mine
            finally:
                if mine:
                    Path(f"{target}.lock").unlink(missing_ok=True)
    finally:
        os.close(descriptor)


class _Writer:
    """Reads a capture from its beginning and writes what is not in the index yet."""

    def __init__(self, capture: Path, target: Path, watch: Watch) -> None:
        self._path = capture
        self._target = target
        self._watch = watch
        self._analyzer = Analyzer()
        self._after = 0
        self._dirty: dict[Run, None] = {}
        self._open: dict[Run, None] = {}
        """The runs that are not over yet, as far as they were written."""
        self._pages = _Pages()
        self._keys = WireKeys()
        self._newest: list[tuple[int, int]] = []
        """The runs of the newest records, which are in the index for the time being: place and first record."""
        self._trouble = ""
        self._records, self._begun, self._ended, self._left = 0, math.inf, -math.inf, 0
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
        self._packer: zstandard.ZstdCompressor | None = None
        self._load_dictionary()
        self._inode = index.inode(target)

    def close(self) -> None:
        self._db.close()

    def read(self) -> bool:
        """Add what is new. Returns True if nothing more will come."""
        with Capture.open(self._path) as capture:
            live, last = capture.live, capture.last
            if last < self._after:
                raise CaptureError(f"{self._path} was replaced by another capture.", "Open it again.")
            if last - self._after > newest.MANY and last - self._known > newest.MANY:
                self._read_newest(capture)
            records = capture.readable(self._after, self._damaged)
            for taken, step in enumerate(self._analyzer.steps(records), 1):
                self._take(step)
                if taken % BATCH == 0:
                    self._flush(capture)
                self._watch(self._after, last)
            if not live:
                for run in self._analyzer.finish():
                    self._dirty[run] = None
            self._flush(capture, complete=not live)
        return not live

    def _damaged(self, trouble: str, seq: int) -> None:
        self._trouble, self._after = trouble, seq

    def _take(self, step: Step) -> None:
        record = step.record
        self._after = record.seq
        self._records += 1
        self._begun, self._ended = min(self._begun, record.time), max(self._ended, record.ended)
        self._left += bool(step.unanalyzed)
        self._pages.add(summary.brief_of(step, ()), write=record.seq > self._known)
        self._keys.add(step)
        if step.run:
            self._dirty[step.run] = None
        for run in step.over:
            self._dirty[run] = None

    def _flush(self, capture: Capture, *, complete: bool = False) -> None:
        fresh = self._after > self._known or complete
        runs = list(self._changed_runs()) if fresh else []
        self._dirty = {} if fresh else self._dirty
        last = max(self._after, self._known)
        covered = [place for place, first in self._newest if complete or first <= self._after]
        self._newest = [(place, first) for place, first in self._newest if place not in covered]
        meta = {"last": last, "complete": int(complete), "trouble": self._trouble,
                "first": capture.digest(capture.first) or "", "digest": capture.digest(last) or ""}  # fmt: skip
        if fresh and self._records:
            meta |= {"records": self._records, "begun": self._begun, "ended": self._ended, "left": self._left}
        with self._written_together(meta):
            self._write_runs((*runs, *((place, None, None) for place in covered)))
            self._db.executemany("INSERT OR REPLACE INTO page VALUES (?, ?)", self._pages.changed())
            self._db.executemany("INSERT OR REPLACE INTO unanalyzed VALUES (?, ?)", self._analyzer.unanalyzed.items())
            self._db.executemany("INSERT OR REPLACE INTO failed VALUES (?, ?)", self._analyzer.failed.items())
            keys = map(msgspec.structs.astuple, self._keys.changed())
            self._db.executemany("INSERT OR REPLACE INTO key VALUES (?, ?, ?, ?, ?, ?)", keys)

    @contextlib.contextmanager
    def _written_together(self, meta: dict[str, object]) -> Iterator[None]:
        """Write in one transaction, which readers see as one change."""
        if index.inode(self._target) != self._inode:
            raise CaptureError(f"The index {self._target} was removed.", "It will be rebuilt.")
        self._change += 1
        self._db.execute("BEGIN IMMEDIATE")
        yield
        rows = [(key, str(value)) for key, value in {**meta, "change": self._change}.items()]
        self._db.executemany("INSERT OR REPLACE INTO meta VALUES (?, ?)", rows)
        self._db.execute("COMMIT")

    # -- runs -------------------------------------------------------------------------------------------

    def _changed_runs(self) -> Iterator[_RunRow]:
        """The rows of the runs that were changed since the last flush: place, joined, data."""
        for run in self._dirty:
            self._open[run] = None
            if run.joined is None:
                yield run.place, None, _packed(self._analyzer, run)
        for run in [entry for entry in self._open if entry.closed or entry.joined is not None]:
            del self._open[run]
            if run.joined is not None:  # it turned out to be the beginning of another run
                yield run.place, run.joined.place, None

    def _write_runs(self, rows: Sequence[_RunRow]) -> None:
        if self._packer is None:
            self._learn([data for _, _, data in rows if data])
        for place, joined, data in rows:
            stored = data and (self._packer.compress(data) if self._packer else data)
            self._db.execute("INSERT OR REPLACE INTO run VALUES (?, ?, ?, ?)", (place, self._change, joined, stored))

    def _load_dictionary(self) -> None:
        if row := self._db.execute("SELECT data FROM dictionary").fetchone():
            self._packer = zstandard.ZstdCompressor(level=3, dict_data=index.dictionary(row[0]))

    def _learn(self, runs: Sequence[bytes]) -> None:
        """Make the dictionary from the first runs, once there are enough."""
        if len(runs) < LEARNT:
            (stored,) = self._db.execute("SELECT count(*) FROM run WHERE data IS NOT NULL").fetchone()
            if stored < LEARNT:
                return
            rows = self._db.execute("SELECT data FROM run WHERE data IS NOT NULL LIMIT ?", (LEARNT,))
            runs = [data for (data,) in rows]
        self._db.execute("INSERT INTO dictionary VALUES (?)", (b"".join(runs[:LEARNT])[-index.DICTIONARY :],))
        self._load_dictionary()

    # -- the newest records ---------------------------------------------------------------------------------

    def _read_newest(self, capture: Capture) -> None:
        """Write the runs that surely began within the newest records, until the whole capture was read."""
        analyzer, beginnings = Analyzer(), newest.Beginnings()
        runs: dict[Run, None] = {}
        briefs: list[Brief] = []
        with contextlib.suppress(CaptureError, sqlite3.DatabaseError):
            for step in analyzer.steps(capture.records(max(capture.last - newest.NEWEST, self._known))):
                beginnings.add(step)
                if step.run:
                    runs[step.run] = None
                briefs.append(summary.brief_of(step, ()))
        shown = [run for run in runs if run.joined is None and run.seqs[0] in beginnings]
        runs = {run: None for run in runs if (run.joined or run) in shown}
        places = {run.place for run in runs}
        for brief in briefs:
            brief.place = -brief.place if brief.place in places else 0
            self._pages.add_newest(brief)
        numbered = sorted(run.number for run in shown if run.number is not None)
        number = {own: at - len(numbered) for at, own in enumerate(numbered)}
        rows: list[_RunRow] = [
            (-run.place, None, _packed(analyzer, run, number[run.number] if run.number else 0)) for run in shown
        ]
        rows += [(-run.place, -run.joined.place, None) for run in runs if run.joined is not None]
        self._newest = [(-run.place, run.seqs[0]) for run in runs]
        with self._written_together({}):
            self._write_runs(rows)
            self._db.executemany("INSERT OR REPLACE INTO page VALUES (?, ?)", self._pages.packed_newest())


def _packed(analyzer: Analyzer, run: Run, number: int | None = None) -> bytes:
    """A run in brief, with this number instead of its own."""
    if not run.closed:
        run = dataclasses.replace(run, findings=merged(run.findings, analyzer.judge(run)))
    brief = conclusions.of_run(run)
    if number is not None:
        brief = msgspec.structs.replace(brief, number=number)
    return index.IndexedRun.of(brief, run.seqs).packed()


class _Pages:
    """The pages of the index that are being filled."""

    def __init__(self) -> None:
        self._number = 0
        self._briefs: dict[int, bytes] = {}
        self._full: list[tuple[int, bytes]] = []
        self._changed = False
        self._encoder = msgspec.msgpack.Encoder()
        self._packer = zstandard.ZstdCompressor(level=1)
        self.newest: dict[int, dict[int, bytes]] = {}
        """The pages of the newest records, which were read first: they stay until they are replaced."""

    def add(self, brief: Brief, *, write: bool = True) -> None:
        """Add the next record; without ``write`` it is in the index already."""
        number = brief.seq // index.PAGE
        if number != self._number:
            if self._changed:
                self._full.append((self._number, self._packed()))
            self.newest.pop(self._number, None)
            self._number, self._briefs, self._changed = number, {}, False
        self._briefs[brief.seq] = self._encoder.encode(brief)
        self._changed |= write

    def add_newest(self, brief: Brief) -> None:
        """Add one of the newest records."""
        self.newest.setdefault(brief.seq // index.PAGE, {})[brief.seq] = msgspec.msgpack.encode(brief)

    def packed_newest(self) -> list[tuple[int, bytes]]:
        """Return the pages of the newest records, packed."""
        return [(number, self._pack(page)) for number, page in self.newest.items()]

    def changed(self) -> list[tuple[int, bytes]]:
        """Return the pages that were changed since the last call, packed."""
        changed, self._full = self._full, []
        if self._changed:
            changed.append((self._number, self._packed()))
            self._changed = False
        return changed

    def _packed(self) -> bytes:
        return self._pack({**self.newest.get(self._number, {}), **self._briefs})

    def _pack(self, page: dict[int, bytes]) -> bytes:
        head = bytes((0xDC, *len(page).to_bytes(2)))  # MessagePack's array of so many items
        return self._packer.compress(head + b"".join(page[seq] for seq in sorted(page)))


def _anew(target: Path) -> None:
    for path in (target, *(target.with_name(f"{target.name}{end}") for end in guard.BESIDE)):
        path.unlink(missing_ok=True)
    os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))


def main(arguments: Sequence[str]) -> None:
    """Build the index of a capture, and follow it while standard input is open. After the paths of both come the
    options with the site's rules."""
    limits.arm()
    capture, target = map(Path, arguments[:2])
    rules.use(ruleset.load_options(arguments[2:]))
    waits = select.poll()
    waits.register(sys.stdin, select.POLLIN)

    def progress(done: int, *_: object) -> None:
        if done % BATCH == 0 and waits.poll(0):
            sys.exit()  # what was written is valid; nobody is left who would read the rest

    build(capture, target, lambda: not waits.poll(INTERVAL * 1000), progress)
