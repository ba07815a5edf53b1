"""The fleet's screen: the lists, and the one that is chosen."""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING

import pytest
from textual.widgets import Static

from inspector.fleet.confined import TOO_MUCH
from inspector.fleet.database import DatabaseError
from inspector.tui.fleet import FleetApp, FleetView
from inspector.tui.rows import Rows
from tests.support.fleets import fleet, tables_with
from tests.tui.terminal import Terminal

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from textual.pilot import Pilot

    from inspector.fleet.directory import TableDirectory


def played(directory: TableDirectory, play: Callable[[Pilot[None], FleetView], Awaitable[None]]) -> None:
    async def run() -> None:
        app = FleetApp(directory)
        async with app.run_test(size=(120, 30)) as pilot:
            for _ in range(3):
                await pilot.pause()
                await app.workers.wait_for_complete()
            await pilot.pause()
            view = app.screen
            assert isinstance(view, FleetView)
            await play(pilot, view)

    asyncio.run(run())


def title(view: FleetView) -> str:
    return str(view.query_one("#title", Static).render())


@pytest.mark.slow
def test_lists_are_on_the_left_and_the_chosen_one_on_the_right(tmp_path: Path) -> None:
    async def play(pilot: Pilot[None], view: FleetView) -> None:
        assert "2 nodes failing, 2 nodes silent, 76 nodes completed" in title(view)
        rows = view.query_one("#list Rows", Rows)
        assert (len(rows.items), rows.items[0].cells[0]) == (80, "web00001.example")
        titles = [each.title for each in view.lists]
        await pilot.press(*["down"] * titles.index("findings"))
        await pilot.pause()
        rows = view.query_one("#list Rows", Rows)
        assert [line.cells[0] for line in rows.items] == ["S01"]
        await pilot.press("enter", "enter")
        await pilot.pause()
        assert "severity: error" in str(view.query_one("#message", Static).render())
        await pilot.press("A")
        assert "Marks belong to captures" in str(view.query_one("#message", Static).render())

    played(fleet(tmp_path, 80), play)


@pytest.mark.slow
def test_tables_without_runs(tmp_path: Path) -> None:
    async def play(_: Pilot[None], view: FleetView) -> None:
        assert title(view).rstrip().endswith(": no run of an agent")

    played(tables_with(tmp_path), play)


@pytest.mark.slow
def test_an_empty_list_says_so(tmp_path: Path) -> None:
    async def play(pilot: Pilot[None], view: FleetView) -> None:
        await pilot.press("end")
        await pilot.press("up")
        await pilot.pause()
        assert "There is nothing in this list" in str(view.query_one("#message", Static).render())

    played(fleet(tmp_path, 3), play)


@pytest.mark.slow
def test_tables_that_cannot_be_read_are_said(tmp_path: Path) -> None:
    directory = fleet(tmp_path, 3)
    next(directory.root.glob("runs/*/*/*.parquet")).write_bytes(b"no parquet")

    async def play(pilot: Pilot[None], view: FleetView) -> None:
        assert "arquet" in str(view.query_one("#message", Static).render())

    played(directory, play)


@pytest.mark.slow
def test_whoever_leaves_does_not_wait_for_tables_that_take_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    began, ended = threading.Event(), list[str]()

    def reading(directory: TableDirectory) -> None:
        with directory.reading() as connection:
            began.set()
            try:
                connection.execute("SELECT sum(hash(a.range, b.range)) FROM range(100000) a, range(20000) b")
                ended.append("it was waited for")
            except DatabaseError as error:
                ended.append(error.message)
                raise

    monkeypatch.setattr("inspector.tui.fleet.overview_of", reading)

    async def run() -> None:
        async with FleetApp(tables_with(tmp_path)).run_test() as pilot:
            while not began.is_set():
                await pilot.pause(0.05)

    asyncio.run(run())
    assert ended == [TOO_MUCH]


@pytest.mark.slow
def test_open_shows_a_directory_of_tables(tmp_path: Path) -> None:
    directory = fleet(tmp_path, 5)
    with Terminal("-m", "inspector.cli", "open", str(directory.root), cwd=tmp_path) as terminal:
        terminal.wait_for("web00004")
        terminal.press("q")
        assert terminal.exit_status() == 0
