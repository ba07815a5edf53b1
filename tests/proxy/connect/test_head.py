"""What an agent sends to an HTTP proxy first, whole or in pieces, and what only looks like it."""

from __future__ import annotations

import pytest

from inspector.proxy.connect import head
from inspector.proxy.connect.head import LONGEST, ConnectRequest, Unreadable
from tests.support.rows import each_row

OF_RUBY = b"CONNECT puppet.example:8140 HTTP/1.1\r\nHost: puppet.example:8140\r\n\r\n"


def test_a_head_is_read_when_it_is_complete() -> None:
    for size in range(len(OF_RUBY)):
        assert head.read(OF_RUBY[:size]) is None, size
    assert head.read(OF_RUBY) == ConnectRequest(("puppet.example", 8140), len(OF_RUBY))


def test_what_follows_is_not_part_of_it() -> None:
    found = head.read(OF_RUBY + b"\x16\x03\x01\r\n\r\n")
    assert found is not None
    assert found.size == len(OF_RUBY)


@pytest.mark.parametrize(
    ("line", "server"),
    [
        (b"CONNECT PUPPET.Example:8140 HTTP/1.1\r\n", ("puppet.example", 8140)),
        (b"CONNECT puppet.example.:8140 HTTP/1.0\r\n", ("puppet.example", 8140)),
        (b"CONNECT puppet:443 HTTP/1.1\n", ("puppet", 443)),
        (b"CONNECT 192.0.2.1:8140 HTTP/1.1\r\n", ("192.0.2.1", 8140)),
        (b"CONNECT [2001:DB8::1]:8140 HTTP/1.1\r\n", ("2001:db8::1", 8140)),
    ],
)
def test_a_server_has_the_name_by_which_it_is_known(line: bytes, server: tuple[str, int]) -> None:
    end = b"\n" if line.endswith(b"1\n") else b"\r\n"
    found = head.read(line + end)
    assert found is not None
    assert (found.server, found.size) == (server, len(line + end))


@each_row(
    "data",
    [
        b"GET /puppet/v3/node/a HTTP/1.1\r\n\r\n",
        b"GET http://puppet:8140/ HTTP/1.1\r\n\r\n",
        b"\r\n\r\n" + OF_RUBY,
        b"connect puppet:8140 HTTP/1.1\r\n\r\n",
        b"CONNECT puppet:8140 HTTP/2\r\n\r\n",
        b"CONNECT puppet:8140\r\n\r\n",
        b"CONNECT puppet:8140 HTTP/1.1 \r\n\r\n",
        b"CONNECT  HTTP/1.1\r\n\r\n",
        b"CONNECT pup\0pet:8140 HTTP/1.1\r\n\r\n",
        b"CONNECT puppet\t:8140 HTTP/1.1\r\n\r\n",
        b"CONNECT puppet evil:8140 HTTP/1.1\r\n\r\n",
        b"CONNECT p\xfcppet:8140 HTTP/1.1\r\n\r\n",
        b"CONNECT puppet HTTP/1.1\r\n\r\n",
        b"CONNECT puppet: HTTP/1.1\r\n\r\n",
        b"CONNECT puppet:0 HTTP/1.1\r\n\r\n",
        b"CONNECT puppet:65536 HTTP/1.1\r\n\r\n",
        b"CONNECT puppet:-1 HTTP/1.1\r\n\r\n",
        b"CONNECT puppet:8140:8140 HTTP/1.1\r\n\r\n",
        b"CONNECT :8140 HTTP/1.1\r\n\r\n",
        b"CONNECT 2001:db8::1 HTTP/1.1\r\n\r\n",
        b"CONNECT [2001:db8::1] HTTP/1.1\r\n\r\n",
        b"CONNECT " + b"a" * 400 + b":8140 HTTP/1.1\r\n\r\n",
    ],
)
def test_whatever_asks_for_no_server_is_refused(data: bytes) -> None:
    with pytest.raises(Unreadable):
        head.read(data)


def test_a_head_has_an_end_within_reason() -> None:
    begun = OF_RUBY[:-2] + b"X: "
    longest = begun + b"a" * (LONGEST - len(begun) - 4) + b"\r\n\r\n"
    assert head.read(longest[:-1]) is None
    assert head.read(longest) == ConnectRequest(("puppet.example", 8140), LONGEST)
    with pytest.raises(Unreadable):
        head.read(begun + b"a" * LONGEST)
    with pytest.raises(Unreadable):
        head.read(begun + b"a" * LONGEST + b"\r\n\r\n")
    with pytest.raises(Unreadable):
        head.read(b"\0" * (LONGEST + 1))


def test_a_refusal_is_one_answer_whatever_the_reason_says() -> None:
    answer = head.refusal(
        'Connection refused - connect(2) for "puppet"\r\nContent-Length: 9\r\n\r\nHTTP/1.1 200 OK\r\n'
    )
    lines = answer.split(b"\r\n")
    assert lines[0].startswith(b'HTTP/1.1 502 Connection refused - connect(2) for "puppet" Content-Length: 9 ')
    assert lines[1:] == [b"Content-Length: 0", b"Connection: close", b"", b""]


def test_a_refusal_is_printable_and_short() -> None:
    first, *_ = head.refusal("é\0\x1b[31m" + "x" * 10_000).split(b"\r\n")
    assert first.startswith(b"HTTP/1.1 502  [31mxxx")
    assert len(first) < 600
