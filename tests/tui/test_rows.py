"""The list that all views are made of: cursor, sorting, searching, and columns that fit."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, NamedTuple

import pytest
from rich.text import Text
from textual.app import App, ComposeResult

from inspector.tui.columns import Column
from inspector.tui.rows import Folding, Rows
from tests.tui.screens import screen_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from textual.pilot import Pilot


class Thing(NamedTuple):
    number: int
    name: str


THINGS = [Thing(number, f"thing {number * 7 % 100:02}") for number in range(100)]
COLUMNS: tuple[Column[Thing], ...] = (
    Column("no", lambda thing, _: str(thing.number), 4, sort=lambda thing: thing.number, right=True),
    Column("name", lambda thing, _: Text(thing.name, "red"), 10, 1, sort=lambda thing: thing.name),
    Column("wide", lambda thing, width: "w" * width, 5, 1, least=60),
    Column("end", lambda thing, _: "[bold]x[/]", 12),
)


class Posting(App[None]):
    def __init__(self) -> None:
        super().__init__()
        self.posted: list[str] = []


class Host(Posting):
    def __init__(self) -> None:
        super().__init__()
        self.rows: Rows[Thing] = Rows(COLUMNS, lambda thing: thing.number, id="rows")

    def compose(self) -> ComposeResult:
        yield self.rows

    def on_mount(self) -> None:
        self.rows.show(THINGS)
        self.rows.focus()

    def on_rows_moved(self, event: Rows.Moved[Thing]) -> None:
        self.posted.append(f"moved {event.item.number}")

    def on_rows_chosen(self, event: Rows.Chosen[Thing]) -> None:
        self.posted.append(f"chosen {event.item.number}")


def play_in[H: Posting](host: type[H], act: Callable[[Pilot[None], H], Awaitable[None]], size: tuple[int, int]) -> None:
    async def go() -> None:
        app = host()
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            app.posted.clear()
            await act(pilot, app)

    asyncio.run(go())


def play(act: Callable[[Pilot[None], Host], Awaitable[None]], size: tuple[int, int] = (80, 11)) -> None:
    play_in(Host, act, size)


@pytest.mark.slow
def test_keys_move_the_cursor_and_it_stays_on_the_screen() -> None:
    async def act(pilot: Pilot[None], app: Host) -> None:
        for keys, at in (
            (["down"], 1),
            (["j", "j", "k"], 1),
            (["up"], 0),
            (["pagedown"], 9),
            (["pagedown", "pagedown", "pageup"], 9),
            (["end"], 99),
            (["G", "down"], 99),
            (["G", "g"], 0),
            (["end", "home"], 0),
        ):
            app.rows.move_to(0)
            await pilot.press(*keys)
            assert app.rows.at == at
            assert f"{at} {THINGS[at].name}" in screen_text(app)

    play(act)


@pytest.mark.slow
def test_enter_and_a_second_click_open() -> None:
    async def act(pilot: Pilot[None], app: Host) -> None:
        await pilot.press("down", "enter")
        assert app.posted == ["moved 1", "chosen 1"]
        await pilot.click("#rows", offset=(5, 4))
        assert app.posted[2:] == ["moved 3"]
        await pilot.click("#rows", offset=(5, 6), times=2)
        assert app.posted[3:] == ["moved 5", "chosen 5"]
        await pilot.click("#rows", offset=(5, 10))
        assert app.rows.at == 9
        app.rows.show(THINGS[:2])
        app.rows.move_to(0)
        await pilot.pause()
        app.posted.clear()
        await pilot.click("#rows", offset=(5, 8))
        assert (app.rows.at, app.posted) == (0, [])

    play(act)


def test_titles_sort_and_sort_the_other_way_round() -> None:
    async def act(pilot: Pilot[None], app: Host) -> None:
        app.rows.move_to(3)
        await pilot.click("#rows", offset=(7, 0))
        names = [item.name for item in app.rows.items]
        assert names == sorted(names)
        assert "name ▲" in screen_text(app)
        assert app.rows.item == THINGS[3]
        await pilot.click("#rows", offset=(7, 0))
        assert [item.name for item in app.rows.items] == sorted(names, reverse=True)
        assert "name ▼" in screen_text(app)
        await pilot.click("#rows", offset=(76, 0))  # nothing to sort by
        assert "name ▼" in screen_text(app)

    play(act)


def test_s_goes_through_the_columns() -> None:
    async def act(pilot: Pilot[None], app: Host) -> None:
        marks = []
        for _ in range(3):
            await pilot.press("s")
            marks.append([mark for mark in ("no ▲", "name ▲") if mark in screen_text(app)])
        assert marks == [["no ▲"], ["name ▲"], []]
        assert app.rows.items == THINGS
        await pilot.press("R")
        assert [thing.number for thing in app.rows.items] == list(range(99, -1, -1))
        assert app.rows.item is not None
        assert app.rows.item.number == 0, "the cursor stays on its item"
        await pilot.press("R", "s", "s")
        names = [thing.name for thing in app.rows.items]
        assert names == sorted(names)
        await pilot.press("R")
        assert [thing.name for thing in app.rows.items] == sorted(names, reverse=True)

    play(act)


def test_a_narrow_list_leaves_columns_out_and_none_runs_over() -> None:
    async def act(pilot: Pilot[None], app: Host) -> None:
        text = screen_text(app)
        assert "wide" not in text
        assert all(len(line) <= 40 for line in text.splitlines())
        assert "[bold]x[/]" in text  # captured text is no markup

    async def wide(pilot: Pilot[None], app: Host) -> None:
        assert "wide" in screen_text(app)

    play(act, (40, 11))
    play(wide, (80, 11))


def test_what_is_too_long_ends_in_dots_and_an_empty_list_takes_all_keys() -> None:
    async def act(pilot: Pilot[None], app: Host) -> None:
        app.rows.show([Thing(1, "x" * 100)])
        await pilot.pause()
        assert "xxx…" in screen_text(app)
        app.rows.show([])
        app.posted.clear()
        await pilot.press("down", "end", "enter", "s", "pageup")
        assert app.rows.item is None
        assert app.posted == []
        assert not app.rows.search("x")

    play(act)


def test_searching_goes_round_and_back() -> None:
    async def act(pilot: Pilot[None], app: Host) -> None:
        assert app.rows.search("THING 9")
        first = app.rows.at
        assert THINGS[first].name.startswith("thing 9")
        assert app.rows.search("thing 9", again=True)
        assert app.rows.at > first
        assert app.rows.search("thing 9", again=True, forward=False)
        assert app.rows.at == first
        assert not app.rows.search("nowhere")
        assert app.rows.at == first
        hits = [thing for thing in THINGS if "thing 9" in thing.name]
        for _ in hits:
            app.rows.search("thing 9", again=True)
        assert app.rows.at == first

    play(act)


def test_the_cursor_stays_on_its_item_when_others_come() -> None:
    async def act(pilot: Pilot[None], app: Host) -> None:
        app.rows.move_to(50)
        app.rows.show(THINGS[40:])
        assert (app.rows.at, app.rows.item) == (10, THINGS[50])
        app.rows.show(THINGS[:20])
        assert app.rows.at == 10
        app.rows.show(THINGS[:50])
        app.rows.move_to(49)
        app.rows.show(THINGS, tail=True)
        assert app.rows.at == 99
        await pilot.pause()
        assert THINGS[99].name in screen_text(app)
        app.rows.move_to(10)
        app.rows.show([*THINGS, Thing(100, "new")], tail=True)
        assert app.rows.at == 10

    play(act)


# -- branches ------------------------------------------------------------------------------------------------


class Branches(Folding[str]):
    """Lines of which those that begin with a sign are branches."""

    def marked(self, item: str) -> range:
        return range(2 if item[0] in "+-" else 0)

    def is_open(self, item: str) -> bool:
        return item.startswith("-")


class BranchesHost(Posting):
    def __init__(self) -> None:
        super().__init__()
        self.rows = Branches((Column("word", lambda word, _: word, 20),), lambda word: word)

    def compose(self) -> ComposeResult:
        yield self.rows

    def on_mount(self) -> None:
        self.rows.show(["+ closed", "- open", "  leaf"])
        self.rows.focus()

    def on_folding_fold(self, event: Folding.Fold[str]) -> None:
        self.posted.append(f"{'fold' if event.fold else 'unfold'} {event.item.split()[1]}")

    def on_rows_chosen(self, event: Folding.Chosen[str]) -> None:
        self.posted.append(f"chosen {event.item.split()[-1]}")


@pytest.mark.slow
def test_branches_are_opened_by_arrow_keys_and_by_a_click_on_their_mark() -> None:
    async def act(pilot: Pilot[None], app: BranchesHost) -> None:
        await pilot.press("right", "left", "down", "l", "h")
        assert app.posted == ["unfold closed", "fold closed", "unfold open", "fold open"]
        app.posted.clear()
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
        app.posted.clear()
        app.rows.show([])
        await pilot.press("right", "left")
        assert app.posted == []

    play_in(BranchesHost, act, (40, 8))
