"""A capture line by line while a proxy writes it."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from inspector.capture import paths
from inspector.capture.store import Capture
from inspector.errors import CaptureError, InspectorError
from inspector.model import Connection, Exchange, Gap, Handshake, Record
from inspector.summaries import follow
from inspector.summaries.follow import QUIET
from tests.support.captures import save
from tests.support.conversations import START, Agent, together

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from tests.conftest import Run


class Over(Exception):
    """Ends what would go on for ever."""


def add(path: Path, *records: Record) -> None:
    """What a proxy does that appends to a capture."""
    with Capture.create(path) as capture:
        for record in records:
            if isinstance(record, Exchange):
                capture.note(Connection(record.agent))
            elif isinstance(record, Handshake):
                capture.note(Connection(record.leg))
            capture.append(record)


def follow_lines(path: Path | None, *acts: Callable[[], object], text: str = "", everything: bool = False) -> list[str]:
    """The lines of ``follow``; the acts happen one after the other, each when there is nothing more to say."""
    lines: list[str] = []
    left = iter(acts)

    def pause() -> None:
        act = next(left, None)
        if act is None:
            raise Over
        act()

    with contextlib.suppress(Over):
        for line in follow.follow(path, text, everything=everything, pause=pause):
            lines += [line]
    return lines


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return save(tmp_path / "c.sqlite", *together(Agent().run()))


def failing() -> list[Record]:
    agent = Agent("b.example", "192.0.2.2", time=START + 60)
    agent.leg = "run"
    agent.plugins().catalog(status=500).report("failed")
    return together(agent)


def test_hostile_text_is_cleaned(run: Run, tmp_path: Path) -> None:
    agent = Agent("\x1b[2J").ask("GET", "/puppet/v3/catalog/\x1b]0;x\x07", status=500, body=b"\x1b[31m")
    path = save(tmp_path / "c.sqlite", *together(agent.refused("\x1b[1m")), Gap(START, "\x1b[5m\r\n"))
    out = run("list", path)[1] + run("list", path, "--json")[1] + "".join(follow_lines(path, everything=True))
    assert out.count("\\x1b") >= 3
    assert "\\u001b" in out
    assert not set("\x1b\x07\r") & set(out)


@pytest.mark.parametrize("command", ["runs", "list", "follow"])
def test_a_filter_that_is_none(run: Run, path: Path, command: str) -> None:
    status, out, err = run(command, path, "--filter", "statsu:404")
    assert (status, out) == (2, "")
    assert "A filter has no key 'statsu'." in err
    assert "status:>=400" in err


def test_follow_begins_at_the_end_and_tells_what_comes(path: Path) -> None:
    lines = follow_lines(path, lambda: add(path, *failing()[:3]), lambda: None, lambda: add(path, *failing()[3:]))
    assert [line.split()[0] for line in lines[:5]] == ["7", "8", "9", "10", "11"]
    assert "POST catalog/~" in lines[3]
    assert lines[5].startswith("== run 2 of b.example (7.23.0): failed in")
    assert lines[6].startswith("run 2: b.example failed: ")
    assert lines[7].startswith("  do: ")
    assert len(lines) == 8


def test_follow_from_the_beginning(path: Path) -> None:
    lines = follow_lines(path, lambda: add(path, *failing()[:1]), everything=True)
    assert [line.split()[0] for line in lines] == ["1", "2", "3", "4", "5", "6", "==", "7"]
    assert lines[6].startswith("== run 1 of a.example (7.23.0): complete in")


def test_follow_filters_lines_and_runs(path: Path) -> None:
    def act() -> None:
        add(path, *failing(), *together(Agent("z.example", "192.0.2.9", time=START + 80).run("u-z")))

    lines = follow_lines(path, act, text="status:>=400", everything=True)
    assert [line.split()[0] for line in lines] == ["10", "==", "run", "do:"]
    assert follow_lines(path, text="agent:nobody", everything=True) == []
    assert [line[:8] for line in follow_lines(path, text="complete agent:z*", everything=True)] == ["== run 3"]


def test_a_silent_run_is_summed_up_once(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("inspector.summaries.follow.time.monotonic", lambda: now[0])
    waits = together(Agent("w.example", "192.0.2.8", time=START + 60).ca().crl().csr().poll())

    def later() -> None:
        now[0] += QUIET

    lines = follow_lines(path, lambda: add(path, *waits), lambda: None, later, later, later)
    assert [line.split()[0] for line in lines] == ["7", "8", "9", "10", "==", "run", "do:"]
    assert "w.example (7.23.0): waiting" in lines[4]


def test_a_deleted_capture_is_reported_and_the_next_one_is_followed(path: Path) -> None:
    def delete() -> None:
        path.unlink()

    lines = follow_lines(path, delete, lambda: None, lambda: save(path, *failing()), lambda: None)
    assert lines[0] == f"-- {path} was deleted"
    assert [line.split()[0] for line in lines[1:6]] == ["1", "2", "3", "4", "5"]
    assert lines[6].startswith("== run 1 of b.example")


@pytest.mark.parametrize("number", [2, 9])
def test_a_replaced_capture_is_reported(path: Path, tmp_path: Path, number: int) -> None:
    other = save(tmp_path / "other", *together(Agent().run(), Agent("b.example", "192.0.2.2").run("u-b"))[:number])
    lines = follow_lines(path, lambda: other.rename(path), lambda: None)
    assert lines[0] == f"-- {path} was replaced by another capture"
    assert sum(line[:7].strip().isdigit() for line in lines) == number


def test_a_capture_that_is_made_anew_in_place_is_noticed(path: Path, tmp_path: Path) -> None:
    other = save(tmp_path / "other", *failing()[:2])
    lines = follow_lines(path, lambda: path.write_bytes(other.read_bytes()), lambda: None)
    assert lines[0] == f"-- {path} was replaced by another capture"
    assert [line.split()[0] for line in lines[1:]] == ["1", "2"]


def test_an_unreadable_capture_is_borne_with_for_a_while(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = [1000.0]
    monkeypatch.setattr("inspector.summaries.follow.time.monotonic", lambda: now[0])
    good = path.read_bytes()

    def later() -> None:
        now[0] += follow.PATIENCE - 1

    lines = follow_lines(path, lambda: path.write_bytes(b"no capture " * 50), later, lambda: path.write_bytes(good),
                         later, lambda: add(path, *failing()[:1]))  # fmt: skip
    assert [line.split()[0] for line in lines] == ["7"]
    with pytest.raises(CaptureError, match="is not a capture"):
        follow_lines(path, lambda: path.write_bytes(b"no capture " * 50), later, later, later)


def test_without_a_name_the_latest_capture_is_followed_and_every_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InspectorError, match="There is no capture in captures/"):
        paths.newest()
    old = save(tmp_path / "captures" / "z-old.sqlite", *together(Agent().run()))
    young = save(tmp_path / "captures" / "a-young.sqlite", *together(Agent().run())[:1])
    os.utime(old, (1, 1))
    assert paths.newest().name == young.name
    new = tmp_path / "captures" / "b-new.sqlite"
    lines = follow_lines(None, lambda: add(young, *failing()[:1]), lambda: save(new, *failing()[:2]))
    assert [line.split()[0] for line in lines] == ["2", "--", "1", "2"]
    assert lines[1] == "-- new capture: captures/b-new.sqlite"
    assert [line[:2] for line in follow_lines(young, lambda: save(tmp_path / "captures" / "n.sqlite"))] == []


def test_follow_leaves_nothing_beside_a_capture(path: Path) -> None:
    follow_lines(path, lambda: add(path, *failing()), lambda: None, everything=True)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


# -- as a process --------------------------------------------------------------------------------------


def begin(path: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "inspector.cli", "follow", str(path), *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def test_in_a_pipe_every_line_comes_at_once_and_ctrl_c_ends_it(path: Path) -> None:
    process = begin(path, "--all", "--filter", "phase:catalog")
    assert process.stdout
    assert "POST catalog/~" in process.stdout.readline()
    assert process.stdout.readline().startswith("== run 1")
    add(path, *failing())
    assert "b.example" in process.stdout.readline()
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=300)
    assert (process.returncode, err) == (130, "")


def test_it_ends_when_nobody_reads_any_more(path: Path) -> None:
    process = begin(path, "--all")
    assert process.stdout
    assert process.stderr
    process.stdout.readline()
    process.stdout.close()  # and nothing more is written to the capture
    assert process.wait(timeout=300) == 0
    assert process.stderr.read() == ""
    process.stderr.close()
