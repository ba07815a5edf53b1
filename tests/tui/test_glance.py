"""What a wide terminal shows beside the verdict: the phases and findings of the run under the cursor."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.tui.glance import Glance
from tests.tui.screens import look, screen_text, settled, shared_sample

if TYPE_CHECKING:
    from textual.pilot import Pilot

    from inspector.tui.app import Inspector


@pytest.mark.slow
@pytest.mark.parametrize("start", ["", "r"])
def test_a_wide_terminal_shows_the_phases_and_findings_of_the_run_under_the_cursor(start: str) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await settled(pilot, app)
        text = screen_text(app)
        assert "Phases and findings of run 1" in text
        assert "gathers facts" in text
        assert "error S01 no catalog for node1.example" in text
        assert app.screen.query_one(Glance).size.width > 70
        await pilot.resize_terminal(120, 40)
        await settled(pilot, app)
        assert "Phases and findings" not in screen_text(app)
        await pilot.resize_terminal(200, 60)

    look(shared_sample("compile-error"), act, start=start)


@pytest.mark.slow
def test_it_follows_the_cursor() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("home")
        await pilot.pause()
        assert "Phases and findings of run 1" in screen_text(app)
        assert "Nothing was found." in screen_text(app)
        await pilot.press("down")
        await pilot.pause()
        assert "Phases and findings of run 2" in screen_text(app)
        assert "notice P02" in screen_text(app)

    look(shared_sample("out-of-sync"), act)
