"""The terminal inspector under test: sample captures with their index made, and Textual's pilot to press its keys."""

from __future__ import annotations

import asyncio
import atexit
import contextlib
import shutil
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any

from textual.widgets import Input

from inspector.capture.store import Capture
from inspector.explain.master_log.measured import NOTHING
from inspector.summaries import index, indexer
from inspector.tui.app import Inspector
from inspector.tui.catalog import Catalog
from inspector.tui.causes import Causes
from inspector.tui.run import RunView
from tests.support import places
from tests.support.catalogs import related

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

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


class OpenInspector:
    """An inspector that stays open while several tests look at it: starting one takes longer than most tests."""

    def __init__(self, capture: Path) -> None:
        self._capture = capture
        self._loop = asyncio.new_event_loop()
        self._acts: asyncio.Queue[tuple[Play, asyncio.Future[None]] | None] = asyncio.Queue()
        self._serving = self._loop.create_task(self._serve())

    async def _serve(self) -> None:
        app = Inspector(self._capture)
        async with app.run_test(size=SIZES[1]) as pilot:
            while (asked := await self._acts.get()) is not None:
                act, done = asked
                try:
                    await act(pilot, app)
                    if app._exception is not None:
                        raise app._exception
                except BaseException as error:  # noqa: BLE001 - whoever waits for it gets it
                    done.set_exception(error)
                else:
                    done.set_result(None)

    def play(self, act: Play, size: tuple[int, int], start: str) -> None:
        """Do something in it, from the first screen on."""

        async def from_the_first_screen(pilot: Pilot[None], app: Inspector) -> None:
            while len(app.screen_stack) > 2:
                app.pop_screen()
            if not start or app.screen.has_class("asking"):
                app.switch_screen(Causes())
            app._clipboard = ""
            app.following.on = False
            if app.size != size:
                await pilot.resize_terminal(*size)
            await pilot.press(*start)
            await pilot.pause()
            await act(pilot, app)
            await pilot.pause()

        done = self._loop.create_future()
        self._acts.put_nowait((from_the_first_screen, done))
        self._loop.run_until_complete(done)

    def close(self) -> None:
        self._acts.put_nowait(None)
        with contextlib.suppress(Exception):  # a test that failed has reported it
            self._loop.run_until_complete(self._serving)
        self._loop.close()


@cache
def shared_folder() -> Path:
    """Where captures are that several tests only look at."""
    folder = Path(tempfile.mkdtemp(prefix="inspector-tests-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


@cache
def shared_sample(name: str) -> Path:
    """A sample capture that several tests only look at, indexed."""
    return sample(name, shared_folder())


@cache
def shared_catalog() -> Path:
    """A run whose catalog has relationships, for tests that only look at it."""
    folder = shared_folder() / "related"
    folder.mkdir()
    return written(folder, related())


OPEN: dict[Path, OpenInspector] = {}
"""The inspectors that are open, by their captures."""


def look(capture: Path, act: Play, size: tuple[int, int] = (200, 60), *, start: str = "r") -> None:
    """As ``play``, for what changes neither the capture nor what is beside it: the inspector stays open for the next
    test."""
    inspector = OPEN.pop(capture, None) or OpenInspector(capture)
    try:
        inspector.play(act, size, start)
    except BaseException:
        inspector.close()
        raise
    OPEN[capture] = inspector


def in_run(name: str, act: Play, size: tuple[int, int] = (200, 60), *, own: Path | None = None) -> None:
    """Open the first run of a sample, and do something in it; with ``own`` in a copy in this folder."""

    async def begin(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("home", "enter")
        await settled(pilot, app)
        await act(pilot, app)

    if own:
        play(sample(name, own), begin, size)
    else:
        look(shared_sample(name), begin, size)


def run_view(app: App[Any]) -> RunView:
    """The run that is open."""
    assert isinstance(app.screen, RunView)
    return app.screen


async def type_in(pilot: Pilot[None], app: Inspector, key: str, text: str) -> None:
    """Type a text into the prompt that a key opens, and accept it."""
    await pilot.press(key)
    app.screen.query_one(Input).value = text
    await pilot.press("enter")
    await settled(pilot, app)


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
