"""What is under way while a capture is written: the table ``present`` has one row of each process that records into it.

Each holds a lock on a byte of the file -wal; its place is the number of the row. The kernel releases it however the
process ends, so nobody has to guess from the age of a row whether its writer is alive, and a copy of the file is
nobody's. SQLite itself locks nothing in that file.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import struct
from typing import TYPE_CHECKING, Literal

import msgspec
import zstandard

from inspector import clocks
from inspector.capture import guard, paths
from inspector.model import NOTHING_OPEN, OpenConnection, OpenRequest, Present

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    type Recording = Literal["open", "ended", "cut off"]

REQUESTS, CONNECTIONS = 200, 1000
"""Requests and connections that a row lists at most."""
TEXT = 500
"""Characters of a target, or of any other text in it."""
SILENCE = 30.0
"""Seconds after which a writer that has something under way should have written: its disk may be full."""
WRITERS = 256
"""Processes that may record into one capture."""
LARGEST = 2**22
"""Bytes of a row, unpacked."""

_FLOCK = struct.Struct("hhqqi0q")
"""A lock (fcntl.h): type, whence, start, length, process."""


class _Row(msgspec.Struct):
    """The packed JSON of a row."""

    requests: tuple[OpenRequest, ...] = ()
    connections: tuple[OpenConnection, ...] = ()
    more_requests: int = 0
    more_connections: int = 0


_ROW = msgspec.json.Decoder(_Row)


class PresentTable:
    """Writes and reads the table ``present``. Its caller begins and ends the transactions."""

    def __init__(self, db: sqlite3.Connection, path: Path) -> None:
        self._db = db
        self._wal = paths.companion(path.resolve(), "-wal")
        self._descriptor: int | None = None
        self._writer = 0

    def write(self, present: Present) -> None:
        """Write what is under way now; with ``recording`` ``ended``: that nothing more comes. Raises sqlite3.Error or
        OSError."""
        if self._descriptor is None:
            self._descriptor, self._writer = _claimed(self._wal)
            for (writer,) in self._db.execute("SELECT writer FROM present").fetchall():
                ours = writer == self._writer or (0 <= writer < WRITERS and _locked(self._descriptor, writer))
                if not ours:
                    self._db.execute("DELETE FROM present WHERE writer = ?", (writer,))  # of an earlier recording
        row = _Row(
            present.requests[:REQUESTS],
            present.connections[:CONNECTIONS],
            present.more_requests + max(0, len(present.requests) - REQUESTS),
            present.more_connections + max(0, len(present.connections) - CONNECTIONS),
        )
        self._db.execute(
            "INSERT OR REPLACE INTO present VALUES (?, ?, ?, ?)",
            (
                self._writer,
                present.time,
                present.recording == "ended",
                zstandard.compress(msgspec.json.encode(row), level=1),
            ),
        )

    def read(self, now: float, *, continued: bool) -> Present:
        """Return what is under way ``now``, or what was when the recording ended; what is damaged tells nothing.

        ``continued``: another capture continues this one, so its recording has ended. Raises sqlite3.Error.
        """
        if self._db.execute("SELECT 1 FROM sqlite_master WHERE name = 'present'").fetchone() is None:
            return NOTHING_OPEN  # of an earlier version
        rows = self._db.execute(
            "SELECT writer, time, ended, CASE WHEN length(data) <= ? THEN data END FROM present LIMIT ?",
            (LARGEST, WRITERS + 1),
        ).fetchall()
        try:
            return together(list(self._presents(rows, now, continued=continued)))
        except (*guard.DAMAGED, msgspec.MsgspecError, zstandard.ZstdError):
            return NOTHING_OPEN

    def _presents(
        self, rows: Sequence[tuple[int, float, int, bytes]], now: float, *, continued: bool
    ) -> Iterator[Present]:
        if len(rows) > WRITERS:
            raise ValueError("too many writers")
        with _opened(self._wal) as descriptor:
            for writer, time, ended, data in rows:
                row = _ROW.decode(zstandard.decompress(data, max_output_size=LARGEST))
                _check(writer, time, row)
                recording: Recording = "ended" if ended or continued else "cut off"
                if recording == "cut off" and descriptor is not None and _locked(descriptor, writer):
                    recording = "open"
                    # What changes is written within a second: it still holds, unless the disk is full.
                    if now - time < SILENCE or not (row.requests or row.connections):
                        time = max(now, time)
                yield Present(recording, time, row.requests, row.connections, row.more_requests, row.more_connections)

    def close(self) -> None:
        """Release the lock; only after the database is closed, else a recording that ends would look cut off."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


def together(presents: Sequence[Present]) -> Present:
    """Return what several writers have under way: those that are alive, or else all."""
    chosen = [present for present in presents if present.recording == "open"] or presents
    if not chosen:
        return NOTHING_OPEN
    recordings = {present.recording for present in chosen}
    return Present(
        recordings.pop() if len(recordings) == 1 else "cut off",
        max(present.time for present in chosen),
        tuple(sorted((each for present in chosen for each in present.requests), key=lambda each: each.time)),
        tuple(sorted((each for present in chosen for each in present.connections), key=lambda each: each.connected)),
        sum(present.more_requests for present in chosen),
        sum(present.more_connections for present in chosen),
    )


def _check(writer: int, time: float, row: _Row) -> None:
    """Raise ValueError if a row has values that no proxy writes."""
    times = [time, *(each.time for each in row.requests)]
    times += [moment for each in row.connections for moment in (each.connected, each.last)]
    texts = [text for each in row.requests for text in (each.leg, each.method, each.target)]
    texts += [text or "" for each in row.connections for text in (each.leg, each.address, each.certname)]
    counts = row.more_requests, row.more_connections
    if (
        not 0 <= writer < WRITERS
        or len(row.requests) > REQUESTS
        or len(row.connections) > CONNECTIONS
        or not all(0 <= each <= clocks.LATEST for each in times)
        or not all(0 <= each < 2**31 for each in counts)
        or max(map(len, texts), default=0) > TEXT
    ):
        raise ValueError("out of range")


# -- locks ------------------------------------------------------------------------------------------------


def _claimed(path: Path) -> tuple[int, int]:
    """Lock the first byte that no process has locked; return the descriptor that holds the lock, and the byte's place.
    Raises OSError."""
    descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    for place in range(WRITERS):
        with contextlib.suppress(BlockingIOError, PermissionError):
            # Of the open file, not of the process: to close another descriptor of it would release those.
            fcntl.fcntl(descriptor, fcntl.F_OFD_SETLK, _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, place, 1, 0))
            return descriptor, place
    os.close(descriptor)
    raise OSError("too many processes write the capture")


def _locked(descriptor: int, place: int) -> bool:
    """Whether a process holds the lock of a writer; one's own, of the same descriptor, does not count."""
    asked = _FLOCK.pack(fcntl.F_WRLCK, os.SEEK_SET, place, 1, 0)
    kind, *_ = _FLOCK.unpack(fcntl.fcntl(descriptor, fcntl.F_OFD_GETLK, asked))
    return bool(kind != fcntl.F_UNLCK)


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[int | None]:
    """Open a file to ask for locks; None if there is none."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        yield None
        return
    try:
        yield descriptor
    finally:
        os.close(descriptor)
