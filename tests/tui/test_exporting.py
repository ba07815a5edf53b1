"""The report of a run, from the terminal inspector."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from textual.widgets import Input

from tests.tui.screens import look, screen_text, settled, shared_sample, type_in

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

    from inspector.tui.app import Inspector

IN_LIST, IN_RUN, IN_CAUSES = ("home",), ("home", "enter"), ("escape", "home")


@pytest.mark.slow
@pytest.mark.parametrize("way", [IN_LIST, IN_RUN, IN_CAUSES])
def test_the_report_of_the_selected_run_is_written(tmp_path: Path, way: tuple[str, ...]) -> None:
    target = tmp_path / "out.html"

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press(*way)
        await settled(pilot, app)
        await pilot.press("E")
        asked = app.screen.query_one(Input)
        assert asked.value == "compile-error-run-1.html"
        asked.value = str(target)
        await pilot.press("enter")
        await settled(pilot, app)
        assert "wrote" in screen_text(app)
        assert "out.html" in screen_text(app)

    look(shared_sample("compile-error"), act)
    assert "no role for this node" in target.read_text()
    assert target.stat().st_mode & 0o777 == 0o600


@pytest.mark.slow
def test_what_can_be_no_file_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "taken.html").write_text("mine")

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        for typed in ("", "no/such/directory/x.html", "taken.html", "a\0b"):
            await pilot.press("home")
            await type_in(pilot, app, "E", typed)
            shown = screen_text(app)
            assert "Choose another" in shown or "no report was written: Cannot write" in shown

    look(shared_sample("compile-error"), act)
    assert (tmp_path / "taken.html").read_text() == "mine"
