"""What a run has hundreds of is one line, which opens; whoever looks for what is in it gets there."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

import pytest

from inspector.explain.timeline import Fold
from inspector.runs.examples import catalog, content, listing, report, talk
from inspector.tui.sequence import Sequence
from inspector.tui.waterfall import Waterfall
from tests.tui.screens import look, run_view, screen_text, settled, shared_folder, type_in, written

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

    from inspector.explain.timeline import Piece
    from inspector.summaries.summary import Brief
    from inspector.tui.app import Inspector

NAMES = [f"facter/fact_{number}.rb" for number in range(540)]


@cache
def site() -> Path:
    """A run with as many plugins as a real site has; one is not there."""
    folder = shared_folder() / "folded"
    folder.mkdir()
    plugins = [content(f"plugins/{name}", status=404 if name == NAMES[100] else 200) for name in NAMES]
    return written(folder, talk(listing("plugins", dict.fromkeys(NAMES, b"content")), *plugins, catalog(), report()))


async def opened(pilot: Pilot[None], app: Inspector) -> None:
    await pilot.press("enter")
    await settled(pilot, app)
    await pilot.press("home")


def lines(app: Inspector) -> list[str]:
    """What each line of the run is: its record or its text."""
    return [str(entry.seq or entry.text) for entry in run_view(app).timed.items]


WHOLE = ["plugins", "1", "silence: cause unknown", "100 plugins", "silence: cause unknown", "102",
         "silence: cause unknown", "439 plugins", "gathers facts", "catalog", "542", "applies the catalog", "report",
         "543"]  # fmt: skip
"""The lines of the run; what is wrong with a plugin is not in a fold."""


@pytest.mark.slow
@pytest.mark.parametrize("size", [(80, 24), (120, 40), (200, 60)])
def test_a_run_with_540_plugins_is_on_one_screen(size: tuple[int, int]) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await opened(pilot, app)
        assert lines(app) == WHOLE
        text = screen_text(app)
        assert "▶ 100 plugins" in text
        assert "▶ 439 plugins" in text
        await pilot.press("w")
        await settled(pilot, app)
        assert isinstance(run_view(app).timed, Sequence)
        assert [line for line in lines(app) if "plugins" in line] == ["plugins", "100 plugins", "439 plugins"]
        assert "│ ▶ 439 plugins, " in screen_text(app)

    look(site(), act, size)


@pytest.mark.slow
def test_enter_an_arrow_and_a_click_open_a_fold_and_close_it() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await opened(pilot, app)
        timed = run_view(app).timed
        await pilot.press("down", "down", "down")
        assert isinstance(timed.item, Fold)
        for open_it, close_it in (("enter", "enter"), ("right", "left"), ("l", "h")):
            await pilot.press(open_it)
            assert len(lines(app)) == len(WHOLE) + 199
            assert "▼ 100 plugins" in screen_text(app)
            await pilot.press(close_it)
            assert lines(app) == WHOLE
        await pilot.press("enter", "down", "down", "down")
        assert str(timed.item.seq if timed.item else "") == "3"
        await pilot.press("left")
        assert isinstance(timed.item, Fold)
        assert lines(app) == WHOLE
        column = timed.marked(timed.item)[0]
        await pilot.click(timed, offset=(column, timed.at + 1))
        assert len(lines(app)) == len(WHOLE) + 199

    look(site(), act)


@pytest.mark.slow
def test_what_is_looked_for_is_found_in_a_fold() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await opened(pilot, app)
        timed = run_view(app).timed
        await type_in(pilot, app, "/", "fact_300.rb")
        assert timed.item is not None
        assert timed.item.seq == 302
        assert len(lines(app)) == len(WHOLE) + 877
        await pilot.press("left")
        assert lines(app) == WHOLE
        run_view(app).show_record(50)
        assert timed.item.seq == 50
        await pilot.press("left", "R")
        assert lines(app) == WHOLE[::-1]
        await pilot.press("R", "s")  # sorted, there are only records
        assert len(lines(app)) == 543
        await pilot.press(*["s"] * 5)
        assert lines(app) == WHOLE
        await type_in(pilot, app, "f", "phase:plugins")
        assert len([line for line in lines(app) if line.isdecimal()]) == 541

    look(site(), act)


@pytest.mark.slow
def test_only_the_fold_with_the_next_that_is_looked_for_opens() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await opened(pilot, app)
        timed = run_view(app).timed
        await type_in(pilot, app, "/", "facter/fact")
        assert timed.item is not None
        assert timed.item.seq == 2
        assert len(lines(app)) == len(WHOLE) + 199, "439 others are as they were"
        await pilot.press("left", "N")
        assert timed.item.seq == 541, "backwards from the first it is the last"
        assert len(lines(app)) == len(WHOLE) + 877
        await pilot.press("left", "home")
        assert timed.seek(lambda entry: entry.seq == 50)
        assert (timed.item.seq, len(lines(app))) == (50, len(WHOLE) + 199)
        await pilot.press("left")
        assert timed.seek(lambda entry: entry.seq == 542, forward=False)
        assert lines(app) == WHOLE

    look(site(), act)


@pytest.mark.slow
def test_a_fold_is_measured_once_and_not_at_each_drawing(monkeypatch: pytest.MonkeyPatch) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await opened(pilot, app)
        timed = run_view(app).timed
        assert isinstance(timed, Waterfall)
        measured: list[int] = []
        real = timed._pieces

        def pieces(brief: Brief) -> list[Piece]:
            measured.append(brief.seq)
            return real(brief)

        monkeypatch.setattr(timed, "_pieces", pieces)
        bars = [timed._bar(item, 40).plain for item in timed.items]
        assert len(measured) > 540
        measured.clear()
        assert [timed._bar(item, 40).plain for item in timed.items] == bars
        assert len(measured) < 5
        await pilot.press("greater_than_sign")
        assert [timed._bar(item, 40).plain for item in timed.items] != bars, "another part of the axis"

    look(site(), act)


@pytest.mark.slow
def test_a_line_that_is_in_no_fold_opens_none() -> None:
    """The run may have been read again since the key was pressed."""

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await opened(pilot, app)
        timed = run_view(app).timed
        timed.turn(timed.items[0])
        assert lines(app) == WHOLE

    look(site(), act)


@pytest.mark.slow
def test_playback_shows_a_fold_from_its_first_record_on(monkeypatch: pytest.MonkeyPatch) -> None:
    exported: list[list[int]] = []

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        monkeypatch.setattr(app, "export", lambda seqs: exported.append([*seqs]))
        await opened(pilot, app)
        await type_in(pilot, app, "t", "4.5")
        assert lines(app) == WHOLE[:4]
        assert "▶ 100 plugins" in screen_text(app)
        await pilot.press("e")
        assert exported == [[1, 2, 3, 4, 5]]
        await type_in(pilot, app, "t", "100%")
        assert lines(app) == WHOLE

    look(site(), act)
