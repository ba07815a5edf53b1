"""Marks and notes for the views: a run is identified by the number of its first record, which never changes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.capture.notes import Notes
from inspector.errors import InspectorError

if TYPE_CHECKING:
    from inspector.capture.notes import Note
    from inspector.summaries.source import Source


class Marks:
    """The marks and notes of a capture."""

    def __init__(self, source: Source, *, temporary: bool = False) -> None:
        """``temporary``: the capture is gone when it is closed."""
        self._source, self._temporary = source, temporary
        self._notes = Notes.open(source.path)

    def begin_note(self) -> None:
        """Make sure that a note which is to be written stays. Raises InspectorError."""
        if self._temporary:
            raise InspectorError(
                "These captures are read as one until this is closed: a note would be lost.",
                "`puppet-inspector captures merge` makes one that stays.",
            )

    def _first(self, run: int) -> int:
        return next(iter(self._source.seqs(run)), 0)

    def marked_run(self, run: int) -> bool:
        """Whether a run is marked."""
        return self._notes.marked("run", self._first(run))

    def toggle_run(self, run: int) -> None:
        """Mark a run, or remove its mark. Raises InspectorError."""
        self._notes.toggle("run", self._first(run))

    def note_of_run(self, run: int) -> str:
        """The note on a run; empty if there is none."""
        return self._notes.note("run", self._first(run)) or ""

    def note_run(self, run: int, text: str) -> None:
        """Set the note on a run; an empty text removes it. Raises InspectorError."""
        self._notes.set_note("run", self._first(run), text)

    def all_notes(self) -> list[Note]:
        """The marks and notes of this capture, in the order of their records."""
        return sorted((note for note in self._notes.all() if not note.stale), key=lambda note: (note.seq, note.kind))

    def remove(self, note: Note) -> None:
        """Remove a mark and its note. Raises InspectorError."""
        if note.text:
            self._notes.set_note(note.kind, note.seq, "")
        if note.marked:
            self._notes.toggle(note.kind, note.seq)

    def refresh(self) -> bool:
        """Read what another inspector noted; True if there is something new."""
        return self._notes.refresh()

    @property
    def trouble(self) -> str:
        """Why notes cannot be read, or how many belong to another capture; empty if there is no problem."""
        stale = sum(note.stale for note in self._notes.all())
        of = f"{stale} note{'s are' if stale > 1 else ' is'} about another capture that had this name" if stale else ""
        return str(self._notes.error or of)

    def describe(self, seq: int) -> str:
        """A record's mark and note in one line; empty if it has none."""
        mark, note = "* " if self.marked(seq) else "", self.note_of(seq)
        return f"{mark}record {seq}{': ' if note else ' is marked'}{note}" if mark or note else ""

    def marked(self, seq: int) -> bool:
        """Whether a record is marked."""
        return self._notes.marked("record", seq)

    def toggle(self, seq: int) -> None:
        """Mark a record, or remove its mark. Raises InspectorError."""
        self._notes.toggle("record", seq)

    def note_of(self, seq: int) -> str:
        """The note on a record; empty if there is none."""
        return self._notes.note("record", seq) or ""

    def note(self, seq: int, text: str) -> None:
        """Set the note on a record; an empty text removes it. Raises InspectorError."""
        self._notes.set_note("record", seq, text)
