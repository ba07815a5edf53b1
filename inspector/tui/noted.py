"""The marks and notes of a capture: a list of them, which leads to what is marked."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from inspector.summaries import wording
from inspector.text import clean
from inspector.tui.chooser import Choice, Chooser

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspector.capture.notes import Note
    from inspector.summaries.marks import Marks
    from inspector.summaries.source import Source
    from inspector.tui.view import View


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


def choose(view: View) -> None:
    """List what is marked or has a note, to go to one of them or to remove it."""
    inspector = view.inspector
    listed = {line.name: line for line in noted(inspector.source, inspector.marks)}
    if not listed:
        view.show_message("Nothing is marked yet: m marks a run or a record, M writes a note.")
        return

    def go(name: str | None) -> None:
        if name is not None:
            line = listed[name]
            inspector.open_run(line.run, line.record) if line.run else inspector.open_exchange(None, line.note.seq)

    def remove(name: str) -> None:
        view.attempt(lambda: inspector.marks.remove(listed[name].note))

    choices = [Choice(line.name, line.about) for line in listed.values()]
    view.app.push_screen(Chooser("Marks and notes", choices, remove=remove), go)
