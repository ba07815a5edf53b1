"""The marks and notes of a capture as lines of a list."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from inspector.summaries import wording
from inspector.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspector.capture.notes import Note
    from inspector.summaries.marks import Marks
    from inspector.summaries.source import Source


class NotedLine(NamedTuple):
    """A marked run or record."""

    name: str
    about: str
    """The note, and what it is about."""
    note: Note
    run: int | None
    """The number of the run that it is in."""
    record: int | None
    """The record; None: it is about the run."""


def noted(source: Source, marks: Marks) -> Iterator[NotedLine]:
    """Yield what is marked or has a note, in the order of the records."""
    notes = marks.all_notes()
    seqs = [note.seq for note in notes]
    briefs, owners = source.briefs_of(seqs), source.owners(seqs)
    for note in notes:
        owner, brief = owners.get(note.seq), briefs.get(note.seq)
        number = owner.number if owner and owner.number else None
        text = f"{clean(note.text)} · " if note.text else ""
        if note.kind == "run" and owner is not None and number:
            about = f"{text}{clean(owner.name)}: {owner.ending}"
            yield NotedLine(f"run {owner.label}", about, note, number, None)
        elif note.kind == "record":
            line = "  ".join(cell for cell in wording.row(brief, owner)[1:6]) if brief else ""
            yield NotedLine(f"record {note.seq}", f"{text}{line}", note, number, note.seq)
