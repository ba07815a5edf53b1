"""When connections are handed over, and when a tap ends."""

from __future__ import annotations

import shutil
from collections import namedtuple
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from inspector.errors import InspectorError
from inspector.proxy.tap import supervision
from inspector.proxy.tap.access_log import AccessLog, Share
from inspector.proxy.tap.plan import DIRECT
from inspector.proxy.tap.supervision import Goal, Supervisor
from inspector.proxy.tap.watch import Beat

if TYPE_CHECKING:
    from pathlib import Path

FAILED = '192.0.2.8 - - [26/Nov/2026:17:00:02 +0000] "PUT /puppet/v3/report/web2.example HTTP/1.1" 403 1\n'
Usage = namedtuple("Usage", "total used free")


@dataclass
class Kernel:
    """The table, the proxy's process, what it answers, and what agents are verified by; notes what is done."""

    beats: list[Beat]
    done: list[str] = field(default_factory=list)
    error: str | None = None
    ended: bool = False
    gone: bool = False
    log: AccessLog = field(default_factory=lambda: AccessLog(None))
    before: Share = field(default_factory=Share)

    @property
    def trust(self) -> Kernel:
        return self

    def renew(self) -> None:
        if self.gone:
            raise InspectorError("no such table")
        self.done.append("renew")

    def withdraw(self) -> None:
        if self.gone:
            raise InspectorError("no such table")
        self.done.append("withdraw")

    def exempt(self, host: str) -> None:
        if self.gone:
            raise InspectorError("no such table")
        self.done.append(f"exempt {host}")

    def poll(self) -> int | None:
        return 1 if self.ended else None

    def kill(self) -> None:
        self.done.append("kill")

    def ask(self) -> Beat:
        return self.beats.pop(0)

    def refresh(self) -> None:
        pass

    def problems(self, _: float) -> list[str]:
        return []


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """A second passes with each look."""
    now = [0.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


def tap(kernel: Kernel, folder: Path, clock: list[float], goal: Goal | None = None) -> tuple[Supervisor, list[str]]:
    lines: list[str] = []
    parts: Any = kernel
    made = Supervisor(parts, parts, parts, parts, folder / "capture.sqlite", goal or Goal(1000), lines.append)

    def wait(_: float) -> bool:
        clock[0] += 1
        if not kernel.beats:
            made.stopped.set()
        return False

    made.stopped.wait = wait  # type: ignore[method-assign, assignment]
    return made, lines


GOOD, AWAY, SILENT = Beat.ANSWERED, Beat.MASTER_AWAY, Beat.SILENT


def test_it_is_renewed_after_each_answer_and_withdrawn_at_the_end(tmp_path: Path, clock: list[float]) -> None:
    kernel = Kernel([GOOD] * 3)
    made, _ = tap(kernel, tmp_path, clock)
    assert made.run() == ("asked to", True)
    assert kernel.done == ["renew"] * 3 + ["withdraw"]


def test_one_look_may_be_missed_and_two_end_the_proxy(tmp_path: Path, clock: list[float]) -> None:
    kernel = Kernel([GOOD, SILENT, GOOD, SILENT, SILENT, GOOD])
    made, _ = tap(kernel, tmp_path, clock)
    assert made.run() == ("the proxy did not answer 2 times", False)
    assert kernel.done == ["renew", "renew", "withdraw", "kill", "withdraw"]


def test_without_a_master_it_is_direct_until_there_is_one(tmp_path: Path, clock: list[float]) -> None:
    kernel = Kernel([GOOD, AWAY, AWAY, SILENT, AWAY, GOOD])
    made, lines = tap(kernel, tmp_path, clock)
    made.run()
    assert kernel.done == ["renew", "withdraw", "withdraw", "withdraw", "renew", "withdraw"]
    assert lines == [
        "-- the master does not answer: connections are direct until it does", "-- the master answers again",
    ]  # fmt: skip


def test_who_cannot_be_served_when_the_table_is_gone_is_direct_anyway(tmp_path: Path, clock: list[float]) -> None:
    """At the end the proxy goes on for a while, and its lines are read."""
    made, lines = tap(Kernel([], gone=True), tmp_path, clock)
    made.read(f"{DIRECT}192.0.2.7: it refused")
    assert lines == [f"{DIRECT}192.0.2.7: it refused"]


def test_a_proxy_that_has_ended(tmp_path: Path, clock: list[float]) -> None:
    kernel = Kernel([GOOD], ended=True)
    made, _ = tap(kernel, tmp_path, clock)
    assert made.run() == ("the proxy has ended", False)
    assert kernel.done == ["withdraw"]


def test_a_table_that_another_program_takes_away(tmp_path: Path, clock: list[float]) -> None:
    kernel = Kernel([GOOD] * 3, gone=True)
    made, _ = tap(kernel, tmp_path, clock)
    assert made.run() == ("the host's rules were changed by another program: no such table", False)


@pytest.mark.parametrize(
    ("goal", "lines", "reason"),
    [
        (Goal(2), (), "the time is over"),
        (
            Goal(1000, runs=2),
            ("== run 1 of a.example (7.23.0): complete", "== run 2 of b.example; x"),
            "2 runs are over",
        ),
        (Goal(1000, until="b.example"), ("== run 2 of b.example (8.1.0): failed",), "b.example has run"),
        (Goal(1000, until="b.example"), ("== run 2 of b.example: refused in 0 ms",), "b.example has run"),
    ],
)
def test_a_goal_that_is_reached(
    goal: Goal, lines: tuple[str, ...], reason: str, tmp_path: Path, clock: list[float]
) -> None:
    made, _ = tap(Kernel([GOOD] * 9), tmp_path, clock, goal)
    for line in lines:
        made.read(line)
    assert made.run() == (reason, True)


def test_who_cannot_be_served_is_direct(tmp_path: Path, clock: list[float]) -> None:
    kernel = Kernel([GOOD])
    made, lines = tap(kernel, tmp_path, clock)
    for _ in range(2):
        made.read(f"{DIRECT}192.0.2.7: it refused: the certificate")
    made.read("17:37:18.756  web1.example  plugins  GET")
    assert kernel.done == ["exempt 192.0.2.7"]
    assert lines == [f"{DIRECT}192.0.2.7: it refused: the certificate"]
    assert made.direct == {"192.0.2.7": "it refused: the certificate"}


@pytest.mark.parametrize("trouble", ["trust", "disk", "size", "failures", "addresses"])
def test_what_ends_it_by_itself(
    trouble: str, tmp_path: Path, clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    kernel = Kernel([GOOD])
    made, _ = tap(kernel, tmp_path, clock)
    match trouble:
        case "trust":
            kernel.error, expected = "There is no CRL", "agents cannot be verified: There is no CRL"
        case "disk":
            monkeypatch.setattr(shutil, "disk_usage", lambda _: Usage(10**12, 91 * 10**10, 9 * 10**10))
            expected = f"{tmp_path} is nearly full"
        case "addresses":
            monkeypatch.setattr(supervision, "MOST", 2)
            for host in ("192.0.2.1", "192.0.2.2", "192.0.2.3"):
                made.read(f"{DIRECT}{host}: it refused")
            assert kernel.done == ["exempt 192.0.2.1", "exempt 192.0.2.2"]
            kernel.done.clear()
            expected = "2 addresses could not be served"
        case "failures":
            (tmp_path / "log").write_text(FAILED * 12)
            kernel.log = AccessLog(tmp_path / "log")
            expected = "12 of 12 requests failed, clearly more than before it began"
        case _:
            monkeypatch.setattr(supervision, "LARGEST", 5)
            made.capture.write_bytes(b"123456")
            expected = f"{made.capture} is as large as it may become"
    assert made.run() == (expected, False)
    assert kernel.done == ["withdraw"]
