"""Limits on what a peer may send, at mitmproxy's own connection classes, without a network."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from mitmproxy.http import Headers
from mitmproxy.proxy import commands, events
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers.http._base import ReceiveHttp
from mitmproxy.proxy.layers.http._events import ErrorCode, ResponseProtocolError
from mitmproxy.test import taddons, tflow, tutils

from inspector.proxy.limits import BUSY, HEAD, INTERIM, LINE, LINES
from inspector.proxy.mitm import fence

GET = b"GET / HTTP/1.1\r\nHost: n\r\n"


def served() -> Any:
    """The connection of an agent."""
    with taddons.context() as running:  # type: ignore[no-untyped-call]
        context = Context(tflow.tclient_conn(), running.options)
    connection: Any = fence.FencedServer(context)
    list(connection.handle_event(events.Start()))
    return connection


def send(connection: Any, data: bytes, size: int = 0) -> list[Any]:
    """Send data, in pieces of this size, until the connection is closed; return the commands."""
    sent: list[Any] = []
    for at in range(0, len(data), size or len(data)):
        received = events.DataReceived(connection.conn, data[at : at + (size or len(data))])
        sent += connection.handle_event(received)
        if any(isinstance(command, commands.CloseConnection) for command in sent):
            break
    return sent


def statuses(sent: list[Any]) -> list[int]:
    """The statuses of the answers among these commands."""
    return [int(command.data.split()[1]) for command in sent if isinstance(command, commands.SendData)]


def names(sent: list[Any]) -> list[str]:
    """The HTTP events among these commands."""
    return [type(command.event).__name__ for command in sent if isinstance(command, ReceiveHttp)]


@pytest.mark.parametrize("size", [0, 1, 7])
def test_an_ordinary_request_passes_in_any_pieces(size: int) -> None:
    assert names(send(served(), GET + b"Content-Length: 2\r\n\r\nab", size)) == [
        "RequestHeaders",
        *["RequestData"] * (2 if size == 1 else 1),
        "RequestEndOfMessage",
    ]


def test_as_many_headers_as_are_allowed_pass() -> None:
    headers = b"".join(b"X-%d: 1\r\n" % number for number in range(LINES - 2))
    assert names(send(served(), GET + headers + b"\r\n"))[0] == "RequestHeaders"


@pytest.mark.parametrize("size", [0, 4096])
@pytest.mark.parametrize(
    ("head", "status"),
    [
        (GET + b"X: " + b"a" * HEAD, 431),
        (GET + b"X: " + b"a" * HEAD + b"\r\n\r\n", 431),
        (b"a" * (HEAD + 1), 431),
        (GET + b"X: 1\r\n" * LINES, 431),
        (GET + b"X: 1\r\n" * LINES + b"\r\n", 431),
        (GET + b"X: 1\r\n a\r\n\r\n", 400),
        (GET + b"X: 1\n\ta\n\n", 400),
        (b"GET / HTTP/1.1\r\n a\r\n\r\n", 400),
        (b"\n" * (HEAD * 2), 431),
        (b"\r\n" * HEAD, 431),
    ],
)
def test_what_exceeds_a_limit_gets_one_answer(head: bytes, status: int, size: int) -> None:
    connection = served()
    sent = send(connection, head, size)
    assert statuses(sent) == [status]
    assert sum(isinstance(command, commands.CloseConnection) for command in sent) == 1
    assert names(sent) == []
    assert not connection.buf, "nothing of it stays in memory"


def test_each_byte_of_a_head_is_examined_once() -> None:
    examined = 0

    class Counting(bytearray):
        def find(self, *arguments: Any) -> int:
            nonlocal examined
            at = super().find(*arguments)
            examined += (at if at >= 0 else len(self)) - arguments[1]
            return at

    head, data = fence.Head(), Counting()
    for _ in range(20_000):
        data += b"a"
        assert head.excess(data) is None
    assert examined == len(data)


def test_a_chunk_size_without_end_is_refused() -> None:
    sent = send(served(), GET + b"Transfer-Encoding: chunked\r\n\r\n" + b"1;" + b"a" * (LINE + 1))
    assert statuses(sent) == [400]
    assert names(sent) == ["RequestHeaders", "RequestProtocolError"]


def test_requests_sent_ahead_without_end_are_refused() -> None:
    connection = served()
    assert names(send(connection, GET + b"\r\n")) == ["RequestHeaders", "RequestEndOfMessage"]
    assert send(connection, GET + b"\r\n") == []
    sent = send(connection, b"a" * fence.AHEAD, 4096)
    assert names(sent) == ["RequestProtocolError"]
    assert sum(isinstance(command, commands.CloseConnection) for command in sent) == 1


def test_the_next_request_is_examined_like_the_first() -> None:
    connection = served()
    send(connection, GET + b"\r\n")
    connection.buf += GET + b"X: 1\r\n a\r\n\r\n"
    connection.state = connection.read_headers
    assert statuses(list(connection.read_headers(events.DataReceived(connection.conn, b"")))) == [400]


def test_what_is_begun_and_not_finished_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(fence, "time", SimpleNamespace(monotonic=lambda: now))
    connection = served()
    assert connection.stalled(now + 100) is None, "between requests"
    send(connection, GET)
    assert connection.stalled(now + 100) == ("head", 100)
    now += 10
    send(connection, b"X: 1\r\n")
    assert connection.stalled(now + 100) == ("head", 110), "since its first byte"
    send(connection, b"Content-Length: 9\r\n\r\n")
    now += 10
    send(connection, b"1")
    assert connection.stalled(now + 100) == ("body", 100), "since its last byte"
    now += 10
    connection.resume()
    assert connection.stalled(now + 100) == ("body", 100), "since it is read again"
    send(connection, b"23456789")
    assert connection.stalled(now + 100) is None, "the answer is awaited"
    assert fence.FencedServer.open[connection.context.client.id] is connection


def test_a_request_that_was_sent_ahead_counts_from_the_answer_on(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(fence, "time", SimpleNamespace(monotonic=lambda: now))
    connection = served()
    send(connection, GET + b"\r\n" + GET)
    now += 100
    connection.response = tutils.tresp(content=b"")
    list(connection.mark_done(response=True))
    assert connection.stalled(now + 1) == ("head", 1)


def test_a_masters_head_has_the_same_limits() -> None:
    with taddons.context() as running:  # type: ignore[no-untyped-call]
        context = Context(tflow.tclient_conn(), running.options)
    context.server = tflow.tserver_conn()
    connection: Any = fence.FencedClient(context)
    list(connection.handle_event(events.Start()))
    connection.stream_id, connection.request = 1, tflow.tflow().request
    sent = send(connection, b"HTTP/1.1 200 OK\r\n" + b"X: 1\r\n" * LINES)
    assert names(sent) == ["ResponseProtocolError"]
    assert statuses(sent) == [], "nothing is sent to the master"


# -- without a verified certificate -----------------------------------------------------------------------


class Limited:
    """What the limits of a connection without a verified certificate allow it."""

    def __init__(self, *, room: bool = True, size: int = 1000) -> None:
        self.room, self.size = room, size
        self.answering = False
        self.ended = 0
        self.refused: list[str] = []

    def begin(self) -> bool:
        return self.room

    def add(self, size: int) -> bool:
        self.size -= size
        return self.size >= 0

    def end(self) -> None:
        self.ended += 1

    def refuse(self, reason: str) -> None:
        self.refused.append(reason)


def limited(ticket: Limited) -> Any:
    """A connection with these limits."""
    connection = served()
    connection._ticket = ticket
    return connection


def test_requests_beyond_the_bytes_under_way_are_to_be_sent_again_later() -> None:
    for data in (GET, GET + b"Content-Length: 5000\r\n\r\n"):
        ticket = Limited()
        sent = send(limited(ticket), data + b"a" * 2000, 500)
        assert statuses(sent) == [503]
        assert b"\r\nRetry-After: 5\r\n" in next(c.data for c in sent if isinstance(c, commands.SendData))
        assert ticket.refused == [BUSY]


def test_what_is_under_way_is_given_back_with_the_answer() -> None:
    ticket = Limited()
    connection = limited(ticket)
    send(connection, GET + b"\r\n")
    assert (ticket.answering, ticket.ended) == (True, 0)
    connection.response = tutils.tresp(content=b"")
    list(connection.mark_done(response=True))
    assert ticket.ended == 1


def test_a_request_waits_until_there_is_room_for_it() -> None:
    ticket = Limited(room=False)
    connection = limited(ticket)
    assert [type(command) for command in send(connection, GET + b"\r\n")] == [commands.RequestWakeup]
    assert connection.waits()
    (wakeup,) = connection.handle_event(events.Wakeup(commands.RequestWakeup(0)))
    assert isinstance(wakeup, commands.RequestWakeup)
    ticket.room = True
    sent = list(connection.handle_event(events.Wakeup(wakeup)))
    assert names(sent) == ["RequestHeaders", "RequestEndOfMessage"]
    assert not connection.waits()


def test_a_request_that_waits_too_long_is_to_be_sent_again_later(monkeypatch: pytest.MonkeyPatch) -> None:
    ticket = Limited(room=False)
    connection = limited(ticket)
    (wakeup,) = send(connection, GET + b"\r\n")
    monkeypatch.setattr(fence, "PATIENCE", -1.0)
    assert statuses(list(connection.handle_event(events.Wakeup(wakeup)))) == [503]
    assert ticket.refused == [BUSY]


def test_who_leaves_while_a_request_waits_is_closed() -> None:
    connection = limited(Limited(room=False))
    send(connection, GET + b"\r\n")
    sent = list(connection.handle_event(events.ConnectionClosed(connection.conn)))
    assert [type(command) for command in sent] == [commands.CloseConnection]


# -- a master's answers -----------------------------------------------------------------------------------


def towards_master() -> Any:
    """The connection to a master that was sent a request."""
    with taddons.context() as running:  # type: ignore[no-untyped-call]
        context = Context(tflow.tclient_conn(), running.options)
    context.server = tflow.tserver_conn()
    connection: Any = fence.FencedClient(context)
    list(connection.handle_event(events.Start()))
    connection.stream_id, connection.request = 1, tflow.tflow().request
    return connection


@pytest.mark.parametrize("size", [0, 1, 7])
def test_interim_answers_are_left_out(size: int) -> None:
    early, answer = b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nab"
    sent = send(towards_master(), early * INTERIM + answer, size)
    assert names(sent)[0] == "ResponseHeaders"
    assert names(sent)[-1] == "ResponseEndOfMessage"
    (head,) = (command.event.response for command in sent if command.event.__class__.__name__ == "ResponseHeaders")
    assert head.status_code == 200


def test_interim_answers_without_end_are_refused() -> None:
    sent = send(towards_master(), b"HTTP/1.1 100 Continue\r\n\r\n" * (INTERIM + 1))
    assert names(sent) == ["ResponseProtocolError"]


def test_an_upgrade_is_no_interim_answer() -> None:
    assert names(send(towards_master(), b"HTTP/1.1 101 Switching Protocols\r\n\r\n"))[0] == "ResponseHeaders"


@pytest.mark.parametrize("side", ["agent", "master"])
def test_trailers_are_left_out(side: str) -> None:
    body = b"Transfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\nX: 1\r\n\r\n"
    if side == "agent":
        assert names(send(served(), GET + body)) == ["RequestHeaders", "RequestData", "RequestEndOfMessage"]
    else:
        sent = send(towards_master(), b"HTTP/1.1 200 OK\r\n" + body)
        assert names(sent) == ["ResponseHeaders", "ResponseData", "ResponseEndOfMessage"]


def test_trailers_without_end_are_refused() -> None:
    sent = send(towards_master(), b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n" + b"X: 1\r\n" * 20_000)
    assert names(sent)[-1] == "ResponseProtocolError"


@pytest.mark.parametrize("begun", [False, True])
def test_an_answer_that_is_broken_off_is_broken_off_for_the_agent(begun: bool) -> None:
    connection = served()
    send(connection, GET + b"\r\n")
    response = tutils.tresp(content=None, headers=Headers(((b"Content-Length", b"9"),)))
    stream = SimpleNamespace(flow=SimpleNamespace(response=response if begun else None), response_body_buf=b"half")
    connection.streams = {1: stream}
    error = ResponseProtocolError(1, "the master closed it", code=ErrorCode.GENERIC_SERVER_ERROR)
    data, close = connection.handle_event(error)
    assert isinstance(close, commands.CloseConnection)
    assert data.data.endswith(b"Content-Length: 9\r\n\r\nhalf") if begun else statuses([data]) == [502]
