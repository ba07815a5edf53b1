"""The derived index beside a capture: its records and runs in brief, so that a list needs neither bodies nor analysis.

It contains only data derived from the capture, and can be deleted at any time. ``indexer`` rebuilds it if it was made
by another version, or from another capture. This module reads it and checks whether it is valid; importing it is cheap.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import sqlite3
from array import array
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

import msgspec

from inspector import __version__, installation
from inspector.capture import guard
from inspector.errors import CaptureError
from inspector.summaries.summary import Brief, RunBrief, Times

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from inspector.capture.store import Capture

SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
-- A record in brief (MessagePack of brief.Brief).
CREATE TABLE brief (seq INTEGER PRIMARY KEY, data BLOB NOT NULL);
-- A run in brief (MessagePack of brief.RunBrief) and the numbers of its records (unsigned 64 bit). data is NULL once it
-- turned out to be part of another run. change: the number of the flush that wrote it.
CREATE TABLE run (place INTEGER PRIMARY KEY, change INTEGER NOT NULL, data BLOB, seqs BLOB NOT NULL);
CREATE INDEX changes ON run (change);
-- The records that were not analyzed, and why.
CREATE TABLE unanalyzed (seq INTEGER PRIMARY KEY, reason TEXT NOT NULL);
"""
UNANALYZED = 1000
"""Maximum number of records that were not analyzed of which the reason is read."""
_PAGE = 500
"""Maximum number of values in one SQL statement."""


class IndexedRun(NamedTuple):
    """A run in brief, and the numbers of its records."""

    brief: RunBrief
    seqs: array[int]


class IndexState(NamedTuple):
    """The progress of an index."""

    last: int
    """The last record in the index."""
    change: int
    """The number of its latest flush."""
    complete: bool
    """The capture is no longer written, and the index contains all of it."""
    trouble: str
    """The part of the capture that could not be read; empty if all could."""


def maker() -> str:
    """The builder of an index: the version and a digest of the code, so that an edited rule is applied again."""
    digest = hashlib.sha256()
    for path in sorted(installation.PACKAGE.rglob("*.py")):
        status = path.stat()
        digest.update(f"{path.relative_to(installation.PACKAGE)} {status.st_size} {status.st_mtime_ns}\n".encode())
    return f"{__version__} {digest.hexdigest()[:16]}"


def place(capture: Path) -> Path:
    """The path of a capture's index: beside the capture, or in the user's cache if that directory is not writable."""
    beside = capture.with_name(f"{capture.name}.index")
    if os.access(capture.parent, os.W_OK):
        return beside
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "puppet-inspector" / f"{hashlib.sha256(bytes(capture.resolve())).hexdigest()[:32]}.index"


class Busy(CaptureError):
    """Another process has the index locked for writing."""


class Index:
    """An index, opened for reading; another process may write to it at the same time.

    Methods that return records or runs raise CaptureError if it cannot be read, or ``Busy`` if it can be read later.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db

    @classmethod
    def open(cls, path: Path) -> Self | None:
        """Open an index; None if there is none, or if another version made it. It may be used by several threads."""
        if not guard.plain(path):
            return None
        try:
            db = sqlite3.connect(f"{path.resolve().as_uri()}?mode=ro", uri=True, isolation_level=None, timeout=1,
                                 check_same_thread=False)  # fmt: skip
        except sqlite3.Error:
            return None
        try:
            guard.distrust(db)
            found = db.execute("SELECT value FROM meta WHERE key = 'maker'").fetchone()
            if guard.foreign(db, SCHEMA):
                found = None  # not made by us: it is made anew
        except (sqlite3.Error, UnicodeDecodeError):  # also SQLite's messages may quote what is not UTF-8
            found = None
        if found is None or found[0] != maker():
            db.close()
            return None
        return cls(db)

    def close(self) -> None:
        self._db.close()

    def fits(self, capture: Capture) -> bool:
        """Whether it was made from this capture, as far as it goes."""
        meta = self._meta()
        try:
            last = int(meta.get("last", "0"))
        except (ValueError, TypeError, OverflowError):
            return False
        return last == 0 or (meta.get("first"), meta.get("digest")) == (
            capture.digest(capture.first),
            capture.digest(last),
        )

    def state(self) -> IndexState:
        """Its progress."""
        meta = self._meta()
        with _readable():
            return IndexState(
                int(meta.get("last", "0")),
                int(meta.get("change", "0")),
                meta.get("complete") == "1",
                str(meta.get("trouble", "")),
            )

    def runs(self, after: int = 0) -> dict[int, IndexedRun | None]:
        """The runs written by a flush later than this one, by their place; None: the run is now part of another one."""
        with _readable():
            rows = self._db.execute(
                "SELECT place, data, seqs FROM run WHERE change > ? ORDER BY place", (after,)
            ).fetchall()
            return {at: IndexedRun(_RUN.decode(data), array("Q", seqs)) if data else None for at, data, seqs in rows}

    def unanalyzed(self) -> dict[int, str]:
        """The numbers of the records that were not analyzed, and why."""
        with _readable():
            rows = self._db.execute("SELECT seq, reason FROM unanalyzed ORDER BY seq").fetchmany(UNANALYZED)
            return {int(seq): str(reason) for seq, reason in rows}

    def briefs(self, seqs: Iterable[int]) -> Iterator[Brief]:
        """These records, in order; their ``signs`` are with the runs."""
        wanted = sorted(seqs)
        for at in range(0, len(wanted), _PAGE):
            some = wanted[at : at + _PAGE]
            # Placeholders only: the numbers are never part of the statement.
            marks = ",".join("?" * len(some))
            asked = f"SELECT data FROM brief WHERE seq IN ({marks}) ORDER BY seq"  # noqa: S608
            with _readable():
                for (data,) in self._db.execute(asked, some):
                    yield _BRIEF.decode(data)

    def all_briefs(self, after: int = 0) -> Iterator[Brief]:
        """The records after this one, in order; their ``signs`` are with the runs, and their ``times`` with ``briefs``.

        A hundred thousand of them are in memory at once, so equal values are shared.
        """
        shared: dict[str, str] = {}
        with _readable():
            for (data,) in self._db.execute("SELECT data FROM brief WHERE seq > ? ORDER BY seq", (after,)):
                brief = _BRIEF.decode(data)
                brief.times = _NO_TIMES
                for name in _ALIKE:
                    if text := getattr(brief, name):
                        setattr(brief, name, shared.setdefault(text, text))
                yield brief

    def _meta(self) -> dict[str, str]:
        with contextlib.suppress(sqlite3.Error):
            return dict(self._db.execute("SELECT key, value FROM meta").fetchall())
        return {}


@contextlib.contextmanager
def _readable() -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, msgspec.MsgspecError, *guard.DAMAGED) as error:
        if getattr(error, "sqlite_errorcode", None) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise Busy("The index of the capture is being written.", "Try again in a moment.") from error
        raise CaptureError(f"The index of the capture cannot be read: {error}.", "It will be rebuilt.") from error


_BRIEF = msgspec.msgpack.Decoder(Brief)
_NO_TIMES = Times()
_ALIKE = ("certname", "address", "endpoint", "environment", "method", "target", "reason", "identity", "leg", "master")
"""The values that many records have in common."""
_RUN = msgspec.msgpack.Decoder(RunBrief)
