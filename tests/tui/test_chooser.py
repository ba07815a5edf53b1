"""The small list to choose from, with keys and with the mouse."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest
from textual.app import App
from textual.widgets import Static

from inspector.tui.chooser import Choice, Chooser
from inspector.tui.rows import Rows

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from textual.pilot import Pilot

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


@pytest.mark.parametrize(
    ("keys", "expected"), [(("enter",), "b\x1b[2J"), (("down", "enter"), "c"), (("escape",), None)]
)
def test_a_line_is_taken_with_keys(keys: tuple[str, ...], expected: str | None) -> None:
    async def act(pilot: Pilot[None]) -> None:
        await pilot.press(*keys)

    assert chosen(act, Chooser("Title", CHOICES, chosen="b\x1b[2J")) == [expected]


def test_a_line_is_taken_with_two_clicks() -> None:
    async def act(pilot: Pilot[None]) -> None:
        await pilot.click(Rows, offset=(2, 3), times=2)

    assert chosen(act, Chooser("Title", CHOICES)) == ["c"]


def test_lines_are_removed_where_that_is_possible() -> None:
    removed: list[str] = []

    async def remove_all(pilot: Pilot[None]) -> None:
        await pilot.press("down", "d")
        await pilot.pause()
        assert pilot.app.screen.query_one(Rows).items == [CHOICES[0], CHOICES[2]]
        await pilot.press("d", "d")

    assert chosen(remove_all, Chooser("Title", CHOICES, remove=removed.append)) == [None]
    assert removed == ["b\x1b[2J", "c", "a"]

    async def remove_none(pilot: Pilot[None]) -> None:
        await pilot.press("d", "enter")

    assert chosen(remove_none, Chooser("Title", CHOICES)) == ["a"]
