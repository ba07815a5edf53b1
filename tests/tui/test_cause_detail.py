"""A line of the first screen in full: it speaks of its own nodes only."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.runs.examples import catalog, plugins, report, talk
from inspector.tui.cause_lines import LATEST
from inspector.tui.causes import Causes
from inspector.tui.rows import Rows
from tests.support.captures import save
from tests.support.nodes import refused, well
from tests.tui.screens import indexed, play, screen_text

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

    from inspector.model import Record
    from inspector.tui.app import Inspector

NOOP = talk(plugins(), catalog(), report(noop=True), certname="web9.example", address="192.0.2.9", after=60)
"""A run that went well, with a notice."""


@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ((well(1),), "Nothing is wrong: the latest run of web1.example went well."),
        ((well(1), well(2)), "Nothing is wrong: the latest run of each went well."),
        ((well(1), refused(1)), "The latest run of web1.example went well."),
        ((well(1), well(2), refused(1)), "The latest run of each of these 2 nodes went well."),
        ((well(1), NOOP), "The latest run of each went well; 1 notice (F)."),
        ((NOOP,), "The latest run of web9.example went well; 1 notice (F)."),
    ],
)
def test_what_went_well_is_said_of_its_own_nodes_with_their_findings(
    tmp_path: Path, parts: tuple[list[Record], ...], sentence: str
) -> None:
    records = sorted((record for part in parts for record in part), key=lambda record: record.time)

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        causes = app.screen
        assert isinstance(causes, Causes)
        rows = causes.query_one(Rows)
        rows.move_to(next(at for at, line in enumerate(rows.items) if line.incident is None))
        await pilot.pause()
        shown = " ".join(screen_text(app).split())
        assert sentence in shown
        assert shown.count("Nothing is wrong") == sentence.count("Nothing is wrong")

    play(indexed(save(tmp_path / "some.sqlite", *records)), act, start="")


def test_what_went_well_shows_its_latest_runs_and_what_took_the_time(tmp_path: Path) -> None:
    runs = [record for at in range(12) for record in well(1, after=900 * at)]

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        lines = screen_text(app).splitlines()
        listed = [line for line in lines if " complete " in line]
        assert len(listed) == LATEST
        assert "run 12 " in listed[0]
        assert any("of 12 runs: median" in line and "most time in phase" in line for line in lines)
        assert any("C certificates" in line for line in lines)

    play(indexed(save(tmp_path / "well.sqlite", *runs)), act, (120, 40), start="")
