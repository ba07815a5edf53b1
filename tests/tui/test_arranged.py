"""A list in the columns and the order that its user chose, the next time too."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from textual.app import App, ComposeResult

from inspector.tui import columns
from inspector.tui.columns import Column, Layout
from inspector.tui.rows import Rows
from tests.tui.screens import screen_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from textual.pilot import Pilot

WORDS = ["beta 2", "alpha 10", "gamma 1"]


class Host(App[None]):
    def __init__(self, shown: tuple[Column[str], ...]) -> None:
        super().__init__()
        self.rows: Rows[str] = Rows(shown, lambda word: word, id="words")
        self.refused: list[str] = []

    def compose(self) -> ComposeResult:
        yield self.rows

    def on_mount(self) -> None:
        self.rows.show(WORDS)
        self.rows.focus()

    def on_arranged_refused(self, event: Rows.Refused) -> None:
        self.refused.append(event.why)

    def on_arranged_choosing(self, event: Rows.Choosing) -> None:
        self.refused.append(f"choosing of {event.rows.table}")


FIXED = (Column[str]("word", lambda word, _: word, 20), Column[str]("size", lambda word, _: str(len(word)), 20))
ABLE = (
    Column[str]("word", lambda word, _: word, 20, sort=lambda word: word),
    Column[str]("number", lambda word, _: word.split()[1], 20, sort=lambda word: int(word.split()[1]), right=True),
    Column[str]("size", lambda word, _: str(len(word)), 20, least=200, sort=len),
)


def play(
    act: Callable[[Pilot[None], Host], Awaitable[None]], shown: tuple[Column[str], ...] = ABLE, width: int = 60
) -> None:
    async def go() -> None:
        app = Host(shown)
        async with app.run_test(size=(width, 10)) as pilot:
            await pilot.pause()
            await act(pilot, app)

    asyncio.run(go())


def test_a_list_that_scrolls_down_is_not_cut_at_its_right_end() -> None:
    async def act(pilot: Pilot[None], app: Host) -> None:
        app.rows.show([f"{at} {'x' * 300}!" for at in range(30)])
        await pilot.pause()
        assert app.rows.show_vertical_scrollbar
        assert not app.rows.show_horizontal_scrollbar
        assert app.rows.room == 59

    ends = Column[str]("end", lambda word, width: word[-width:], 4, 1)
    play(act, (ABLE[0], ends))


def test_a_list_has_the_layout_that_was_chosen_for_it() -> None:
    async def choose(pilot: Pilot[None], app: Host) -> None:
        assert app.rows.table == "Screen.words"
        assert app.rows.items == WORDS
        app.rows.choose(Layout(hidden=frozenset({"number"}), shown=frozenset({"size"}), sort="number", descending=True))
        assert app.rows.items == ["alpha 10", "beta 2", "gamma 1"]

    async def again(pilot: Pilot[None], app: Host) -> None:
        assert app.rows.items == ["alpha 10", "beta 2", "gamma 1"]
        assert app.rows.at == 0
        titles = screen_text(app).splitlines()[0]
        assert "size" in titles
        assert "number" not in titles
        app.rows.choose(Layout())
        assert app.rows.items == WORDS

    play(choose)
    play(again)
    assert columns.remembered("Screen.words") is None


def test_a_layout_of_columns_that_are_gone_does_no_harm() -> None:
    columns.remember("Screen.words", Layout(sort="nothing", hidden=frozenset({"nobody"})))

    async def act(pilot: Pilot[None], app: Host) -> None:
        assert app.rows.items == WORDS
        assert "word" in screen_text(app)

    play(act)


def test_sorting_goes_through_the_columns_that_are_shown() -> None:
    async def act(pilot: Pilot[None], app: Host) -> None:
        orders = []
        for _ in range(4):
            await pilot.press("s")
            orders.append(app.rows.arrangement.sort)
        assert orders == ["word", "number", "", "word"]
        assert columns.remembered("Screen.words") is None, "only what is chosen with # is remembered"

    play(act)


def test_what_is_not_possible_is_said() -> None:
    async def act(pilot: Pilot[None], app: Host) -> None:
        await pilot.press("s", "number_sign")
        assert app.refused == ["The order of this list is fixed.", "choosing of Screen.words"]

    async def text(pilot: Pilot[None], app: Host) -> None:
        await pilot.press("number_sign")
        assert app.refused == ["This is a text: it has no columns."]

    play(act, FIXED)
    play(text, FIXED[:1])


def test_the_title_with_the_mark_of_the_order_is_whole() -> None:
    async def act(pilot: Pilot[None], app: Host) -> None:
        await pilot.press("s", "s")
        assert "number ▲" in screen_text(app)

    play(act, width=18)


def test_columns_do_not_become_narrower_when_other_items_come() -> None:
    async def act(pilot: Pilot[None], app: Host) -> None:
        app.rows.show(["a long text of many words 1"])
        wide = screen_text(app).splitlines()[0].index("number")
        app.rows.show(["x 1"])
        await pilot.pause()
        assert screen_text(app).splitlines()[0].index("number") == wide

    play(act)
