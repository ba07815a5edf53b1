"""The list of marks and notes: what it shows, where it leads, and how one is removed."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.summaries.marks import Marks
from inspector.summaries.source import Source
from inspector.tui.noted import noted
from inspector.tui.run import RunView
from tests.tui.screens import play, sample, screen_text

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

    from inspector.tui.app import Inspector


def test_each_line_names_what_is_marked_and_the_note(tmp_path: Path) -> None:
    with Source(sample("compile-error", tmp_path)) as source:
        marks = Marks(source)
        assert list(noted(source, marks)) == []
        marks.toggle(4)
        marks.note(2, "look \x1b[2J here")
        marks.toggle_run(1)
        lines = {line.name: line for line in noted(source, marks)}
        assert list(lines) == ["run 1", "record 2", "record 4"]
        assert lines["run 1"].about == "node1.example: failed"
        assert lines["record 2"].about.startswith("look \\x1b[2J here · node1.example")
        assert "500" in lines["record 4"].about
        assert [(line.run, line.record) for line in lines.values()] == [(1, None), (1, 2), (1, 4)]
        for line in lines.values():
            marks.remove(line.note)
        assert list(noted(source, marks)) == []


@pytest.mark.slow
def test_the_list_leads_to_what_is_marked_and_removes_it(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("A")
        await pilot.pause()
        assert "Nothing is marked yet" in screen_text(app)
        app.marks.toggle(3)
        app.marks.note(4, "why?")
        await pilot.press("A", "down", "enter")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert isinstance(app.screen, RunView)
        assert app.screen.record() == 4
        assert "why?" in screen_text(app)
        await pilot.press("A", "delete", "escape")
        await pilot.pause()
        assert [note.seq for note in app.marks.all_notes()] == [4]

    play(sample("compile-error", tmp_path), act)


def test_no_note_is_taken_that_would_be_lost(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        app.marks = Marks(app.source, temporary=True)
        await pilot.press("M")
        await pilot.pause()
        assert "a note would be lost" in screen_text(app)
        await pilot.press("enter")
        await app.workers.wait_for_complete()
        await pilot.press("M")
        await pilot.pause()
        assert "a note would be lost" in screen_text(app)
        await pilot.press("m")
        assert len(app.marks.all_notes()) == 1, "two marks are needed to compare"

    play(sample("compile-error", tmp_path), act)
