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
from inspector.model import Connection, Exchange, Gap, Handshake, OpenConnection, OpenRequest, Present, Record
from inspector.summaries import filters, follow
from inspector.summaries.follow import Follower
from tests.support.captures import keep, save
from tests.support.conversations import START, Agent, together

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
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
    assert [line.split()[0] for line in lines[:6]] == ["7", "8", "9", "10", "ERROR", "11"]
    assert "POST catalog/~" in lines[3]
    assert lines[6].startswith("== run 2 of b.example (7.23.0): failed in")
    assert lines[7].startswith("run 2: b.example failed: ")
    assert lines[8].startswith("  do: ")
    assert len(lines) == 9


def test_follow_from_the_beginning(path: Path) -> None:
    lines = follow_lines(path, lambda: add(path, *failing()[:1]), everything=True)
    assert [line.split()[0] for line in lines] == ["1", "2", "3", "4", "5", "6", "==", "7"]
    assert lines[6].startswith("== run 1 of a.example (7.23.0): complete in")


def test_follow_filters_lines_and_runs(path: Path) -> None:
    def act() -> None:
        add(path, *failing(), *together(Agent("z.example", "192.0.2.9", time=START + 80).run("u-z")))

    lines = follow_lines(path, act, text="status:>=400", everything=True)
    assert [line.split()[0] for line in lines] == ["10", "ERROR", "==", "run", "do:"]
    assert follow_lines(path, text="agent:nobody", everything=True) == []
    assert [line[:8] for line in follow_lines(path, text="complete agent:z*", everything=True)] == ["== run 3"]


def test_a_deleted_capture_is_reported_and_the_next_one_is_followed(path: Path) -> None:
    def delete() -> None:
        path.unlink()

    lines = follow_lines(path, delete, lambda: None, lambda: save(path, *failing()), lambda: None)
    assert lines[0] == f"-- {path} was deleted"
    assert [line.split()[0] for line in lines[1:7]] == ["1", "2", "3", "4", "ERROR", "5"]
    assert lines[7].startswith("== run 1 of b.example")


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
    os.utime(young, (3, 3))
    for other in (new, new.with_name("n.sqlite")):
        os.utime(other, (2, 2))
    elsewhere = (tmp_path / "captures").rename(tmp_path / "elsewhere")
    newest = elsewhere / "c-newest.sqlite"
    lines = follow_lines(
        elsewhere, lambda: add(elsewhere / young.name, *failing()[1:2]), lambda: save(newest, *failing())
    )
    assert [line.split()[0] for line in lines][:3] == ["3", "--", "1"], "the same of another directory"


def test_follow_leaves_nothing_beside_a_capture(path: Path) -> None:
    follow_lines(path, lambda: add(path, *failing()), lambda: None, everything=True)
    assert [file.name for file in path.parent.iterdir()] == [path.name]


# -- what is under way ---------------------------------------------------------------------------------


class Recorded:
    """A capture that a proxy writes, and a clock."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.path = path
        self.capture = Capture.create(path)
        self.now = START
        self.over: list[tuple[str, str]] = []
        self.present()
        monkeypatch.setattr(follow, "LOOK", 0.0)
        monkeypatch.setattr("inspector.summaries.follow.time.time", lambda: self.now)
        self.begin()

    def begin(self, text: str = "", after: int = 0) -> None:
        """Follow it from now on."""
        self._follower = Follower(
            self.path, filters.parse(text), after=after,
            end_run=lambda run, brief: self.over.append((str(run.certname), brief.ending)),
        )  # fmt: skip

    def present(self, *requests: OpenRequest, open: tuple[str, ...] = ()) -> None:  # noqa: A002
        """Write what is under way, with the connections of these."""
        legs = dict.fromkeys((*open, *(request.leg for request in requests)))
        connections = tuple(OpenConnection(leg, self.now, "192.0.2.1", leg.partition("-")[0]) for leg in legs)
        self.capture.set_present(Present("open", self.now, requests, connections))
        self.capture.flush()

    def add(self, agent: Agent, done: int = 0) -> int:
        """Write an agent's records after the first ``done``; its clock is ours then."""
        keep(self.capture, *agent.records[done:])
        self.now = agent.time + 0.1
        return len(agent.records)

    def asks(self, agent: Agent, path: str, leg: str = "") -> OpenRequest:
        return OpenRequest(leg or f"{agent.certname}-{agent.leg}", self.now, "POST", agent.url(path))

    def after(self, seconds: float) -> list[str]:
        """The lines of these seconds, one by one."""
        lines = []
        for _ in range(int(seconds)):
            self.now += 1.0
            lines += self.look()
        return lines

    def look(self) -> list[str]:
        return [line.text for line in self._follower.look()]

    def end(self) -> list[str]:
        """The recording ends."""
        self.capture.set_present(Present("ended", self.now))
        self.capture.close()
        return [*self.look(), *(line.text for line in self._follower.sum_up())]


@pytest.fixture
def recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Recorded]:
    made = Recorded(tmp_path / "c.sqlite", monkeypatch)
    yield made
    made.capture.close()


def said(lines: list[str]) -> list[str]:
    """What agents do, without the time of day."""
    return [" ".join(line.split()[1:]) for line in lines if " ... " in line]


def test_a_long_compilation_is_said_and_nothing_else(recorded: Recorded) -> None:
    agent = Agent(leg="1").node().plugins()
    done = recorded.add(agent)
    recorded.present(recorded.asks(agent, "catalog/a.example"))
    recorded.look()
    lines = recorded.after(70)
    assert said(lines) == [f"a.example ... waits for its catalog, {seconds} s so far" for seconds in (5, 15, 60)]
    assert len(lines) == 3
    agent.time = recorded.now
    recorded.add(agent.catalog().report(), done)
    recorded.present()
    lines = recorded.look()
    assert [line.split()[0] for line in lines[2:]] == ["=="]
    assert "complete" in lines[2]


def test_what_took_long_before_is_said_with_it(recorded: Recorded) -> None:
    first = Agent(leg="1").node().plugins().wait(12).catalog().wait(30).report()
    recorded.add(first)
    again = Agent(leg="2", time=first.time + 1800, uuid="u-2").node().plugins()
    done = recorded.add(again)
    recorded.present(open=("a.example-2",))
    recorded.look()
    assert said(recorded.after(6)) == ["a.example ... gathers facts, 5 s (12 s last time)"]
    again.time = recorded.now
    recorded.add(again.catalog(), done)
    recorded.present(open=("a.example-2",))
    assert said(recorded.after(16)) == [
        f"a.example ... applies its catalog, {took} s (30 s last time)" for took in (5, 15)
    ]


def test_without_a_connection_an_agent_may_have_ended(recorded: Recorded) -> None:
    recorded.add(Agent(leg="1").node().plugins())
    recorded.present()
    recorded.look()
    assert said(recorded.after(6)) == ["a.example ... gathers facts, or has ended, 5 s"]


def test_a_run_is_over_when_its_agent_begins_another_one(recorded: Recorded) -> None:
    recorded.add(Agent(leg="1").node().plugins().catalog())
    recorded.present(open=("a.example-1",))
    recorded.look()
    assert recorded.over == []
    assert len(recorded.after(20)) == 2  # it applies its catalog
    recorded.add(Agent(leg="2", time=recorded.now, uuid="u-2").node())
    lines = recorded.look()
    assert lines[1].startswith("== run 1 of a.example (7.23.0): unfinished in")
    assert "did not finish" in lines[2]
    assert recorded.over == [("a.example", "unfinished")]


def test_a_bootstrap_by_hand_is_one_when_its_agent_begins_a_run(recorded: Recorded) -> None:
    """As when it is read afterwards."""
    recorded.add(Agent(leg="1").bootstrap())
    recorded.look()
    recorded.add(Agent(leg="2", time=recorded.now + 60).node())
    (summed,) = [line for line in recorded.look() if line.startswith("== run 1")]
    assert summed.startswith("== run 1 of a.example (7.23.0): complete in")
    assert recorded.over == [("a.example", "complete")]


def test_a_run_is_over_after_more_silence_than_its_agent_ever_needed(recorded: Recorded) -> None:
    first = Agent(leg="1").node().plugins().wait(40).catalog().report()
    recorded.add(first)
    recorded.add(Agent(leg="2", time=first.time + 1800, uuid="u-2").node().plugins())
    recorded.present()
    recorded.look()
    assert not any(line.startswith("== ") for line in recorded.after(118))
    (summed,) = [line for line in recorded.after(4) if line.startswith("== ")]
    assert summed.startswith("== run 2 of a.example (7.23.0): unfinished in")
    assert recorded.over == [("a.example", "complete"), ("a.example", "unfinished")]


def test_a_run_that_goes_on_nevertheless_is_counted_once(recorded: Recorded) -> None:
    agent = Agent(leg="1").ca().crl()
    done = recorded.add(agent)
    recorded.present()
    recorded.look()
    recorded.now += 100
    recorded.look()
    assert recorded.over == [("None", "unfinished")]
    agent.time = recorded.now
    recorded.add(agent.csr().issued().plugins().catalog().report(), done)
    assert recorded.look()[-1].startswith("== run 1 of a.example (7.23.0): complete")
    assert len(recorded.over) == 1


def test_a_request_that_waits_to_be_signed_is_told_once_however_often_it_is_asked_for(recorded: Recorded) -> None:
    agent = Agent(leg="1").ca().crl().csr().poll()
    done = recorded.add(agent)
    recorded.present()
    assert len(recorded.look()) == 4
    lines = recorded.after(7)
    assert [line.split()[0] for line in lines if " ... " not in line] == ["==", "run", "do:"]
    for _ in range(3):
        agent.time = recorded.now + 115
        done = recorded.add(agent.poll(), done)
        assert [line for line in recorded.after(5) if " ... " not in line and " GET " not in line] == []
    assert recorded.over == []


def test_what_was_under_way_when_the_recording_ended_has_no_verdict(recorded: Recorded) -> None:
    recorded.add(Agent(leg="1").node().plugins())
    recorded.present(open=("a.example-1",))
    recorded.look()
    lines = recorded.end()
    assert len(lines) == 1
    assert lines[0].startswith("== run 1 of a.example (7.23.0): under way when the recording ended, after 350 ms;")
    assert recorded.over == [("a.example", "cut off")]


def test_a_refusal_that_explains_it_has_its_verdict_also_then(recorded: Recorded) -> None:
    recorded.add(Agent(leg="1").node().plugins().catalog(status=500))
    recorded.present(open=("a.example-1",))
    recorded.look()
    lines = recorded.end()
    assert lines[0].startswith("== run 1 of a.example (7.23.0): failed in")
    assert lines[1].startswith("run 1: a.example failed: ")


def test_an_error_is_said_below_its_record_once(recorded: Recorded) -> None:
    agent = Agent(leg="1").node().plugins().catalog(status=500).catalog(status=500)
    recorded.add(agent)
    recorded.present(open=("a.example-1",))
    lines = recorded.look()
    at = next(place for place, line in enumerate(lines) if " catalog/~ " in line)
    assert lines[at + 1].startswith("  ERROR S")
    assert sum(line.startswith("  ERROR") for line in lines) == 1


def test_a_filter_holds_for_what_is_under_way_too(recorded: Recorded) -> None:
    recorded.begin("agent:b*")
    recorded.add(Agent(leg="1").node().plugins())
    recorded.add(Agent("b.example", "192.0.2.2", leg="1", time=recorded.now, uuid="u-b").node().plugins())
    recorded.present(open=("a.example-1", "b.example-1"))
    recorded.look()
    assert said(recorded.after(6)) == ["b.example ... gathers facts, 5 s"]


def test_who_begins_to_follow_is_told_what_is_under_way_and_nothing_of_what_was_over(recorded: Recorded) -> None:
    recorded.add(Agent("c.example", "192.0.2.3", leg="1").node())
    done = recorded.add(Agent(leg="1", time=recorded.now + 4000).node().plugins())
    recorded.present(open=("a.example-1",))
    recorded.begin(after=done + 1)
    recorded.now += 10
    assert said(lines := recorded.look()) == ["a.example ... gathers facts, 10 s"]
    assert len(lines) == 1


def test_a_capture_that_tells_nothing_is_judged_by_its_records(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """One of an earlier version, or an import."""
    now = [START + 61.0]
    monkeypatch.setattr(follow, "LOOK", 0.0)
    monkeypatch.setattr("inspector.summaries.follow.time.time", lambda: now[0])
    follower = Follower(path, filters.parse(""))
    list(follower.look())
    add(path, *together(Agent("w.example", "192.0.2.8", time=START + 60).node()))
    assert len(list(follower.look())) == 1
    now[0] += 3601
    assert [line.text.split()[0] for line in follower.look()] == ["==", "run", "do:"]


# -- as a process --------------------------------------------------------------------------------------


def begin(path: Path, *arguments: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "inspector.cli", "follow", str(path), *arguments],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


@pytest.mark.slow
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


@pytest.mark.slow
def test_it_ends_when_nobody_reads_any_more(path: Path) -> None:
    process = begin(path, "--all")
    assert process.stdout
    assert process.stderr
    process.stdout.readline()
    process.stdout.close()  # and nothing more is written to the capture
    assert process.wait(timeout=300) == 0
    assert process.stderr.read() == ""
    process.stderr.close()
