"""HTTP/1 as it is read between agents and masters: strictly, and never two ways."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

import h11
import pytest

from inspector.model import Exchange
from inspector.proxy.engine import framing
from inspector.proxy.engine.framing import CHUNKED, UNTIL_CLOSE, Reader, Refused
from tests.support.recorded import SAMPLES, records_of
from tests.support.rows import each_row

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

GET = b"GET /puppet/v3/node/a HTTP/1.1\r\nHost: n\r\n"
POST = b"POST /x HTTP/1.1\r\nHost: n\r\n"


def messages(pieces: Iterable[bytes]) -> Iterator[tuple[framing.Head, bytes]]:
    """What is read of requests that arrive in these pieces."""
    reader, head, body = Reader(), None, b""
    for piece in pieces:
        reader.feed(piece)
        while True:
            if head is None:
                head = reader.head(framing.request)
                if head is None:
                    break
            body += reader.body()
            while reader.more:
                body += reader.body()
            if not reader.complete:
                break
            yield head, body
            head, body = None, b""


def one(data: bytes) -> tuple[framing.Head, bytes]:
    (found,) = messages([data])
    return found


@each_row(
    ("head", "status", "reason"),
    [
        (b"", 400, "first line"),
        (b"GET", 400, "first line"),
        (b"GET /", 400, "first line"),
        (b"GET  / HTTP/1.1", 400, "first line"),
        (b"GET / HTTP/1.1 ", 400, "first line"),
        (b" GET / HTTP/1.1", 400, "first line"),
        (b"G(T / HTTP/1.1", 400, "first line"),
        (b"G\xffT / HTTP/1.1", 400, "first line"),
        (b"GET / HTTP/2.0", 400, "protocol"),
        (b"GET / HTTP/1.2", 400, "protocol"),
        (b"GET / http/1.1", 400, "protocol"),
        (b"PRI * HTTP/2.0", 400, "protocol"),
        (b"GET https://other.example/ HTTP/1.1", 400, "not a path"),
        (b"OPTIONS * HTTP/1.1", 400, "not a path"),
        (b"CONNECT other.example:1 HTTP/1.1", 501, "tunnel"),
        (b"GET /\x0b HTTP/1.1", 400, "control character"),
        (b"GET /\x7f HTTP/1.1", 400, "control character"),
        (b"GET /\0 HTTP/1.1", 400, "control character"),
        (b"GET /\t HTTP/1.1", 400, "not a path"),
        (b"GET / HTTP/1.1\r\nHost", 400, "name"),
        (b"GET / HTTP/1.1\r\n: a", 400, "name"),
        (b"GET / HTTP/1.1\r\nHost : a", 400, "name"),
        (b"GET / HTTP/1.1\r\nX\xff: a", 400, "name"),
        (b"GET / HTTP/1.1\r\nA: b\r\n c", 400, "folded"),
        (b"GET / HTTP/1.1\r\nA: b\r\n\tc: d", 400, "folded"),
        (b"GET / HTTP/1.1\r\nA: b\0c", 400, "control character"),
        (b"GET / HTTP/1.1\r\nA: b\x1bc", 400, "control character"),
        (b"GET / HTTP/1.1\r\nA: b\rc: d", 400, "CR and LF"),
        (b"GET / HTTP/1.1\r\nA: b\nc: d", 400, "CR and LF"),
        (b"GET / HTTP/1.1\nA: b", 400, "CR and LF"),
        (b"GET / HTTP/1.1\r\nUpgrade: h2c", 501, "another protocol"),
        (GET + b"Content-Length: 1\r\nContent-Length: 1", 400, "length"),
        (GET + b"Content-Length: 1, 1", 400, "length"),
        (GET + b"Content-Length: +1", 400, "length"),
        (GET + b"Content-Length: -1", 400, "length"),
        (GET + b"Content-Length: 1_0", 400, "length"),
        (GET + b"Content-Length: 0x1", 400, "length"),
        (GET + b"Content-Length: \xb2", 400, "length"),
        (GET + b"Content-Length:", 400, "length"),
        (GET + b"Content-Length: " + b"9" * 17, 400, "length"),
        (GET + b"Transfer-Encoding: gzip", 501, "coding"),
        (GET + b"Transfer-Encoding: gzip, chunked", 501, "coding"),
        (GET + b"Transfer-Encoding: chunked, chunked", 501, "coding"),
        (GET + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", 400, "several"),
        (GET + b"Transfer-Encoding: xchunked", 501, "coding"),
        (GET + b"Transfer-Encoding:", 501, "coding"),
        (GET + b"Transfer-Encoding: chunked\r\nContent-Length: 1", 400, "a length and"),
        (b"GET / HTTP/1.0\r\nTransfer-Encoding: chunked", 400, "HTTP/1.0"),
        (GET + b"\r\n".join([b"A: b"] * 1001), 431, "1000 headers"),
        (GET + b"A" * 257 + b": b", 431, "name has more than 256"),
    ],
)
def test_what_could_be_read_in_two_ways_is_refused(head: bytes, status: int, reason: str) -> None:
    with pytest.raises(Refused) as raised:
        framing.request(head)
    assert raised.value.status == status
    assert reason in raised.value.message


@each_row(
    ("head", "reason"),
    [
        (b"HTTP/2.0 200 OK", "not HTTP/1.1"),
        (b"ICY 200 OK", "not HTTP/1.1"),
        (b"HTTP/1.1", "status"),
        (b"HTTP/1.1 20", "status"),
        (b"HTTP/1.1 2000 OK", "status"),
        (b"HTTP/1.1 099 OK", "status"),
        (b"HTTP/1.1 +20 OK", "status"),
        (b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket", "protocol"),
        (b"HTTP/1.1 200 OK\r\nA: b\r\n c", "folded"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2", "length"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked", "a length and"),
    ],
)
def test_an_answer_that_could_be_read_in_two_ways_is_refused(head: bytes, reason: str) -> None:
    with pytest.raises(Refused, match=reason):
        framing.response(head, b"GET")


@each_row(
    ("head", "method", "length", "close"),
    [
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5", b"GET", 5, False),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 5", b"HEAD", 0, False),
        (b"HTTP/1.1 204 No Content\r\nContent-Length: 5", b"GET", 0, False),
        (b"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked", b"GET", 0, False),
        (b"HTTP/1.1 100 Continue", b"PUT", 0, False),
        (b"HTTP/1.1 200", b"GET", UNTIL_CLOSE, True),
        (b"HTTP/1.1 200 ", b"GET", UNTIL_CLOSE, True),
        (b"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked", b"GET", CHUNKED, False),
        (b"HTTP/1.1 200 OK\r\nConnection: keep-alive, CLOSE\r\nContent-Length: 0", b"GET", 0, True),
        (b"HTTP/1.0 200 OK\r\nContent-Length: 0", b"GET", 0, True),
        (b"HTTP/1.0 200 OK\r\nConnection: Keep-Alive\r\nContent-Length: 0", b"GET", 0, False),
    ],
)
def test_how_long_an_answer_is(head: bytes, method: bytes, length: int, close: bool) -> None:
    found = framing.response(head, method)
    assert (found.length, found.close) == (length, close)


def test_heads_of_real_agents_and_masters_are_passed_on_byte_for_byte() -> None:
    number = 0
    for sample in SAMPLES:
        for record in records_of(sample):
            if not isinstance(record, Exchange):
                continue
            request, response = record.request, record.response
            lines = [f"{request.method} {request.target} {request.http_version}"]
            data = "\r\n".join([*lines, *(f"{name}: {value}" for name, value in request.headers)]).encode("latin-1")
            assert framing.request(data).assembled() == data + b"\r\n\r\n"
            number += 1
            if response is not None:
                line = f"{response.http_version} {response.status} {response.reason}"
                fields = (f"{name}: {value}" for name, value in response.headers)
                data = "\r\n".join([line, *fields]).encode("latin-1")
                assert framing.response(data, request.method.encode()).assembled() == data + b"\r\n\r\n"
    assert number > 50


def test_blanks_around_a_value_are_no_part_of_it() -> None:
    head, _ = one(b"GET /\xc3\xa4?a=%20 HTTP/1.1\r\nHost:n \t\r\nX: \xe4 b\r\n\r\n")
    assert head.assembled() == b"GET /\xc3\xa4?a=%20 HTTP/1.1\r\nHost: n\r\nX: \xe4 b\r\n\r\n"


BODIES = {
    b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\nA\r\n0123456789\r\n0\r\n\r\n": b"abc0123456789",
    b"Transfer-Encoding: chunked\r\n\r\n0003\r\nabc\r\n000\r\nX-A: b\r\nX-B: c\r\n\r\n": b"abc",
    b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n": b"",
    b"Transfer-Encoding: chunked\r\n\r\n0000000000000003\r\nabc\r\n0\r\n\r\n": b"abc",
    b"Content-Length: 3\r\n\r\nabc": b"abc",
    b"Content-Length: 003\r\n\r\nabc": b"abc",
    b"\r\n": b"",
}


@each_row("seed", range(20))
def test_it_does_not_matter_in_which_pieces_a_message_arrives(seed: int) -> None:
    chance = random.Random(seed)  # noqa: S311 - no secrets
    data, expected = b"", []
    for _ in range(5):
        rest, body = chance.choice(list(BODIES.items()))
        data += POST + rest
        expected.append(body)
    pieces, size = [], chance.choice([1, 3, 50])
    while data:
        at = chance.randint(1, size)
        pieces.append(data[:at])
        data = data[at:]
    assert [body for _, body in messages(pieces)] == expected


@each_row(
    "chunks",
    [
        b"0x3\r\nabc\r\n0\r\n\r\n",
        b"+3\r\nabc\r\n0\r\n\r\n",
        b"-3\r\nabc\r\n0\r\n\r\n",
        b" 3\r\nabc\r\n0\r\n\r\n",
        b"3 \r\nabc\r\n0\r\n\r\n",
        b"3;a=b\r\nabc\r\n0\r\n\r\n",
        b"\r\nabc\r\n0\r\n\r\n",
        b"3\nabc\n0\n\n",
        b"3\r\nabcd\r\n0\r\n\r\n",
        b"3\r\nabc\n0\r\n\r\n",
        b"3\r\nabc0\r\n\r\n",
        b"00000000000000003\r\nabc\r\n0\r\n\r\n",
        b"fffffffffffffffff\r\n",
        b"3;" + b"a" * 100,
        b"0\r\nX-A\r\n\r\n",
        b"0\r\n X: a\r\n\r\n",
        b"0\r\n" + b"X: a\r\n" * 20_000,
        b"0\r\nX: " + b"a" * 100_000,
    ],
)
def test_chunks_that_could_be_read_in_two_ways_are_refused(chunks: bytes) -> None:
    data = POST + b"Transfer-Encoding: chunked\r\n\r\n" + chunks
    for pieces in ([data], [data[at : at + 1] for at in range(min(len(data), 300))] + [data[300:]]):
        with pytest.raises(Refused):
            list(messages(pieces))


def test_chunks_that_are_smaller_than_what_is_between_them_are_refused() -> None:
    head = POST + b"Transfer-Encoding: chunked\r\n\r\n"
    some, end = b"1\r\na\r\n", b"0\r\n\r\n"
    assert one(head + some * 1000 + end)[1] == b"a" * 1000
    with pytest.raises(Refused) as raised:
        list(messages([head, *[some] * 1030]))
    assert raised.value.status == 400
    large = b"2000\r\n" + bytes(0x2000) + b"\r\n"
    assert len(list(messages([head, *[large + some * 1000] * 20, end]))) == 1
    assert len(list(messages([head, some * 1000, end] * 3))) == 3, "each body by itself"


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"GET /" + b"a" * 2**19, 431),
        (GET + b"X: " + b"a" * 2**19, 431),
        (GET + b"X: " + b"a" * 2**19 + b"\r\n\r\n", 431),
        (b"GET / HTTP/1.1\nHost: n\n\n", 400),
        (b"\n\n\n", 400),
    ],
)
def test_a_head_without_end_is_refused_while_it_arrives(data: bytes, status: int) -> None:
    with pytest.raises(Refused) as raised:
        list(messages(data[at : at + 2**14] for at in range(0, len(data), 2**14)))
    assert raised.value.status == status


def test_an_answer_without_a_length_ends_with_the_connection() -> None:
    reader = Reader()
    reader.feed(b"HTTP/1.1 200 OK\r\n\r\nabc")
    assert reader.head(lambda data: framing.response(data, b"GET"))
    assert reader.body() == b"abc"
    reader.feed(b"def")
    assert (reader.body(), reader.complete, reader.unread) == (b"def", False, 0)


# -- beside other parsers ---------------------------------------------------------------------------------

PARTS = [
    b"GET", b"POST", b" ", b"  ", b"/", b"/a", b"*", b"HTTP/1.1", b"HTTP/1.0", b"\r\n", b"\n", b"\r", b"\r\n\r\n", b":",
    b": ", b"Host: n", b"Content-Length: ", b"Content-Length: 3", b"Transfer-Encoding: chunked", b"chunked",
    b"Expect: ", b"3", b"0", b"abc", b"3\r\nabc\r\n", b"0\r\n\r\n", b"\t", b"\0", b"\xff", b"Connection: close", b",",
    b";a", b"+",
]  # fmt: skip


def read_by_h11(data: bytes) -> list[tuple[bytes, bytes, bytes]] | None:
    """The requests in the data as h11 reads them: method, target and body; None if it refuses them."""
    found = []
    connection = h11.Connection(h11.SERVER, max_incomplete_event_size=2**20)
    connection.receive_data(data)
    request, body = None, b""
    try:
        while True:
            event = connection.next_event()
            if isinstance(event, h11.Request):
                request, body = event, b""
            elif isinstance(event, h11.Data):
                body += bytes(event.data)
            elif isinstance(event, h11.EndOfMessage) and request is not None:
                found.append((request.method, request.target, body))
                connection.send(h11.Response(status_code=200, headers=[("Content-Length", "0")]))
                connection.send(h11.EndOfMessage())
                connection.start_next_cycle()
            else:
                return found
    except h11.ProtocolError:
        return None if not found and request is None else found


@pytest.mark.slow
@each_row("seed", range(12))
def test_what_is_accepted_is_read_as_h11_reads_it(seed: int) -> None:
    chance, accepted = random.Random(seed), 0  # noqa: S311 - no secrets
    for _ in range(300):
        data = bytearray(POST + chance.choice(list(BODIES)) + GET + b"\r\n")
        for _ in range(chance.choice([0, 1, 1, 2, 3])):
            at = chance.randrange(len(data))
            data[at : at + chance.choice([0, 0, 1, 4])] = chance.choice(PARTS)
        ours: list[tuple[bytes, bytes, bytes]] = []
        try:
            for head, body in messages([bytes(data)]):
                ours.append((head.first[0], head.first[1], body))
                # What is passed on says the same.
                again = framing.request(head.assembled()[:-4])
                assert (again.first, again.fields, again.length) == (head.first, head.fields, head.length)
                if head.close:
                    break
        except Refused:
            pass
        theirs = read_by_h11(bytes(data))
        accepted += len(ours)
        if theirs is not None:
            # It refuses some that we leave to the master (without Host).
            assert all(our == their for our, their in zip(ours, theirs, strict=False)), bytes(data)
    assert accepted > 100
