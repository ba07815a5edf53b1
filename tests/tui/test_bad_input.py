"""What is no capture, or a damaged one: said in words, shown as far as it goes, never crashed on."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import textwrap
from typing import TYPE_CHECKING

import pytest
from textual.widgets import Input

from inspector.model import Exchange
from inspector.summaries.source import Source
from inspector.tui.bootstrap import Bootstrap
from inspector.tui.run import RunView
from tests.support.captures import save
from tests.support.conversations import Agent, together
from tests.support.recorded import SAMPLES
from tests.tui.screens import indexed, play, screen_text, settled, unframed
from tests.tui.terminal import Terminal

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

    from inspector.tui.app import Inspector


def sample(folder: Path) -> Path:
    copy = folder / "c.sqlite"
    shutil.copy(next(path for path in SAMPLES if path.stem == "first-run"), copy)
    return copy


def change(path: Path, statement: str) -> None:
    with contextlib.closing(sqlite3.connect(path)) as db:
        db.execute(statement)
        db.commit()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        ("absent", "There is no capture at"),
        ("text", "is not a capture"),
        ("foreign", "is an SQLite file, but not a capture"),
        ("newer", "this puppet-inspector reads versions up to 3"),
        ("empty", "not a capture"),
    ],
)
def test_what_is_no_capture_is_one_sentence_and_a_hint(tmp_path: Path, spoil: str, message: str) -> None:
    path = tmp_path / "c.sqlite"
    match spoil:
        case "text":
            path.write_text("no capture " * 1000)
        case "foreign":
            change(path, "CREATE TABLE t (x)")
        case "newer":
            change(sample(tmp_path), "PRAGMA user_version = 99")
        case "empty":
            path.touch()
    with Terminal("-m", "inspector.cli", "open", str(path)) as terminal:
        status = terminal.exit_status()
        text = terminal.text()
    assert status == 2
    assert message in text
    assert "Traceback" not in text
    assert len([line for line in text.splitlines() if line.strip()]) <= 5


@pytest.mark.slow
def test_a_truncated_capture_is_reported_as_damaged(tmp_path: Path) -> None:
    path = sample(tmp_path)
    os.truncate(path, path.stat().st_size // 2)
    with Terminal("-m", "inspector.cli", "open", str(path), size=(120, 40)) as terminal:
        assert terminal.exit_status() == 2
        text = terminal.text()
    assert "is damaged or cut off" in text
    assert "Traceback" not in text


@pytest.mark.slow
@pytest.mark.parametrize("what", ["a body", "a record", "a body's bytes"])
def test_what_is_damaged_is_reported_and_the_rest_is_shown(tmp_path: Path, what: str) -> None:
    path = sample(tmp_path)
    match what:
        case "a body":
            change(path, "DELETE FROM blob WHERE id = (SELECT max(id) FROM blob)")
        case "a record":
            change(path, "UPDATE record SET data = '{' WHERE seq = 3")
        case _:
            change(path, "UPDATE blob SET data = x'0011' WHERE id = (SELECT max(id) FROM blob)")

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        assert "cannot be read" in screen_text(app)
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(app.screen, RunView)
        for key in ("down",) * 30:
            await pilot.press(key)
        await app.workers.wait_for_complete()
        await pilot.press("L")
        await app.workers.wait_for_complete()
        await pilot.press("escape", "i", "space")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert "node1.example" in screen_text(app)

    play(indexed(path), act)


@pytest.mark.slow
def test_what_is_damaged_after_it_was_indexed_is_reported_wherever_it_is_read(tmp_path: Path) -> None:
    path = indexed(sample(tmp_path))
    change(path, "UPDATE record SET data = '{' WHERE seq = 3")

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        app.open_run(1, 3)
        await pilot.pause()
        await app.workers.wait_for_complete()
        await pilot.press("u")
        assert "Record 3" in screen_text(app)
        assert not app.clipboard
        await pilot.press("i")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert "Record 3" in screen_text(app)
        for key in ("L", "C", "O"):
            await pilot.press(key)
            await app.workers.wait_for_complete()
            await pilot.press("escape")
        await pilot.press("e", "enter")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert "Record 3" in screen_text(app)
        assert not list(tmp_path.glob("*.jsonl"))

    with contextlib.chdir(tmp_path):
        play(path, act)


@pytest.mark.slow
def test_a_capture_whose_writer_was_killed_opens(tmp_path: Path) -> None:
    path = tmp_path / "c.sqlite"
    code = f"""
        import os, signal
        from inspector.capture.store import Capture
        from tests.support.conversations import Agent, together
        from tests.support.captures import keep
        capture = Capture.create({str(path)!r})
        keep(capture, *together(Agent("killed.example", "192.0.2.1").run()))
        os.kill(os.getpid(), signal.SIGKILL)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], check=False)
    assert done.returncode == -signal.SIGKILL
    assert path.with_name("c.sqlite-wal").exists()

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        assert "killed.example" in screen_text(app)
        await pilot.press("enter")
        await pilot.pause()
        assert isinstance(app.screen, RunView)

    play(indexed(path), act)


@pytest.mark.slow
def test_one_that_is_deleted_meanwhile_is_reported_as_gone(tmp_path: Path) -> None:
    path = indexed(sample(tmp_path))

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        path.replace(path.with_name("gone"))
        app.poll()
        await pilot.pause()
        assert "There is no capture at" in screen_text(app)
        path.with_name("gone").replace(path)
        app.poll()
        await pilot.pause()
        assert "There is no capture at" not in screen_text(app)
        path.replace(path.with_name("gone"))
        await pilot.press("enter", "down", "f", "escape", "escape")

    play(path, act)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("key", "empty"),
    [
        ("B", "No agent in this capture sent a request"),
        ("L", "The agent requested no files"),
        ("C", "This run has no catalog"),
        ("O", "No connections were recorded"),
        ("enter", "Meaning"),
        ("b", "No record contains"),
    ],
)
def test_what_cannot_be_read_is_not_shown_as_empty(tmp_path: Path, key: str, empty: str) -> None:
    path = indexed(sample(tmp_path))

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        if key in "LCO" or key == "enter":
            await pilot.press("enter")
            await settled(pilot, app)
        path.replace(path.with_name("gone"))
        await pilot.press(key)
        if key == "b":
            app.screen.query_one(Input).value = "x"
            await pilot.press("enter")
        await settled(pilot, app)
        text = screen_text(app)
        words = "could not be read" if key == "b" else "could not be read: There is no capture at"
        assert words in " ".join(unframed(text).split())
        assert empty not in text
        assert "0 agents" not in text
        if key == "B":
            path.with_name("gone").replace(path)
            bootstrap = app.screen
            assert isinstance(bootstrap, Bootstrap)
            bootstrap._rests = 0.0
            bootstrap.update()
            await settled(pilot, app)
            assert "could not be read" not in screen_text(app)

    play(path, act, (80, 24))


@pytest.mark.slow
def test_findings_without_an_index_are_not_no_findings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Source, "trouble", "the disk is full")
    monkeypatch.setattr(Source, "runs", [])

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("F")
        await settled(pilot, app)
        text = screen_text(app)
        assert "could not be read: the disk is full" in text
        assert "No deviations" not in text
        assert "no findings" not in text

    play(indexed(sample(tmp_path)), act)


def test_a_look_that_comes_after_the_last_view_finds_nobody(tmp_path: Path) -> None:
    path = indexed(sample(tmp_path))
    apps: list[Inspector] = []

    async def act(_: Pilot[None], app: Inspector) -> None:
        apps.append(app)

    play(path, act)
    path.unlink()
    (app,) = apps
    assert app.screen_stack == []
    app.poll()
    assert app.front is None


@pytest.mark.slow
def test_bodies_that_do_not_decode_are_shown_as_they_are(tmp_path: Path) -> None:
    agent = Agent("a.example", "192.0.2.1").plugins().catalog(body=b"\x00\xff{[bold]\x1b[2J")
    assert any(isinstance(record, Exchange) for record in together(agent))

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("enter")
        for _ in range(12):
            await pilot.press("down")
        await app.workers.wait_for_complete()
        await pilot.press("tab", "2", "3", "4", "5", "6", "1")
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert "\x1b" not in screen_text(app)

    play(indexed(save(tmp_path / "c.sqlite", *together(agent))), act)
