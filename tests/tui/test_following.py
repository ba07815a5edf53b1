"""Following what is recorded: the newest run stays selected, in the next capture too, and a failed run rings."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING

import pytest

from inspector.capture.places import PLACE, STANDS
from inspector.capture.store import Capture
from inspector.cli import main as cli
from inspector.summaries import index, indexer
from inspector.tui.causes import Causes
from inspector.tui.following import Following, newer
from inspector.tui.runs import Runs
from tests.support.captures import recording, save
from tests.support.conversations import START, Agent, together
from tests.tui.screens import indexed, play, screen_text

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

    from inspector.model import Record
    from inspector.tui.app import Inspector


def run_of(name: str, after: float, *, begin: float = START, status: int = 200) -> list[Record]:
    agent = Agent(name, "192.0.2.2", time=begin + after)
    return together(agent.run(f"u-{name}-{after}") if status == 200 else agent.catalog(status=status))


def more(path: Path, records: list[Record]) -> None:
    """Add records to a capture, and to its index."""
    save(path, *records)
    indexer.build(path, index.place(path))


def selected(app: Inspector) -> str:
    (view,) = [view for view in app.screen_stack if isinstance(view, Runs)]
    assert view._rows.item is not None
    return view._rows.item.run.name


@pytest.mark.slow
def test_the_newest_run_stays_selected_and_stands_out(tmp_path: Path) -> None:
    path = indexed(save(tmp_path / "c.sqlite", *run_of("a", 0), *run_of("b", 100)))

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("escape")
        assert isinstance(app.screen, Causes)
        await pilot.press("W")
        await pilot.pause()
        assert selected(app) == "b"
        await pilot.press("s", "s", "s")  # in another order it is not the last
        await pilot.pause()
        app.following.on = True
        more(path, run_of("c", 200))
        app.poll()
        await pilot.pause()
        assert selected(app) == "c"
        assert isinstance(app.screen, Runs)
        assert app.screen._rows._new == {(False, 3)}
        await pilot.press("home")
        await pilot.press("end")
        await pilot.press("k")
        await pilot.pause()
        assert not app.following.on
        assert "W follows again" in screen_text(app)
        before = selected(app)
        more(path, run_of("d", 300))
        app.poll()
        await pilot.pause()
        assert selected(app) == before
        await pilot.press("W")
        await pilot.pause()
        assert selected(app) == "d"
        await pilot.press("W")
        assert not app.following.on

    play(path, act)


@pytest.mark.slow
def test_it_goes_on_in_the_next_capture(tmp_path: Path) -> None:
    path = indexed(save(tmp_path / "a.sqlite", *run_of("a", 0)))

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("W", "enter")
        following = indexed(save(tmp_path / "b.sqlite", *run_of("b", 0)))
        late = time.time() + 10
        os.utime(following, (late, late))
        app.following.on = False
        app.poll()
        assert app.source.path == path
        app.following.on = True
        app.poll()
        await pilot.pause()
        assert app.source.path == following
        assert isinstance(app.screen, Runs)
        assert selected(app) == "b"
        await pilot.press("escape")
        assert isinstance(app.screen, Causes)
        assert app.marks._source is app.source

    play(path, act)


def test_a_capture_is_newer_if_it_was_written_later(tmp_path: Path) -> None:
    one = save(tmp_path / "a.sqlite", *run_of("a", 0))
    assert newer(one) is None
    other = save(tmp_path / "b.sqlite", *run_of("b", 0))
    os.utime(one, (10, 10))
    os.utime(other, (20, 20))
    assert newer(one) == other
    assert newer(other) is None


@pytest.mark.slow
def test_a_run_that_fails_rings_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = indexed(save(tmp_path / "c.sqlite", *run_of("a", 0, begin=time.time() - 5000, status=500)))
    rung: list[bool] = []

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        monkeypatch.setattr(app, "bell", lambda: rung.append(True))
        app.poll()
        assert rung == []
        more(path, run_of("b", 100, begin=time.time()))
        app.poll()
        assert rung == []
        more(path, run_of("c", 200, begin=time.time(), status=500))
        app.poll()
        assert rung == ([True] if app.following.bell else [])
        more(path, run_of("d", 300, begin=time.time()))
        app.poll()
        assert rung == ([True] if app.following.bell else [])

    play(path, act)
    monkeypatch.setattr("inspector.tui.app.Following", lambda bell: Following(bell=not bell))
    path.unlink()
    index.place(path).unlink()
    indexed(save(path, *run_of("a", 0, begin=time.time() - 5000, status=500)))
    play(path, act)
    assert rung == [True]


def test_the_command_passes_the_option_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[object] = []
    monkeypatch.setattr("inspector.cli.open_.must_be_terminal", lambda _: None)

    def run(*_: object, bell: bool, **__: object) -> int:
        given.append(bell)
        return 0

    monkeypatch.setattr("inspector.tui.app.run", run)
    path = save(tmp_path / "c.sqlite", *run_of("a", 0))
    for words in (["open", str(path), "--bell"], ["open", str(path)], ["open", str(tmp_path), "--bell"]):
        assert cli.main(words) == 0
    assert given == [True, False, True]


def test_a_directory_in_which_something_is_recorded_is_followed_and_read_as_one_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened: list[Path] = []

    def run(path: Path, *, temporary: bool = False, **_: object) -> int:
        assert temporary == (path.parent != tmp_path), "a note is not to be lost"
        opened.append(path)
        return 0

    monkeypatch.setattr("inspector.cli.open_.must_be_terminal", lambda _: None)
    monkeypatch.setattr("inspector.tui.app.run", run)
    for number, name in enumerate(("one", "two")):
        with Capture.create(save(tmp_path / f"{name}.sqlite", *run_of(name, 60 * number))) as capture:
            capture.set_meta([(PLACE, f"192.0.2.{number}:8140{STANDS}{name}")])
    with recording(tmp_path / "two.sqlite"):
        assert cli.main(["open", str(tmp_path)]) == 0
    assert opened.pop().name == "two.sqlite"
    assert cli.main(["open", str(tmp_path)]) == 0
    assert opened.pop().parent != tmp_path
