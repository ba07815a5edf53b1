"""The inspector on a real terminal (a pty), as a user starts it."""

from __future__ import annotations

import os
import re
import shutil
from typing import TYPE_CHECKING

import pytest

from inspector.capture.store import Capture
from inspector.model import Exchange, Gap
from inspector.tui.ascii import TABLE
from tests.support.captures import keep, save
from tests.support.conversations import START, Agent, together
from tests.support.hostile import HOSTILE, hostile_records
from tests.support.recorded import SAMPLES
from tests.tui.screens import indexed, sample
from tests.tui.terminal import Terminal

if TYPE_CHECKING:
    from pathlib import Path

ENTER, ESCAPE, LAST = "\r", "\x1b", "\x1b[F"


def opened(capture: Path, *options: str, environment: dict[str, str] | None = None) -> Terminal:
    return Terminal("-m", "inspector.cli", "open", str(capture), *options, size=(150, 60), environment=environment)


@pytest.mark.slow
def test_a_run_is_played(tmp_path: Path) -> None:
    with opened(sample("first-run", tmp_path)) as terminal:
        terminal.wait_for("node1.example")
        terminal.press(ENTER)
        terminal.wait_for("certificate/ca")
        terminal.press("i")
        terminal.wait_for("sent (changed), accepted")  # the agent's state at the end, its report included
        at = len(terminal.drawn)
        terminal.press(" ")
        terminal.wait_for("not seen", at)  # at the beginning of the run
        terminal.wait_for("sent (changed), accepted", at)
        terminal.press("q")
        assert terminal.exit_status() == 0


@pytest.mark.slow
def test_a_capture_without_an_index_gets_one(tmp_path: Path) -> None:
    copy = tmp_path / "c.sqlite"
    shutil.copy(next(path for path in SAMPLES if path.stem == "revoked"), copy)
    with opened(copy) as terminal:
        terminal.wait_for("was refused")
        assert (tmp_path / "c.sqlite.index").is_file()
        terminal.press("q")
        assert terminal.exit_status() == 0
    assert not (tmp_path / "c.sqlite.index.lock").exists()


@pytest.mark.slow
def test_without_arguments_it_is_the_latest_capture(tmp_path: Path) -> None:
    folder = tmp_path / "captures"
    folder.mkdir()
    for name, when in (("old", 1_000_000), ("new", 2_000_000)):
        capture = save(folder / f"{name}.sqlite", *together(Agent(f"{name}.example", "192.0.2.1").run()))
        os.utime(indexed(capture), (when, when))
    with Terminal("-m", "inspector.cli", cwd=tmp_path) as terminal:
        terminal.wait_for("new.example")
        assert "old.example" not in terminal.text()


@pytest.mark.slow
def test_ascii_is_all_that_is_written(tmp_path: Path) -> None:
    capture = save(tmp_path / "c.sqlite", *together(Agent("a.example", "192.0.2.1", environment="prödüction").run()))
    with opened(indexed(capture), "--ascii") as terminal:
        terminal.wait_for("well")
        terminal.press("r")
        terminal.wait_for("pr?d?ction")
        for keys in (ENTER, "w", "w", " ", "\t", "\t", "?", ESCAPE, "\x10"):
            terminal.press(keys)
        terminal.wait_for("-----")  # what divides the panes
        assert max(terminal.drawn) < 0x80


def test_each_character_that_is_drawn_takes_as_many_cells_in_ascii() -> None:
    assert "│─┼▶●█…漢ü".translate(TABLE) == "|-+>*#~???"
    assert "plain text".translate(TABLE) == "plain text"


@pytest.mark.slow
def test_without_colour_words_and_letters_say_it(tmp_path: Path) -> None:
    with opened(sample("compile-error", tmp_path), environment={"NO_COLOR": "1"}) as terminal:
        terminal.wait_for("node1.example failed")
        terminal.press("r")
        terminal.wait_for("2E")
        text = terminal.text()
        assert re.search(r"P━*\.*K━*R━*", text.replace(" ", ""))
        assert "failed" in text
        assert "2E" in text
        colours = {int(found) for found in re.findall(rb"\x1b\[[0-9;]*?38;2;(\d+);\d+;\d+", bytes(terminal.drawn))}
        greys = re.findall(rb"[34]8;2;(\d+);(\d+);(\d+)", bytes(terminal.drawn))
        assert all(red == green == blue for red, green, blue in greys), colours


@pytest.mark.slow
def test_what_was_captured_never_commands_the_terminal(tmp_path: Path) -> None:
    hostile = [record for record in hostile_records() if isinstance(record, (Exchange, Gap))]
    agent = Agent("a.example", "192.0.2.1", time=START + 100).run()
    capture = save(tmp_path / "c.sqlite", *hostile, *together(agent))
    with opened(indexed(capture)) as terminal:
        terminal.wait_for("All runs")
        for keys in ("r", "\x1b[H", ENTER, ENTER, "2", "3", "4", "5", "6", ESCAPE, "w", ESCAPE, "L", ENTER, ESCAPE):
            terminal.press(keys)
        terminal.wait_for("\\x1b[2J")  # it is shown,
        drawn = bytes(terminal.drawn)
    assert b"\x1b[2J" not in drawn.replace(b"\x1b[2J\x1b[H", b"")  # and not sent
    assert b"\x07" not in re.sub(rb"\x1b\][^\x07]*\x07", b"", drawn)
    assert all(char not in drawn.decode(errors="replace") for char in HOSTILE if ord(char) > 0x200)


@pytest.mark.slow
def test_a_proxy_and_the_inspector_at_the_same_capture(tmp_path: Path) -> None:
    path = tmp_path / "live.sqlite"
    first, second = Agent("a.example", "192.0.2.1").run(), Agent("b.example", "192.0.2.2", time=START + 60).run("u-b")
    records = together(first, second)
    with Capture.create(path) as proxy:
        keep(proxy, records[0])
        with opened(path) as terminal:
            terminal.wait_for("All runs")
            terminal.press("r")
            terminal.wait_for("a.example")
            terminal.wait_for("being written")
            at = len(terminal.drawn)
            keep(proxy, *records[1:])
            terminal.wait_for("b.example", at)
            terminal.press(LAST)
            terminal.press(ENTER)
            terminal.wait_for("run 2 of b.example")
            terminal.press("q")
            assert terminal.exit_status() == 0
