"""A rehearsal in pairs, on the screen."""

from __future__ import annotations

import shutil
from typing import TYPE_CHECKING

import pytest

from inspector.tui.causes import Causes
from inspector.tui.exchange import ExchangeView
from inspector.tui.pairs import PairsView, PairView
from tests.support.places import SAMPLES
from tests.tui.screens import play, screen_text, settled

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

    from inspector.tui.app import Inspector


@pytest.fixture
def made(tmp_path: Path) -> Path:
    shutil.copytree(SAMPLES / "upgrade", tmp_path / "upgrade")
    return tmp_path / "upgrade/rehearsed.sqlite"


@pytest.mark.slow
def test_it_begins_with_the_pairs(made: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await settled(pilot, app)
        view = app.screen
        assert isinstance(view, PairsView)
        assert [pair.state for pair in view.rows.items] == ["no catalog", "changed", "changed", "the same"]
        text = screen_text(app)
        assert "4 nodes: 1 no catalog, 2 changed, 1 the same" in text
        assert "automatically coerced" in " ".join(text.split())
        await pilot.press("d")
        assert len(view.rows.items) == 3
        await pilot.press("escape")
        await settled(pilot, app)
        assert isinstance(app.screen, Causes)
        await pilot.press("p")
        await settled(pilot, app)
        assert isinstance(app.screen, PairsView)

    play(made, act, start="")


@pytest.mark.slow
def test_a_pair_and_its_record(made: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await settled(pilot, app)
        await pilot.press("down")
        assert "the same on web2.example" in screen_text(app)
        await pilot.press("enter")
        await settled(pilot, app)
        view = app.screen
        assert isinstance(view, PairView)
        assert [line.section for line in view.rows.items] == ["catalog", "catalog", "catalog", "files"]
        assert "web1.example as recorded, and at new.example:8140" in screen_text(app)
        await pilot.press("enter")
        await settled(pilot, app)
        assert isinstance(app.screen, ExchangeView)
        assert app.screen.seq == 1
        await pilot.press("escape", "end", "enter")
        await settled(pilot, app)
        assert "modules/web/motd" in screen_text(app)

    play(made, act, start="")


@pytest.mark.slow
def test_without_a_catalog_enter_shows_why(made: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await settled(pilot, app)
        await pilot.press("enter")
        await settled(pilot, app)
        assert isinstance(app.screen, ExchangeView)
        assert screen_text(app).startswith(" 9 ")

    play(made, act, start="")


@pytest.mark.slow
def test_the_recorded_runs_are_missing(made: Path) -> None:
    made.with_name("recorded.sqlite").unlink()

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await settled(pilot, app)
        assert "whose runs were rehearsed, is not there" in " ".join(screen_text(app).split())

    play(made, act, start="")


def test_other_captures_have_none(tmp_path: Path) -> None:
    shutil.copy(SAMPLES / "first-run.sqlite", tmp_path)

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await settled(pilot, app)
        await pilot.press("p")
        assert isinstance(app.screen, Causes)
        assert "Rehearsal: not possible here." in screen_text(app)

    play(tmp_path / "first-run.sqlite", act, start="")
