"""Marks and notes of users about a capture's records and runs, in a file beside it: ``CAPTURE.notes.json``.

The capture itself is never changed. A record is identified by its number, a run by the number of its first record, and
each note contains the digest of that record: if the capture is replaced by another one, its notes are stale, and are
not shown for records of the new one.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import sqlite3
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, Self

import msgspec

from inspector import inputs
from inspector.capture.store import Capture
from inspector.errors import CaptureError, InspectorError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

type Subject = Literal["record", "run"]

VERSION = 1
"""``version`` in the file; a file of another version is neither read nor overwritten."""


_LAST = 2**63 - 1
"""The largest number that a record can have."""


class _NoteEntry(msgspec.Struct, omit_defaults=True):
    """A note as it is in the file."""

    kind: Subject
    seq: int
    digest: str | None
    """The digest of the record with that number (``Capture.digest``)."""
    marked: bool = False
    note: str = ""


class _File(msgspec.Struct):
    version: int
    notes: list[_NoteEntry]


@dataclass(frozen=True, slots=True)
class Note:
    """A mark, a note, or both."""

    kind: Subject
    seq: int
    """The record's number; of a run, the number of its first record."""
    marked: bool
    text: str
    """As the user wrote it: apply ``text.clean`` before it is shown."""
    stale: bool
    """Whether the record with that number is not the one that the note was made about."""


class Notes:
    """The marks and notes of one capture. Several inspectors may change them at the same time."""

    def __init__(self, capture: Path) -> None:
        self.path = capture.with_name(f"{capture.name}.notes.json")
        self.error: InspectorError | None = None
        """Why the existing notes cannot be read; while that is so, changing one raises it."""
        self._capture = capture
        self._entries: list[_NoteEntry] = []
        self._known: dict[tuple[Subject, int], _NoteEntry] = {}
        self._file_state: tuple[int, ...] = ()

    @classmethod
    def open(cls, capture: Path) -> Self:
        """Read the notes beside a capture. Never raises: see ``error``."""
        notes = cls(capture)
        notes.refresh()
        return notes

    def refresh(self) -> bool:
        """Read again what another inspector may have changed; return whether anything changed."""
        state = *_state(self.path), *_state(self._capture)[:2]
        if state == self._file_state:
            return False
        self._file_state = state
        try:
            self._take(self._read())
            self.error = None
        except InspectorError as error:
            self._take([])
            self.error = error
        return True

    # -- reading ----------------------------------------------------------------------------------------

    def marked(self, kind: Subject, seq: int) -> bool:
        """Whether a record, or the run that begins with it, is marked."""
        found = self._known.get((kind, seq))
        return found is not None and found.marked

    def note(self, kind: Subject, seq: int) -> str:
        """Return the note about a record or run as it was written; empty without one."""
        found = self._known.get((kind, seq))
        return found.note if found else ""

    def all(self) -> list[Note]:
        """Return all notes by number, stale ones too."""
        current = {id(entry) for entry in self._known.values()}
        notes = [
            Note(entry.kind, entry.seq, entry.marked, entry.note, id(entry) not in current) for entry in self._entries
        ]
        return sorted(notes, key=lambda note: (note.seq, note.kind, note.stale))

    # -- changes ----------------------------------------------------------------------------------------

    def toggle(self, kind: Subject, seq: int) -> bool:
        """Set or remove a mark; return whether it is set now. Raises InspectorError."""
        wanted = not self.marked(kind, seq)

        def mark(entry: _NoteEntry) -> None:
            entry.marked = wanted

        self._change(kind, seq, mark)
        return wanted

    def set_note(self, kind: Subject, seq: int, text: str) -> None:
        """Replace the note about a record or run; an empty text removes it. Raises InspectorError."""

        def write(entry: _NoteEntry) -> None:
            entry.note = text.strip()

        self._change(kind, seq, write)

    def _change(self, kind: Subject, seq: int, change: Callable[[_NoteEntry], None]) -> None:
        digest = self._digests({seq}).get(seq)
        if digest is None:
            raise InspectorError(
                f"{self._capture} has no record {seq}.", "Only records and runs of the capture can be marked."
            )
        with self._locked():
            entries = self._read()
            found = next((item for item in entries if (item.kind, item.seq, item.digest) == (kind, seq, digest)), None)
            if found is None:
                found = _NoteEntry(kind, seq, digest)
                entries.append(found)
            change(found)
            entries = sorted((entry for entry in entries if entry.marked or entry.note), key=lambda entry: entry.seq)
            self._write(entries)
        self._take(entries)
        self.error = None
        self._file_state = *_state(self.path), *_state(self._capture)[:2]

    # -- the file ---------------------------------------------------------------------------------------

    def _take(self, entries: list[_NoteEntry]) -> None:
        digests = self._digests({entry.seq for entry in entries}) if entries else {}
        self._entries = entries
        self._known = {(entry.kind, entry.seq): entry for entry in entries if entry.digest == digests.get(entry.seq)}

    def _digests(self, seqs: set[int]) -> dict[int, str | None]:
        with contextlib.suppress(CaptureError, sqlite3.Error), Capture.open(self._capture) as capture:
            return {seq: capture.digest(seq) for seq in seqs if 0 < seq <= _LAST}
        return {}

    def _read(self) -> list[_NoteEntry]:
        try:
            # Not through a link: its target is not a file of notes.
            data = inputs.read(self.path, links=False)
        except FileNotFoundError:
            return []
        except OSError as error:
            raise _unreadable(self.path, "it is a link" if error.errno == errno.ELOOP else error.strerror) from error
        try:
            found = msgspec.json.decode(data, type=_File)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise _unreadable(self.path, str(error)) from error
        if found.version != VERSION:
            raise _unreadable(self.path, f"unknown version {found.version}")
        return found.notes

    def _write(self, entries: list[_NoteEntry]) -> None:
        """Replace the file at once: a reader sees either the old notes or the new ones."""
        written = self.path.with_name(f".{self.path.name}.{os.getpid()}")
        text = msgspec.json.format(msgspec.json.encode(_File(VERSION, entries)), indent=2) + b"\n"
        try:
            with contextlib.suppress(FileNotFoundError):
                written.unlink()  # left by a process that was killed
            descriptor = os.open(written, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
            with os.fdopen(descriptor, "wb") as file:
                file.write(text)
                file.flush()
                os.fsync(file.fileno())
            written.replace(self.path)
        except OSError as error:
            with contextlib.suppress(OSError):
                written.unlink()
            raise _unwritable(self.path, error) from error

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Lock the notes of this directory against other writers. The directory is locked, as every change replaces the
        file."""
        try:
            descriptor = os.open(self.path.parent, os.O_RDONLY | os.O_DIRECTORY)
        except OSError as error:
            raise _unwritable(self.path, error) from error
        try:
            with contextlib.suppress(OSError):  # some network file systems cannot lock directories
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            yield
        finally:
            os.close(descriptor)


def _state(path: Path) -> tuple[int, int, int]:
    try:
        status = path.lstat()
    except OSError:
        return 0, 0, 0
    return status.st_dev, status.st_ino, status.st_mtime_ns


def _unreadable(path: Path, why: str | None) -> InspectorError:
    return InspectorError(f"Cannot read the notes in {path}: {why}.", "Move the file away to start without notes.")


def _unwritable(path: Path, error: OSError) -> InspectorError:
    return InspectorError(
        f"Cannot write the notes to {path}: {error.strerror}.", "Copy the capture to a directory of your own."
    )
