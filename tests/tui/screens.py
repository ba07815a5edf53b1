"""The terminal inspector under test: sample captures with their index made, and Textual's pilot to press its keys."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING, Any

from inspector.capture.store import Capture
from inspector.explain.master_log.measured import NOTHING
from inspector.summaries import index, indexer
from inspector.tui.app import Inspector
from inspector.tui.catalog import Catalog
from tests.support import places

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable
    from pathlib import Path

    from textual.app import App
    from textual.pilot import Pilot

    from inspector.explain.master_log.measured import MasterTimes
    from inspector.model import Record

    type Play = Callable[[Pilot[None], Inspector], Awaitable[None]]

SIZES = [(80, 24), (200, 60)]


def indexed(capture: Path) -> Path:
    """A capture with its index beside it."""
    indexer.build(capture, index.place(capture))
    return capture


def sample(name: str, folder: Path) -> Path:
    """A copy of a sample capture, indexed."""
    copy = folder / f"{name}.sqlite"
    shutil.copy(places.SAMPLES / f"{name}.sqlite", copy)
    return indexed(copy)


def written(folder: Path, records: Iterable[Record]) -> Path:
    """A capture of made-up records, indexed."""
    path = folder / "made.sqlite"
    with Capture.create(path) as capture:
        for record in records:
            capture.append(record)
        capture.flush()
    return indexed(path)


async def settled(pilot: Pilot[None], app: Inspector) -> None:
    """Wait until everything that was begun is shown."""
    for _ in range(3):
        await pilot.pause()
        await app.workers.wait_for_complete()
    await pilot.pause()


async def catalog_of(pilot: Pilot[None], app: Inspector, *keys: str) -> Catalog:
    """The catalog of the first run, read, with its relationships, after some keys."""
    view = Catalog(1)
    app.push_screen(view)
    await settled(pilot, app)
    await pilot.press(*keys)
    await pilot.pause()
    return view


def play(
    capture: Path,
    act: Play,
    size: tuple[int, int] = (200, 60),
    *,
    start: str = "r",
    times: MasterTimes = NOTHING,
) -> None:
    """Open a capture and do something in it; what ``act`` asserts is the test. ``start`` is pressed before: the key
    that shows all runs, or none."""

    async def go() -> None:
        app = Inspector(capture, times=times)
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            if start:
                await pilot.press(start)
                await pilot.pause()
            await act(pilot, app)

    asyncio.run(go())


def unframed(text: str) -> str:
    """A screen's text without the frames of its panes."""
    return "\n".join(
        line[1:-1] if line[:1] == line[-1:] == "│" else line
        for line in text.splitlines()
        if not line.startswith(("╭", "╰", "─"))
    )


def screen_text(app: App[Any]) -> str:
    """What stands on the screen, line by line."""
    width, height = app.size
    lines = app.screen._compositor.render_strips()
    return "\n".join("".join(segment.text for segment in strip)[:width].rstrip() for strip in lines[:height])
