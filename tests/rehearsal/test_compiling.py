"""One node: a busy master, several masters, the names of connections."""

from __future__ import annotations

import threading
from email.utils import formatdate
from typing import TYPE_CHECKING

import pytest

from inspector.model import Request, Response
from inspector.rehearsal import compiling, requests
from inspector.rehearsal.client import Target
from inspector.rehearsal.compiling import Question, Role, Task
from tests.support.rehearsals import NODE, OF, compiled, identity_of, new_master

if TYPE_CHECKING:
    from pathlib import Path


def test_a_busy_master_is_asked_again(tmp_path: Path) -> None:
    left = [2]

    def busy(_: Request) -> Response | None:
        left[0] -= 1
        return Response(status=503, headers=(("Retry-After", "0"),)) if left[0] >= 0 else None

    with new_master(tmp_path, before=busy) as master:
        found = compiled(master)
    (exchange,) = found.exchanges[Role.PLAIN]
    assert exchange.response is not None
    assert exchange.response.status == 200
    assert len(master.received) == 3


def test_a_master_that_stays_busy_is_left(tmp_path: Path) -> None:
    busy = Response(status=503, headers=(("Retry-After", "0"),))
    with new_master(tmp_path, before=lambda _: busy) as master:
        found = compiled(master)
    (exchange,) = found.exchanges[Role.PLAIN]
    assert exchange.response is not None
    assert exchange.response.status == 503
    assert len(master.received) == compiling.ATTEMPTS


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("7", 7.0),
        ("99999999999999999999", 1800.0),
        ("soon", 4.0),
        ("²", 4.0),
        ("", 4.0),
        (formatdate(0.0, usegmt=True), 0.0),
    ],
)
def test_retry_after(text: str, seconds: float) -> None:
    assert compiling.retry_after(Response(status=503, headers=(("Retry-After", text),)), 4.0) == seconds


def test_each_question_goes_to_its_own_master(tmp_path: Path) -> None:
    with new_master(tmp_path) as master:
        gone = Target("localhost", 1, master.tool.ca, 30.0)
        found = compiled(master)
        task = Task(NODE, OF, {Role.OLD: Question(gone, requests.as_recorded(OF))}, *identity_of(master), files=False)
        failed = compiling.compile_all(task, threading.Event())
    assert (list(found.exchanges), found.unreachable) == ([Role.PLAIN], "")
    assert (failed.exchanges, failed.unreachable) == ({}, "no connection to localhost:1: Connection refused")
    assert [role for role in Role if role.of_old] == [Role.OLD, Role.OLD_AGAIN]


def test_the_name_of_a_connection_says_what_it_was_for() -> None:
    assert compiling.read_name(f"{compiling.connection_name('a#b.example', Role.AGAIN)}.2/agent") == (
        "a#b.example", Role.AGAIN,
    )  # fmt: skip
    assert compiling.read_name("a.example/1") is None
    assert compiling.read_name("a#other.1/agent") is None
