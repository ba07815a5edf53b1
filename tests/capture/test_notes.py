"""Marks and notes: kept beside the capture, never lost, never on a wrong record."""

from __future__ import annotations

import hashlib
import json
import multiprocessing
import os
import shutil
from typing import TYPE_CHECKING

import pytest

from inspector.capture.notes import Notes
from inspector.errors import InspectorError
from tests.support import places

if TYPE_CHECKING:
    from pathlib import Path

SAMPLES = places.SAMPLES


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    copy = tmp_path / "capture.sqlite"
    shutil.copy(SAMPLES / "out-of-sync.sqlite", copy)
    return copy


def test_they_stay_beside_the_capture_and_leave_it_alone(capture: Path) -> None:
    before = hashlib.sha256(capture.read_bytes()).digest()
    notes = Notes.open(capture)
    assert notes.toggle("record", 3) is True
    notes.set_note("run", 1, "  asked the network team [bold]x[/] \x1b[2J ")
    again = Notes.open(capture)
    assert (again.marked("record", 3), again.marked("run", 3), again.marked("record", 4)) == (True, False, False)
    assert again.note("run", 1) == "asked the network team [bold]x[/] \x1b[2J"
    assert again.note("record", 1) == ""
    assert [(note.kind, note.seq, note.marked, note.stale) for note in again.all()] == [
        ("run", 1, False, False),
        ("record", 3, True, False),
    ]
    assert hashlib.sha256(capture.read_bytes()).digest() == before
    assert {path.name for path in capture.parent.iterdir()} == {"capture.sqlite", "capture.sqlite.notes.json"}


def test_the_file_is_for_people_and_for_nobody_else(capture: Path) -> None:
    notes = Notes.open(capture)
    notes.set_note("record", 2, "näh")
    assert notes.path.name == "capture.sqlite.notes.json"
    assert notes.path.stat().st_mode & 0o777 == 0o600
    text = notes.path.read_text()
    assert len(text.splitlines()) > 5
    assert "näh" in text
    (document,) = json.loads(text)["notes"]
    assert (document["kind"], document["seq"], document["note"]) == ("record", 2, "näh")


def test_taking_everything_away_leaves_nothing(capture: Path) -> None:
    notes = Notes.open(capture)
    notes.toggle("record", 2)
    notes.set_note("record", 2, "x")
    assert notes.toggle("record", 2) is False
    assert notes.note("record", 2) == "x"
    notes.set_note("record", 2, " ")
    assert notes.all() == []
    assert json.loads(notes.path.read_text())["notes"] == []


def test_of_a_replaced_capture_they_are_stale(capture: Path) -> None:
    notes = Notes.open(capture)
    notes.toggle("record", 3)
    notes.set_note("run", 1, "old")
    other = capture.with_name("other")
    shutil.copy(SAMPLES / "compile-error.sqlite", other)
    other.replace(capture)
    assert notes.refresh() is True
    assert notes.marked("record", 3) is False
    assert notes.note("run", 1) == ""
    assert [(note.seq, note.stale) for note in notes.all()] == [(1, True), (3, True)]
    notes.set_note("run", 1, "new")  # beside the old one, not over it
    again = Notes.open(capture)
    assert again.note("run", 1) == "new"
    assert [(note.text, note.stale) for note in again.all()] == [("new", False), ("old", True), ("", True)]
    shutil.copy(SAMPLES / "out-of-sync.sqlite", other)
    other.replace(capture)
    assert Notes.open(capture).note("run", 1) == "old"


def test_two_inspectors_see_and_keep_each_others(capture: Path) -> None:
    one, other = Notes.open(capture), Notes.open(capture)
    one.toggle("record", 1)
    other.toggle("record", 2)
    one.set_note("record", 3, "three")
    assert one.marked("record", 2)
    assert other.refresh() is True
    assert other.note("record", 3) == "three"
    assert other.refresh() is False
    assert [note.seq for note in Notes.open(capture).all()] == [1, 2, 3]


def _mark(capture: Path, seqs: list[int]) -> None:
    notes = Notes.open(capture)
    for seq in seqs:
        notes.toggle("record", seq)


@pytest.mark.slow
def test_none_is_lost_when_several_write_at_once(capture: Path) -> None:
    spawn = multiprocessing.get_context("spawn")
    writers = [spawn.Process(target=_mark, args=(capture, list(range(first, 20, 4)))) for first in (1, 2, 3, 4)]
    for writer in writers:
        writer.start()
    for writer in writers:
        writer.join(60)
    assert [writer.exitcode for writer in writers] == [0, 0, 0, 0]
    assert [note.seq for note in Notes.open(capture).all()] == list(range(1, 20))


WALL = b'{"version": 1, "notes": [{"kind": "wall", "seq": 1, "digest": null}]}'


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"\xff", b'{"version": 2, "notes": []}', b"[" * 100_000, WALL])
def test_what_can_not_be_read_is_reported_and_never_written_over(capture: Path, content: bytes) -> None:
    notes = Notes.open(capture)
    notes.path.write_bytes(content)
    notes = Notes.open(capture)
    assert notes.error is not None
    assert "Cannot read the notes" in notes.error.message
    assert notes.all() == []
    with pytest.raises(InspectorError, match="Cannot read the notes"):
        notes.toggle("record", 1)
    assert notes.path.read_bytes() == content


def test_no_link_is_followed(capture: Path) -> None:
    elsewhere = capture.with_name("elsewhere")
    notes = Notes.open(capture)
    notes.path.symlink_to(elsewhere)
    with pytest.raises(InspectorError, match="it is a link"):
        notes.toggle("record", 1)
    assert not elsewhere.exists()


def test_a_directory_that_can_not_be_written_is_one_clear_error(capture: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    notes = Notes.open(capture)
    real = os.open

    def refuse(path: object, flags: int, *rest: int) -> int:
        if flags & os.O_CREAT:
            raise PermissionError(13, "Permission denied", str(path))
        return real(path, flags, *rest)  # type: ignore[arg-type]

    monkeypatch.setattr(os, "open", refuse)  # root may write everywhere
    with pytest.raises(InspectorError) as caught:
        notes.toggle("record", 1)
    assert caught.value.message == f"Cannot write the notes to {notes.path}: Permission denied."
    assert caught.value.hint
    assert not notes.marked("record", 1)


def test_what_is_not_in_the_capture_can_not_be_marked(capture: Path) -> None:
    with pytest.raises(InspectorError, match="has no record 4711"):
        Notes.open(capture).toggle("record", 4711)


def test_a_number_that_no_record_can_have_costs_no_other_note(capture: Path) -> None:
    notes = Notes.open(capture)
    notes.toggle("record", 3)
    document = json.loads(notes.path.read_text())
    document["notes"].append({"kind": "record", "seq": 10**30, "digest": "0", "note": "x"})
    notes.path.write_text(json.dumps(document))
    again = Notes.open(capture)
    assert (again.error, again.marked("record", 3), again.note("record", 10**30)) == (None, True, "")


def test_a_pipe_is_not_waited_for(capture: Path) -> None:
    os.mkfifo(capture.with_name(f"{capture.name}.notes.json"))
    error = Notes.open(capture).error
    assert error
    assert "it is not a regular file" in error.message
