"""What mitmproxy may read of a peer, without a network; and that mitmproxy itself has no such limits."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from mitmproxy.proxy import commands, events
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers.http import _http1
from mitmproxy.proxy.layers.http._base import ReceiveHttp
from mitmproxy.proxy.layers.http._events import ResponseHeaders
from mitmproxy.test import taddons, tflow
from OpenSSL import SSL

from inspector.proxy.engine.framing import Refused
from inspector.proxy.limits import BUSY, FRAMING, HEAD, INTERIM, LINE, LINES
from inspector.proxy.mitm import fence

GET = b"GET / HTTP/1.1\r\nHost: n\r\n"
CHUNKED = b"Transfer-Encoding: chunked\r\n\r\n"
PUT = GET.replace(b"GET", b"PUT") + CHUNKED
OK = b"HTTP/1.1 200 OK\r\n"
LAST = b"0\r\n\r\n"


class Tls:
    """OpenSSL's connection: what arrives, and what is sent."""

    def __init__(self) -> None:
        self.arriving: list[bytes] = []
        self.sent = b""

    def bio_write(self, data: bytes) -> int:
        self.arriving.append(data)
        return len(data)

    def recv(self, _size: int) -> bytes:
        if not self.arriving:
            raise SSL.WantReadError
        return self.arriving.pop(0)

    def sendall(self, data: bytes) -> None:
        self.sent += data


class Limited:
    """What the limits of a connection allow it."""

    def __init__(self, size: int = 2**30) -> None:
        self.size, self.answering = size, False
        self.refused: list[str] = []

    def add(self, size: int) -> bool:
        self.size -= size
        return self.size >= 0

    def refuse(self, reason: str) -> None:
        self.refused.append(reason)


def agent(ticket: Limited | None = None) -> Any:
    """The connection with an agent."""
    tls: Any = Tls()
    return fence.FencedAgent(tls, fence.Exchange(ticket or Limited()))  # type: ignore[arg-type]


def master(method: bytes = b"GET") -> Any:
    """The connection to a master that was sent a request."""
    tls: Any = Tls()
    exchange = fence.Exchange(Limited())  # type: ignore[arg-type]
    exchange.begin(method)
    return fence.FencedMaster(tls, exchange)


def read(fenced: Any, data: bytes, size: int = 0) -> bytes:
    """Let data arrive, in pieces of this size; return what may be read of it."""
    passed = b""
    for at in range(0, len(data), size or len(data)):
        fenced.bio_write(data[at : at + (size or len(data))])
        try:
            while True:
                passed += fenced.recv(1)
        except SSL.WantReadError:
            continue
        except SSL.ZeroReturnError:
            break
    return passed


def status(fenced: Any) -> int:
    """The status of the answer that a peer got; 0 if it got none."""
    answer = fenced._tls.sent
    assert answer.count(b"\r\n\r\n") <= 1
    return int(answer.split()[1]) if answer else 0


# -- agents -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 7])
def test_an_ordinary_request_passes_in_any_pieces(size: int) -> None:
    request = GET + b"Content-Length: 2\r\n\r\nab"
    fenced = agent()
    assert read(fenced, request, size) == request
    assert (fenced._exchange.under_way, fenced._exchange.method) == (True, b"GET")
    assert fenced._exchange.ticket.answering


def test_nothing_of_a_head_is_read_before_it_is_whole() -> None:
    assert read(agent(), GET + b"X: 1\r\n") == b""


def test_as_many_headers_as_are_allowed_pass() -> None:
    request = GET + b"".join(b"X-%d: 1\r\n" % number for number in range(LINES - 2)) + b"\r\n"
    assert read(agent(), request) == request


@pytest.mark.parametrize("size", [0, 4096])
@pytest.mark.parametrize(
    ("head", "expected"),
    [
        (GET + b"X: " + b"a" * HEAD, 431),
        (GET + b"X: " + b"a" * HEAD + b"\r\n\r\n", 431),
        (b"a" * (HEAD + 1), 431),
        (GET + b"X: 1\r\n" * LINES + b"\r\n", 431),
        (GET + b"X: 1\r\n a\r\n\r\n", 400),
        (GET + b"X: 1\n\ta\n\n", 400),
        (b"GET / HTTP/1.1\r\n a\r\n\r\n", 400),
        (b"\n" * HEAD, 400),
        (b"\r\n" * HEAD, 400),
        (b"CONNECT n:1 HTTP/1.1\r\n\r\n", 501),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 400),
    ],
)
def test_what_exceeds_a_limit_gets_one_answer(head: bytes, expected: int, size: int) -> None:
    fenced = agent()
    assert read(fenced, head, size) == b""
    assert status(fenced) == expected
    assert read(fenced, GET + b"\r\n") == b"", "nothing more is read"
    assert status(fenced) == expected


@pytest.mark.parametrize("size", [0, 100])
def test_many_small_chunks_are_read_as_one(size: int) -> None:
    """mitmproxy handles each chunk on its own, with an event that passes five layers, for a tenth of a millisecond."""
    body = b"5\r\nabcde\r\n" * 700
    passed = read(agent(), PUT + body + LAST, size)
    assert passed.count(b"\r\n") - PUT.count(b"\r\n") <= 4 + 2 * (size and len(body) // size)
    if not size:
        assert passed == PUT + b"dac\r\n" + b"abcde" * 700 + b"\r\n" + LAST


def test_records_of_a_byte_are_read_as_one_chunk() -> None:
    fenced = agent()
    fenced._tls.arriving = [bytes([byte]) for byte in PUT + b"5\r\nabcde\r\n" * 10]
    assert fenced.recv(1) == PUT + b"32\r\n" + b"abcde" * 10 + b"\r\n"


@pytest.mark.parametrize(("size", "refused"), [(40, True), (60, False)])
def test_chunks_of_an_ordinary_size_pass(size: int, refused: bool) -> None:
    fenced = agent()
    read(fenced, PUT + (b"%x\r\n%b\r\n" % (size, b"a" * size)) * 10_000, 9000)
    assert fenced.over is refused


@pytest.mark.parametrize("side", ["agent", "master"])
def test_framing_counts_against_the_limits_of_a_body(side: str) -> None:
    fenced, begin = (agent(), PUT) if side == "agent" else (master(), OK + CHUNKED)
    passed = read(fenced, begin + b"1\r\na\r\n" * 5000, 600)
    assert fenced.over
    assert passed.count(b"a") < FRAMING
    assert status(fenced) == (400 if side == "agent" else 0)


def test_a_chunk_size_without_end_is_refused() -> None:
    fenced = agent()
    assert read(fenced, PUT + b"1;" + b"a" * (LINE + 1)) == b""
    assert status(fenced) == 400


def test_the_next_request_is_read_when_the_one_before_it_is_answered() -> None:
    fenced = agent()
    assert read(fenced, (GET + b"\r\n") * 2) == GET + b"\r\n"
    assert fenced.waiting
    fenced.sendall(b"answer")
    fenced._exchange.under_way = False
    assert fenced.recv(1) == GET + b"\r\n"
    assert not fenced.waiting


def test_requests_sent_ahead_without_end_are_refused() -> None:
    fenced = agent()
    read(fenced, GET + b"\r\n")
    read(fenced, b"a" * (fence.AHEAD + 1), 4096)
    assert fenced.over


def test_no_second_answer_is_given() -> None:
    fenced = agent()
    read(fenced, PUT)
    fenced.sendall(OK + b"Content-Length: 9\r\n\r\n")
    read(fenced, b"nonsense")
    assert fenced.over
    assert status(fenced) == 200


def test_what_is_begun_and_not_finished_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(fence, "time", SimpleNamespace(monotonic=lambda: now))
    fenced = agent()
    assert fenced.stalled(now + 100) is None, "between requests"
    read(fenced, GET)
    assert fenced.stalled(now + 100) == ("head", 100)
    now += 10
    read(fenced, b"X: 1\r\n")
    assert fenced.stalled(now + 100) == ("head", 110), "since its first byte"
    read(fenced, b"Content-Length: 9\r\n\r\n")
    now += 10
    read(fenced, b"1")
    assert fenced.stalled(now + 100) == ("body", 100), "since its last byte"
    read(fenced, b"23456789")
    assert fenced.stalled(now + 100) is None, "the answer is awaited"


def test_bytes_beyond_those_under_way_are_to_be_sent_again_later() -> None:
    for data in (GET, GET + b"Content-Length: 5000\r\n\r\n"):
        ticket = Limited(1000)
        fenced = agent(ticket)
        read(fenced, data + b"a" * 2000, 500)
        assert status(fenced) == 503
        assert b"\r\nRetry-After: 5\r\n" in fenced._tls.sent
        assert ticket.refused == [BUSY]


def test_an_answer_that_is_cut_off_has_no_more_pieces() -> None:
    fenced = agent()
    fenced.left = 1
    for piece in (b"3\r\nabc\r\n", LAST):
        fenced.sendall(piece)
    assert fenced._tls.sent == b"3\r\nabc\r\n"
    fenced.answer(b"more")
    assert fenced._tls.sent == b"3\r\nabc\r\n"


def test_a_connection_that_has_ended_reads_and_sends_nothing() -> None:
    fenced = agent()
    fenced.close()
    fenced.sendall(b"late")
    with pytest.raises(SSL.WantReadError):
        fenced.bio_read(1)
    with pytest.raises(SSL.ZeroReturnError):
        fenced.recv(1)


# -- masters ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [0, 1, 7])
def test_interim_answers_are_left_out(size: int) -> None:
    early, answer = b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n", OK + b"Content-Length: 2\r\n\r\nab"
    assert read(master(), early * INTERIM + answer, size) == answer


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 100 Continue\r\n\r\n" * (INTERIM + 1),
        OK + b"X: 1\r\n" * (LINES + 1) + b"\r\n",
        OK + CHUNKED + b"0\r\n" + b"X: 1\r\n" * 20_000,
        b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\n\r\n",
    ],
    ids=["interim answers", "headers", "trailers", "an upgrade"],
)
def test_what_a_master_sends_beyond_a_limit_is_not_read(answer: bytes) -> None:
    fenced = master()
    read(fenced, answer, 4096)
    assert fenced.over
    assert fenced._exchange.reason
    assert fenced._tls.sent == b"", "nothing is sent to the master"


@pytest.mark.parametrize("side", ["agent", "master"])
def test_trailers_are_left_out(side: str) -> None:
    fenced, begin = (agent(), PUT) if side == "agent" else (master(), OK + CHUNKED)
    assert read(fenced, begin + b"2\r\nab\r\n0\r\nX: 1\r\n\r\n") == begin + b"2\r\nab\r\n" + LAST


def test_an_answer_to_head_has_no_body() -> None:
    fenced = master(b"HEAD")
    assert read(fenced, OK + b"Content-Length: 9\r\n\r\n") == OK + b"Content-Length: 9\r\n\r\n"
    assert fenced._reader.complete


def test_what_came_of_a_short_answer_is_known() -> None:
    fenced = master()
    read(fenced, OK + b"Content-Length: 9\r\n\r\nhalf", 10)
    assert b"".join(fenced._exchange.begun) == OK + b"Content-Length: 9\r\n\r\nhalf"
    fenced._exchange.begin(b"GET")
    assert fenced._exchange.begun == []
    fenced = master()
    fenced._exchange.stream()
    assert read(fenced, OK + b"Content-Length: 9\r\n\r\nhalf", 10)
    assert fenced._exchange.begun == [], "what is passed on as it comes is not stored"


# -- before TLS -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_before_tls_only_whole_heads_are_read(size: int) -> None:
    head, hello = b"CONNECT n:8140 HTTP/1.1\r\nHost: n\r\n\r\n", fence.TLS + b"\3\1 hello"
    clear, passed = fence.Clear(), []
    for data in (head + hello, b"more"):
        passed += [clear.read(data[at : at + size]) for at in range(0, len(data), size)]
    assert b"".join(passed) == head + hello + b"more"
    assert clear.over
    assert fence.Clear().read(head[:-1]) == b""


def test_a_head_without_end_is_refused_before_tls_too() -> None:
    clear = fence.Clear()
    assert clear.read(b"a" * 8000) == b""
    with pytest.raises(Refused):
        clear.read(b"a" * 8000)


# -- what mitmproxy lacks ---------------------------------------------------------------------------------
# Each of these is a reason for this module. When one fails, mitmproxy has changed: see what can go.


def stock(kind: type[_http1.Http1Connection]) -> Any:
    """mitmproxy's own connection."""
    with taddons.context() as running:  # type: ignore[no-untyped-call]
        context = Context(tflow.tclient_conn(), running.options)
    context.server = tflow.tserver_conn()
    connection: Any = kind(context)  # type: ignore[call-arg]
    list(connection.handle_event(events.Start()))
    if kind is _http1.Http1Client:
        connection.stream_id, connection.request = 1, tflow.tflow().request
    return connection


def handled(connection: Any, data: bytes) -> list[commands.Command]:
    """What mitmproxy does with data."""
    return list(connection.handle_event(events.DataReceived(connection.conn, data)))


def test_mitmproxy_has_no_limit_for_a_head() -> None:
    connection = stock(_http1.Http1Server)
    assert handled(connection, GET + b"X: " + b"a" * 2**22) == []
    assert len(connection.buf) > 2**22


def test_mitmproxy_unfolds_headers() -> None:
    (headers, *_) = handled(stock(_http1.Http1Server), GET + b"X: a\r\n b\r\n\r\n")
    assert isinstance(headers, ReceiveHttp)


def test_mitmproxy_has_no_limit_for_requests_sent_ahead() -> None:
    connection = stock(_http1.Http1Server)
    handled(connection, GET + b"\r\n")
    assert handled(connection, b"a" * 2**22) == []


def test_mitmproxy_handles_each_chunk_on_its_own() -> None:
    assert len(handled(stock(_http1.Http1Server), PUT + b"1\r\na\r\n" * 100)) > 100


def test_mitmproxy_takes_an_interim_answer_for_the_answer() -> None:
    (headers, *_) = handled(stock(_http1.Http1Client), b"HTTP/1.1 103 Early Hints\r\n\r\n")
    assert isinstance(headers, ReceiveHttp)
    assert isinstance(headers.event, ResponseHeaders)
    assert headers.event.response.status_code == 103


def test_mitmproxy_fails_at_trailers() -> None:
    with pytest.raises(NotImplementedError):
        handled(stock(_http1.Http1Client), OK + CHUNKED + b"0\r\nX: 1\r\n\r\n")


def test_each_byte_of_a_head_is_examined_four_times_at_most() -> None:
    fenced = agent()
    examined = 0
    find = bytearray.find

    class Counting(bytearray):
        def find(self, *arguments: Any) -> int:
            nonlocal examined
            at = find(self, *arguments)
            examined += (at if at >= 0 else len(self)) - arguments[1]
            return at

    fenced._reader._data = Counting()
    fenced._reader._data += b"a"
    for _ in range(20_000):
        read(fenced, b"a")
    size = len(fenced._reader._data)
    assert size <= examined <= 4 * size, "the end of a head, of four bytes, may have begun before"
