"""The small list to choose from, with keys and with the mouse."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from textual.app import App
from textual.widgets import Static

from inspector.tui import columns
from inspector.tui.chooser import Choice, Chooser, ColumnChooser
from inspector.tui.columns import Layout
from inspector.tui.rows import Rows
from tests.tui.screens import SIZES, look, play, screen_text, shared_sample

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from textual.pilot import Pilot

    from inspector.tui.app import Inspector

CHOICES = [Choice("a", "the first"), Choice("b\x1b[2J", "the second"), Choice("c", "the third")]


def chosen(
    act: Callable[[Pilot[None]], Awaitable[None]], chooser: Chooser, size: tuple[int, int] = (80, 24)
) -> list[str | None]:
    found: list[str | None] = []

    async def go() -> None:
        app: App[None] = App()
        async with app.run_test(size=(80, 24)) as pilot:
            app.push_screen(chooser, found.append)
            await pilot.pause()
            await act(pilot)
            await pilot.pause()

    asyncio.run(go())
    return found


def test_what_a_line_is_can_be_read_whole_where_the_list_has_no_room() -> None:
    long = f"{'many words ' * 20}and the last"

    async def cut(pilot: Pilot[None]) -> None:
        about = pilot.app.screen.query_one("#about", Static)
        assert about.display
        assert str(about.render()) == long
        await pilot.press("down")
        await pilot.pause()
        assert str(about.render()) == "short"

    async def whole(pilot: Pilot[None]) -> None:
        assert not pilot.app.screen.query_one("#about", Static).display

    chosen(cut, Chooser("Title", [Choice("a", long), Choice("b", "short")]))
    chosen(whole, Chooser("Title", CHOICES))


@pytest.mark.parametrize(("keys", "expected"), [(("down", "enter"), "c"), (("escape",), None)])
def test_a_line_is_taken_with_keys(keys: tuple[str, ...], expected: str | None) -> None:
    async def act(pilot: Pilot[None]) -> None:
        await pilot.press(*keys)

    assert chosen(act, Chooser("Title", CHOICES, chosen="b\x1b[2J")) == [expected]


def test_a_line_is_taken_with_two_clicks() -> None:
    async def act(pilot: Pilot[None]) -> None:
        await pilot.click(Rows, offset=(2, 3), times=2)

    assert chosen(act, Chooser("Title", CHOICES)) == ["c"]


@pytest.mark.slow
def test_lines_are_removed_where_that_is_possible() -> None:
    removed: list[str] = []

    async def remove_all(pilot: Pilot[None]) -> None:
        await pilot.press("down", "delete")
        await pilot.pause()
        assert pilot.app.screen.query_one(Rows).items == [CHOICES[0], CHOICES[2]]
        await pilot.press("delete", "backspace")

    assert chosen(remove_all, Chooser("Title", CHOICES, remove=removed.append)) == [None]
    assert removed == ["b\x1b[2J", "c", "a"]

    async def remove_none(pilot: Pilot[None]) -> None:
        await pilot.press("delete", "enter")

    assert chosen(remove_none, Chooser("Title", CHOICES)) == ["a"]


# -- the columns of a table ------------------------------------------------------------------------------------

NARROW, WIDE = SIZES


def titles(app: Inspector) -> str:
    """The line of titles of the list of runs."""
    return next(line for line in screen_text(app).splitlines() if "outcome" in line or "began" in line)


async def opened(pilot: Pilot[None], app: Inspector, *keys: str) -> ColumnChooser:
    await pilot.press("number_sign", *keys)
    await pilot.pause()
    assert isinstance(app.screen, ColumnChooser)
    return app.screen


@pytest.mark.slow
@pytest.mark.parametrize("width", [131, 132])
def test_a_hidden_column_says_from_which_terminal_on_it_is_shown(width: int) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await opened(pilot, app)
        assert ("from 132 columns on" in screen_text(app)) is (width < 132)
        await pilot.press("escape")
        assert ("day" in titles(app)) is (width == 132)

    look(shared_sample("out-of-sync"), act, (width, 40))


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_a_column_is_hidden_shown_and_sorted_by(tmp_path: Path, size: tuple[int, int]) -> None:
    path = shared_sample("out-of-sync")

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await opened(pilot, app)
        text = screen_text(app)
        assert "Space show/hide  Enter order  Del default  Esc close" in text
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
        await opened(pilot, app, "delete")
        await pilot.press("escape")
        assert "run" in titles(app).split()

    play(path, act, size)
    assert columns.remembered("Runs.runs") not in (None, Layout())
    play(path, again, size)
    assert columns.remembered("Runs.runs") is None


@pytest.mark.slow
def test_what_is_not_possible_with_columns_is_said() -> None:
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
        await pilot.press("delete")
        assert "Space show/hide" in screen_text(app)

    look(shared_sample("first-run"), act, WIDE)


@pytest.mark.slow
def test_a_body_has_no_columns() -> None:
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

    look(shared_sample("first-run"), act, NARROW)


@pytest.mark.slow
def test_a_table_of_a_document_is_known_by_its_columns(tmp_path: Path) -> None:
    path = shared_sample("first-run")

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
