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
from functools import cache
from itertools import accumulate, pairwise
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, Self

import msgspec
import zstandard

from inspector import __version__, installation, rules
from inspector.capture import guard
from inspector.errors import CaptureError
from inspector.summaries.keys import WireKey
from inspector.summaries.summary import Brief, RunBrief

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from inspector.capture.store import Capture

SCHEMA = """
CREATE TABLE meta (key TEXT PRIMARY KEY, value TEXT NOT NULL);
-- The records in brief (summary.Brief), PAGE of them with consecutive numbers: MessagePack in a zstd frame.
CREATE TABLE page (number INTEGER PRIMARY KEY, data BLOB NOT NULL);
-- A run in brief and the numbers of its records (``packed``): MessagePack in a zstd frame made with the dictionary.
-- data is NULL once the run turned out to be part of the one at the place ``joined``, or to be no run. change: the
-- number of the flush that wrote it. A negative place: of the newest records, which are read first (``indexer``).
CREATE TABLE run (place INTEGER PRIMARY KEY, change INTEGER NOT NULL, joined INTEGER, data BLOB);
CREATE INDEX changes ON run (change);
CREATE TABLE dictionary (data BLOB NOT NULL);
-- The public keys in the traffic (keys.WireKey).
CREATE TABLE key (kind TEXT NOT NULL, certname TEXT NOT NULL, key TEXT NOT NULL, time REAL NOT NULL,
                  seq INTEGER NOT NULL, fingerprint TEXT NOT NULL, PRIMARY KEY (kind, certname, key));
-- The records that were not analyzed, and why.
CREATE TABLE unanalyzed (seq INTEGER PRIMARY KEY, reason TEXT NOT NULL);
CREATE TABLE failed (rule TEXT PRIMARY KEY, reason TEXT NOT NULL);
"""
UNANALYZED = 1000
"""Maximum number of records that were not analyzed of which the reason is read."""
PAGE = 256
"""Records of a page."""
KEPT = 512
"""Maximum number of pages that a reader keeps in memory."""
LARGEST = 2**26
"""The largest page or run that is unpacked (bytes)."""
DICTIONARY = 2**16
"""Maximum size of the dictionary in bytes."""


class IndexedRun:
    """A run in brief, and the numbers of its records."""

    __slots__ = ("_steps", "brief")

    def __init__(self, brief: RunBrief, steps: bytes) -> None:
        self.brief = brief
        self._steps = steps

    @property
    def seqs(self) -> array[int]:
        """The numbers of its records, in order."""
        return array("Q", accumulate(_STEPS.decode(self._steps)))

    @classmethod
    def of(cls, brief: RunBrief, seqs: Collection[int]) -> Self:
        """Return a run with the numbers of its records, in order."""
        numbers = list(seqs)
        steps = numbers[:1] + [after - before for before, after in pairwise(numbers)]
        return cls(brief, msgspec.msgpack.encode(steps))

    def judged(self, brief: RunBrief) -> Self:
        """Return it as it was judged."""
        return self if brief is self.brief else type(self)(brief, self._steps)

    def packed(self) -> bytes:
        """Return it as bytes."""
        return msgspec.msgpack.encode((self.brief, self._steps))

    @classmethod
    def unpacked(cls, data: bytes) -> Self:
        """Return what ``packed`` made. Raises msgspec.MsgspecError."""
        return cls(*_runs().decode(data))


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
    records: int = 0
    begun: float = 0.0
    """When its first record began."""
    ended: float = 0.0
    """When the record ended that ended last."""
    unanalyzed: int = 0
    """How many records were not analyzed, or not completely."""


class Changes(NamedTuple):
    """What was written to an index since another moment."""

    runs: dict[int, IndexedRun]
    """By their place."""
    gone: dict[int, int | None]
    """The places of those that are runs no more, and of the runs that they are part of."""


def maker() -> str:
    """The builder of an index: the version and a digest of the code and of the site's rules, so that an edited rule is
    applied again."""
    digest = hashlib.sha256(f"{installation.digest()} {rules.in_use().digest}".encode())
    return f"{__version__} {digest.hexdigest()[:16]}"


def place(capture: Path) -> Path:
    """The path of a capture's index: beside the capture, or in the user's cache if that directory is not writable."""
    beside = capture.with_name(f"{capture.name}.index")
    if os.access(capture.parent, os.W_OK):
        return beside
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "puppet-inspector" / f"{hashlib.sha256(bytes(capture.resolve())).hexdigest()[:32]}.index"


def inode(path: Path) -> int:
    """Return the number by which a file is told from another one that took its place; 0 if there is none."""
    try:
        return path.stat().st_ino
    except OSError:
        return 0


def dictionary(data: bytes) -> zstandard.ZstdCompressionDict:
    """Return the dictionary with which runs are packed."""
    return zstandard.ZstdCompressionDict(data[:DICTIONARY], dict_type=zstandard.DICT_TYPE_RAWCONTENT)


class Busy(CaptureError):
    """Another process has the index locked for writing."""


class Index:
    """An index, opened for reading; another process may write to it at the same time.

    Methods that return records or runs raise CaptureError if it cannot be read, or ``Busy`` if it can be read later.
    """

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._unpacker: zstandard.ZstdDecompressor | None = None
        self._pages: dict[int, list[Brief]] = {}
        self._shared: dict[str, str] = {}

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

    @classmethod
    @contextlib.contextmanager
    def whole(cls, capture: Capture) -> Iterator[Self | None]:
        """Open the index of a capture if it contains all of it, to its present end; otherwise None."""
        found = cls.open(place(capture.path))
        try:
            yield found if found is not None and found.fits(capture) and found.ends_with(capture) else None
        finally:
            if found is not None:
                found.close()

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

    def ends_with(self, capture: Capture) -> bool:
        """Whether it contains all records that a capture has now, and could read all of them."""
        with contextlib.suppress(CaptureError):
            state = self.state()
            return state.last == capture.last and not state.trouble and (state.complete or capture.live)
        return False

    def state(self) -> IndexState:
        """Its progress."""
        meta = self._meta()
        with _readable():
            return IndexState(
                int(meta.get("last", "0")),
                int(meta.get("change", "0")),
                meta.get("complete") == "1",
                str(meta.get("trouble", "")),
                int(meta.get("records", "0")),
                float(meta.get("begun", "0")),
                float(meta.get("ended", "0")),
                int(meta.get("left", "0")),
            )

    # -- runs -----------------------------------------------------------------------------------------

    def changes(self, after: int = 0) -> Changes:
        """The runs written by a flush later than this one; also what has no number, such as the calls of a tool."""
        found = Changes({}, {})
        with _readable():
            rows = self._db.execute(
                "SELECT place, joined, data FROM run WHERE change > ? ORDER BY place", (after,)
            ).fetchall()
            for at, joined, data in rows:
                if data is None:
                    found.gone[at] = joined
                else:
                    found.runs[at] = IndexedRun.unpacked(self._unpack_run(data))
        return found

    def runs(self) -> dict[int, IndexedRun]:
        """All runs of agents, by their place."""
        return {place: run for place, run in self.changes().runs.items() if run.brief.number}

    def _unpack_run(self, data: bytes) -> bytes:
        if self._unpacker is None or not data.startswith(_FRAME):
            row = self._db.execute("SELECT data FROM dictionary").fetchone()
            if row is None:
                return data  # one of the first, of which the dictionary is made
            self._unpacker = zstandard.ZstdDecompressor(dict_data=dictionary(row[0]))
        return _frame(data, self._unpacker) if data.startswith(_FRAME) else data

    def unanalyzed(self) -> dict[int, str]:
        """The numbers of the records that were not analyzed, and why."""
        with _readable():
            rows = self._db.execute("SELECT seq, reason FROM unanalyzed ORDER BY seq").fetchmany(UNANALYZED)
            return {int(seq): str(reason) for seq, reason in rows}

    def failed(self) -> dict[str, str]:
        """The rules that failed, and why."""
        with _readable():
            return {str(rule): str(why) for rule, why in self._db.execute("SELECT rule, reason FROM failed")}

    def keys(self) -> list[WireKey]:
        """The public keys in the traffic."""
        with _readable():
            rows = self._db.execute("SELECT kind, certname, key, time, seq, fingerprint FROM key ORDER BY rowid")
            return [msgspec.convert(row, WireKey) for row in rows]

    # -- records --------------------------------------------------------------------------------------

    def briefs(self, seqs: Iterable[int]) -> Iterator[Brief]:
        """These records, in order; their ``signs`` are with the runs."""
        numbers: dict[int, list[int]] = {}
        for seq in sorted(seqs):
            numbers.setdefault(seq // PAGE, []).append(seq)
        last = self.state().last
        for number, wanted in numbers.items():
            of = {brief.seq: brief for brief in self._page(number, last)}
            yield from (of[seq] for seq in wanted if seq in of)

    def pages(self, *, last: int) -> Iterator[list[Brief]]:
        """All records up to this one, in order, page by page; their ``signs`` are with the runs."""
        with _readable():
            numbers = [number for (number,) in self._db.execute("SELECT number FROM page ORDER BY number")]
        for number in numbers:
            # Pages that are not kept are not worth another one's place: all are read, in order.
            page = self._page(number, last if len(numbers) <= KEPT else 0)
            yield page if not page or page[-1].seq <= last else [brief for brief in page if brief.seq <= last]

    def _page(self, number: int, last: int) -> list[Brief]:
        """A page; it is kept in memory if all of its records are among those up to ``last``, for then it will not be
        written again."""
        if (known := self._pages.get(number)) is not None:
            return known
        with _readable():
            row = self._db.execute("SELECT data FROM page WHERE number = ?", (number,)).fetchone()
            page = _briefs().decode(_frame(row[0], zstandard.ZstdDecompressor())) if row else []
        if last >= (number + 1) * PAGE - 1:
            self._share(page)
            if len(self._pages) >= KEPT:
                del self._pages[next(iter(self._pages))]
            self._pages[number] = page
        return page

    def _share(self, page: list[Brief]) -> None:
        """Replace equal values by one object: a hundred thousand records are in memory at the same time."""
        if len(self._shared) > KEPT * PAGE:
            self._shared = {}
        shared = self._shared.setdefault
        for brief in page:
            for name in _ALIKE:
                if text := getattr(brief, name):
                    setattr(brief, name, shared(text, text))

    def _meta(self) -> dict[str, str]:
        with contextlib.suppress(sqlite3.Error):
            return dict(self._db.execute("SELECT key, value FROM meta").fetchall())
        return {}


def _frame(data: bytes, unpacker: zstandard.ZstdDecompressor) -> bytes:
    if zstandard.frame_content_size(data) > LARGEST:
        raise ValueError("a part of it is too large")
    return unpacker.decompress(data)


@contextlib.contextmanager
def _readable() -> Iterator[None]:
    try:
        yield
    except (sqlite3.Error, msgspec.MsgspecError, zstandard.ZstdError, *guard.DAMAGED) as error:
        closed = isinstance(error, sqlite3.ProgrammingError)  # in a thread, while another index was opened
        if closed or getattr(error, "sqlite_errorcode", None) in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
            raise Busy("The index of the capture is being written.", "Try again in a moment.") from error
        raise CaptureError(f"The index of the capture cannot be read: {error}.", "It will be rebuilt.") from error


_FRAME = b"\x28\xb5\x2f\xfd"
"""How a zstd frame begins; what ``packed`` makes begins otherwise."""
_ALIKE = ("certname", "address", "endpoint", "environment", "method", "target", "reason", "identity", "leg", "master",
          "presented", "master_presented")  # fmt: skip
"""The values that many records have in common."""
_STEPS = msgspec.msgpack.Decoder(list[int])


@cache  # what only reads a capture waits for neither
def _briefs() -> msgspec.msgpack.Decoder[list[Brief]]:
    return msgspec.msgpack.Decoder(list[Brief])


@cache
def _runs() -> msgspec.msgpack.Decoder[tuple[RunBrief, bytes]]:
    return msgspec.msgpack.Decoder(tuple[RunBrief, bytes])
