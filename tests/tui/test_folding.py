"""A list with branches: arrow keys and a click on the mark ask for them to be opened and closed."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from textual.app import App, ComposeResult

from inspector.tui.columns import Column
from inspector.tui.rows import Folding

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from textual.pilot import Pilot


class Branches(Folding[str]):
    """Lines of which those that begin with a sign are branches."""

    def marked(self, item: str) -> range:
        return range(2 if item[0] in "+-" else 0)

    def is_open(self, item: str) -> bool:
        return item.startswith("-")


class Host(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.rows = Branches((Column("word", lambda word, _: word, 20),), lambda word: word)
        self.posted: list[str] = []

    def compose(self) -> ComposeResult:
        yield self.rows

    def on_mount(self) -> None:
        self.rows.show(["+ closed", "- open", "  leaf"])
        self.rows.focus()

    def on_folding_fold(self, event: Folding.Fold[str]) -> None:
        self.posted.append(f"{'fold' if event.fold else 'unfold'} {event.item.split()[1]}")

    def on_rows_chosen(self, event: Folding.Chosen[str]) -> None:
        self.posted.append(f"chosen {event.item.split()[-1]}")


def play(act: Callable[[Pilot[None], Host], Awaitable[None]]) -> None:
    async def go() -> None:
        app = Host()
        async with app.run_test(size=(40, 8)) as pilot:
            await pilot.pause()
            await act(pilot, app)

    asyncio.run(go())


def test_arrow_keys_open_and_close() -> None:
    async def act(pilot: Pilot[None], app: Host) -> None:
        await pilot.press("right", "left", "down", "l", "h")
        assert app.posted == ["unfold closed", "fold closed", "unfold open", "fold open"]

    play(act)


def test_a_click_on_the_mark_opens_or_closes_and_another_one_does_not() -> None:
    async def act(pilot: Pilot[None], app: Host) -> None:
        await pilot.click(Branches, offset=(1, 1))
        await pilot.click(Branches, offset=(0, 2))
        assert (app.posted, app.rows.at) == (["unfold closed", "fold open"], 1)
        await pilot.click(Branches, offset=(0, 3))
        await pilot.click(Branches, offset=(6, 1))
        assert len(app.posted) == 2
        await pilot.click(Branches, offset=(6, 1))
        assert app.posted[2:] == ["chosen closed"]
        await pilot.click(Branches, offset=(0, 6))
        assert len(app.posted) == 3

    play(act)


def test_an_empty_one_has_nothing_to_open() -> None:
    async def act(pilot: Pilot[None], app: Host) -> None:
        app.rows.show([])
        await pilot.press("right", "left")
        assert app.posted == []

    play(act)
