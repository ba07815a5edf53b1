"""An answer with an addition: the agent gets it, the record has the master's own."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from inspector.capture.spool import KEEP
from inspector.model import Exchange, Identity, Leg
from inspector.proxy.bodies import Copies
from inspector.proxy.connect.interception import ADDED, Addition
from inspector.proxy.engine import exchange as module
from inspector.proxy.engine import framing
from inspector.proxy.engine.exchange import OpenExchange
from inspector.proxy.engine.framing import Reader, Refused
from inspector.proxy.faults import actions
from inspector.proxy.faults.injection import Injection

if TYPE_CHECKING:
    from pathlib import Path

GET = b"GET /puppet-ca/v1/certificate/ca HTTP/1.1\r\nHost: puppet\r\n\r\n"
THEIRS, OURS = b"their certificate\n", b"our certificate\n"
LENGTH = b"Content-Length: %d\r\n" % len(THEIRS)
CHUNKS = b"6\r\ntheir \r\nc\r\ncertificate\n\r\n0\r\n\r\n"


class Asked:
    """An exchange whose answer gets an addition."""

    def __init__(self, folder: Path, addition: Addition | None = None) -> None:
        requests, self.answers = Reader(), Reader()
        requests.feed(GET)
        head = requests.head(framing.request)
        assert head
        self.exchange = OpenExchange(head, time.time(), Copies(folder, KEEP))
        self.exchange.take_request(requests)
        self.exchange.addition = addition or Addition(OURS)

    def answered(self, *pieces: bytes) -> bytes:
        """What the agent gets when the master sends these."""
        passed_on = b""
        for piece in pieces:
            self.answers.feed(piece)
            passed_on += self.exchange.take_answer(self.answers)
        return passed_on

    @property
    def record(self) -> Exchange:
        return self.exchange.record(None, Leg("a", "agent"), Identity("keys"))[0]


@pytest.fixture
def asked(tmp_path: Path) -> Asked:
    return Asked(tmp_path)


def test_the_last_answer_on_a_connection(asked: Asked) -> None:
    """Its head is the master's but for what concerns the connection, and so is the record's."""
    asked.exchange.addition, asked.exchange.parts = None, True
    head = b"HTTP/1.1 200 OK\r\nKeep-Alive: timeout=5\r\nconnection: keep-alive\r\n" + LENGTH
    passed_on = asked.answered(head + b"X-Puppet-Version: 8.7.0\r\n\r\n" + THEIRS)
    assert passed_on == (
        b"HTTP/1.1 200 OK\r\n" + LENGTH + b"X-Puppet-Version: 8.7.0\r\nConnection: close\r\n\r\n" + THEIRS
    )
    assert asked.record.response
    assert ("connection", "keep-alive") in asked.record.response.headers


def body_of(answer: bytes) -> bytes:
    """The body of an answer, which must be one by its own headers."""
    reader = Reader()
    reader.feed(answer)
    head = reader.head(lambda data: framing.response(data, b"GET"))
    assert head
    body = reader.body()
    assert reader.complete
    assert reader.unread == 0
    return body


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nDate: now\r\n" + LENGTH + b"\r\n" + THEIRS,
        b"HTTP/1.1 200 OK\r\nDate: now\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKS,
    ],
    ids=["length", "chunks"],
)
@pytest.mark.parametrize("size", [1, 7, 10_000])
def test_the_agent_gets_more_than_is_recorded(size: int, answer: bytes, asked: Asked) -> None:
    got = asked.answered(*(answer[at : at + size] for at in range(0, len(answer), size)))
    assert got.startswith(b"HTTP/1.1 200 OK\r\nDate: now\r\n")
    assert body_of(got) == THEIRS + OURS
    record = asked.record
    assert record.response
    assert (record.response.body, record.added, record.error) == (THEIRS, ADDED, None)
    names = {name for name, _ in record.response.headers}
    assert names & {"Content-Length", "Transfer-Encoding"}, "the head is the master's own, too"


def test_nothing_is_passed_on_before_it_is_complete(asked: Asked) -> None:
    """Else its length would be wrong."""
    assert asked.answered(b"HTTP/1.1 200 OK\r\n" + LENGTH + b"\r\n", THEIRS[:-1]) == b""
    assert body_of(asked.answered(THEIRS[-1:])) == THEIRS + OURS


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 304 Not Modified\r\n\r\n",
        b"HTTP/1.1 404 Not Found\r\n" + LENGTH + b"\r\n" + THEIRS,
        b"HTTP/1.1 500 Server Error\r\nTransfer-Encoding: chunked\r\n\r\n" + CHUNKS,
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n" + LENGTH + b"\r\n" + THEIRS,
        b"HTTP/1.1 203 OK\r\n" + LENGTH + b"\r\n" + THEIRS,
    ],
)
def test_another_answer_stays_as_it_is(answer: bytes, asked: Asked) -> None:
    assert body_of(asked.answered(answer)) == body_of(answer)
    assert asked.exchange.ended is not None
    assert asked.record.added == ""


def test_an_answer_until_the_end_stays_as_it_is(asked: Asked) -> None:
    answer = b"HTTP/1.1 200 OK\r\nConnection: close\r\n\r\n" + THEIRS
    assert asked.answered(answer) == answer
    asked.exchange.ended = time.time()
    assert asked.record.added == ""


def test_a_bundle_of_another_digest_stays_as_it_is(tmp_path: Path) -> None:
    asked = Asked(tmp_path, Addition(OURS, "0" * 64))
    answer = b"HTTP/1.1 200 OK\r\n" + LENGTH + b"\r\n" + THEIRS
    assert body_of(asked.answered(answer)) == THEIRS
    assert asked.record.added == ""


def test_an_answer_that_is_too_large_is_refused(asked: Asked, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HELD", 100)
    asked.answered(b"HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n" + b"a" * 100)
    with pytest.raises(Refused, match="too large") as raised:
        asked.answered(b"a")
    assert raised.value.status == 502
    assert asked.record.added == ""


def test_an_answer_that_is_cut_off_on_purpose_has_its_head(asked: Asked) -> None:
    asked.exchange.injection = Injection(actions.make("cut", "5"), None, lambda: None)
    got = asked.answered(b"HTTP/1.1 200 OK\r\n" + LENGTH + b"\r\n", THEIRS)
    assert got == b"HTTP/1.1 200 OK\r\n" + LENGTH + b"\r\n" + THEIRS[:5]
    assert asked.record.added == ""
