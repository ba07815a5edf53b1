"""The lines of the first screen say how each group fares."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.runs.examples import catalog, plugins, report, talk
from inspector.tui.rows import Rows
from tests.support.captures import save
from tests.tui.screens import indexed, play

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

    from inspector.tui.app import Inspector


def test_what_went_well_with_notices_counts_them(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        rows = app.screen.query_one(Rows)
        assert rows.plain(rows.items[0]).startswith("went well; 1 notice  ")

    records = talk(plugins(), catalog(), report(noop=True))
    play(indexed(save(tmp_path / "noop.sqlite", *records)), act, start="")
