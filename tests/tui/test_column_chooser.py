"""The columns of a table are chosen by keys, at once and for the next time."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.tui import columns
from inspector.tui.chooser import ColumnChooser
from inspector.tui.columns import Layout
from tests.tui.screens import SIZES, play, sample, screen_text

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

    from inspector.tui.app import Inspector

NARROW, WIDE = SIZES


def titles(app: Inspector) -> str:
    """The line of titles of the list of runs."""
    return next(line for line in screen_text(app).splitlines() if "outcome" in line or "began" in line)


async def opened(pilot: Pilot[None], app: Inspector, *keys: str) -> ColumnChooser:
    await pilot.press("number_sign", *keys)
    await pilot.pause()
    assert isinstance(app.screen, ColumnChooser)
    return app.screen


@pytest.mark.parametrize("width", [131, 132])
def test_a_hidden_column_says_from_which_terminal_on_it_is_shown(tmp_path: Path, width: int) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await opened(pilot, app)
        assert ("from 132 columns on" in screen_text(app)) is (width < 132)
        await pilot.press("escape")
        assert ("day" in titles(app)) is (width == 132)

    play(sample("out-of-sync", tmp_path), act, (width, 40))


@pytest.mark.parametrize("size", SIZES)
def test_a_column_is_hidden_shown_and_sorted_by(tmp_path: Path, size: tuple[int, int]) -> None:
    path = sample("out-of-sync", tmp_path)

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await opened(pilot, app)
        text = screen_text(app)
        assert "Space show/hide  Enter order  d default  Esc close" in text
        assert all(f"[x] {name}" in text for name in ("run", "agent", "outcome"))
        await pilot.press("space", "down", "space")  # run; day, which needs a wide terminal
        await pilot.press("escape")
        assert not isinstance(app.screen, ColumnChooser)
        assert "run" not in titles(app).split()
        assert ("day" in titles(app)) is (size == NARROW)
        await opened(pilot, app, "end", "up", "up", "enter")
        assert "ascending" in screen_text(app)
        await pilot.press("enter")
        assert "descending" in screen_text(app)
        await pilot.press("escape")
        assert "outcome ▼" in titles(app) or size == WIDE

    async def again(pilot: Pilot[None], app: Inspector) -> None:
        assert "run" not in titles(app).split()
        await opened(pilot, app, "d")
        await pilot.press("escape")
        assert "run" in titles(app).split()

    play(path, act, size)
    assert columns.remembered("Runs.runs") not in (None, Layout())
    play(path, again, size)
    assert columns.remembered("Runs.runs") is None


def test_what_is_not_possible_is_said(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        chooser = await opened(pilot, app)
        rows = chooser._rows
        at = [column.name for column in rows.columns if column.name].index("version")
        await pilot.press(*["down"] * at, "enter")
        assert "The table cannot be sorted by version." in screen_text(app)
        await pilot.press("s")
        assert "The order of this list is fixed." in screen_text(app)
        await pilot.press("home", *["space", "down"] * 12)
        assert "One column has to stay." in screen_text(app)
        await pilot.press("d")
        assert "Space show/hide" in screen_text(app)

    play(sample("first-run", tmp_path), act, WIDE)


def test_a_body_has_no_columns(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        app.open_exchange(1, 1)
        for key in ("3", "]"):
            await pilot.pause()
            await app.workers.wait_for_complete()
            await pilot.press(key)
        await pilot.pause()
        await app.workers.wait_for_complete()
        await pilot.pause()
        await pilot.press("number_sign")
        await pilot.pause()
        assert "This is a text: it has no columns." in screen_text(app)

    play(sample("first-run", tmp_path), act, NARROW)


def test_a_table_of_a_document_is_known_by_its_columns(tmp_path: Path) -> None:
    path = sample("first-run", tmp_path)

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        app.open_exchange(1, 22)
        for _ in range(3):
            await pilot.pause()
            await app.workers.wait_for_complete()
        await opened(pilot, app, "space")
        await pilot.press("escape")
        assert columns.remembered("status resource message seconds time file:line") == Layout(
            hidden=frozenset({"status"})
        )

    play(path, act, WIDE)
