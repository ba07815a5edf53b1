"""The terminal inspector under test: sample captures with their index made, and Textual's pilot to press its keys."""

from __future__ import annotations

import asyncio
import shutil
from typing import TYPE_CHECKING, Any

from inspector.summaries import index, indexer
from inspector.tui.app import Inspector
from tests.support import places

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path

    from textual.app import App
    from textual.pilot import Pilot

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


def play(capture: Path, act: Play, size: tuple[int, int] = (200, 60), *, start: str = "r") -> None:
    """Open a capture and do something in it; what ``act`` asserts is the test. ``start`` is pressed before: the key
    that shows all runs, or none."""

    async def go() -> None:
        app = Inspector(capture)
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
