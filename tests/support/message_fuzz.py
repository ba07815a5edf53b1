"""What a message is, to us and to a real master: streams of requests that are nearly right, read by both.

Each request asks for a certificate with a name of its own, which the master's answer repeats; so the answers say where
the master saw a request begin. Bodies contain requests, too: if one of these is answered, it was smuggled.
"""

from __future__ import annotations

import contextlib
import itertools
import random
import re
import socket
import ssl
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from inspector.proxy.engine import framing
from inspector.proxy.engine.exchange import framed
from inspector.proxy.engine.framing import Reader, Refused

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CONNECTIONS = 8
"""That are compared at a time."""
PATIENCE = 20.0
"""Seconds that a master may be silent before the connection is taken for stuck: it has a limit of its own."""
_NAME = re.compile(rb"fz\d+z")
_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
_CONTEXT = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
_CONTEXT.check_hostname, _CONTEXT.verify_mode = False, ssl.CERT_NONE  # nothing that is sent is secret
_REFUSALS = (b"400", b"408", b"413", b"414", b"417", b"426", b"431", b"501", b"505")
END = b"fz0z"
"""The name that is asked for last."""
_EMPTY = (b"204", b"304")
_CLOSES = re.compile(rb"\r\nconnection: *close", re.IGNORECASE)
_EDITS = (
    b"\r", b"\n", b"\r\n", b"\r\n\r\n", b" ", b"\t", b":", b",", b";", b"0", b"1", b"+", b"-", b"\0", b"\x0b", b"\x7f",
    b"\x80", b"\xff", b"a", b"A", b"%", b"/", b"?", b"\"", b"_", b"chunked", b"\r\nHost: x", b"\r\n ", b"\r\n\t",
)  # fmt: skip


# -- streams ----------------------------------------------------------------------------------------------


def stream(chance: random.Random) -> bytes:
    """Some requests, one after the other, half of them odd; the last one asks for the end of the connection."""
    names = iter([b"fz%dz" % number for number in chance.sample(range(10**6), 12)])
    data = b"".join(_request(chance, names) for _ in range(chance.randint(1, 3)))
    for _ in range(chance.choice((0, 0, 0, 0, 0, 0, 1, 2))):
        at = chance.randrange(len(data))
        if chance.random() < 0.3:
            data = data[:at] + data[at + chance.choice((1, 1, 2, 4)) :]
        else:
            data = data[:at] + chance.choice(_EDITS) + data[at + chance.choice((0, 0, 1)) :]
    return data + _plain(next(names), b"Connection: close\r\n")


def _plain(name: bytes, more: bytes = b"") -> bytes:
    return b"GET /puppet-ca/v1/certificate/%s HTTP/1.1\r\nHost: m\r\n%s\r\n" % (name, more)


def _request(chance: random.Random, names: Iterator[bytes]) -> bytes:
    def some(usual: bytes, odd: Sequence[bytes], share: float = 0.02) -> bytes:
        return chance.choice(odd) if chance.random() < share else usual

    method = some(chance.choice((b"GET", b"PUT", b"POST", b"DELETE")), _METHODS)
    target = some(b"/puppet-ca/v1/certificate/%s", _TARGETS) % next(names)
    first = some(b" ", _SPACES).join((method, target, some(b"HTTP/1.1", _VERSIONS, 0.05)))
    lines = [some(b"Host: m", _HOSTS)]
    body = b""
    if method not in (b"GET", b"DELETE") or chance.random() < 0.2:
        smuggled = _plain(next(names))
        body = chance.choice((b"", b"abc", smuggled, b"0\r\n\r\n" + smuggled, b"5\r\nhello\r\n0\r\n\r\n"))
        size = b"%d" % len(body)
        if chance.random() < 0.5:
            lines.append(some(b"Transfer-Encoding: chunked", _CODINGS, 0.2))
            body = _chunks(chance, body)
            if chance.random() < 0.05:
                lines.append(b"Content-Length: " + size)
        else:
            lines.append(some(b"Content-Length: %d", _LENGTHS, 0.2).replace(b"%d", size))
    lines += [some(chance.choice(_USUAL), _OTHERS, 0.1) for _ in range(chance.choice((0, 0, 1, 2)))]
    chance.shuffle(lines)
    return some(b"\r\n", _ENDS, 0.01).join([some(b"", _BEFORE, 0.01) + first, *lines, b"", b""]) + body


def _chunks(chance: random.Random, body: bytes) -> bytes:
    def end() -> bytes:
        return chance.choice(_ENDS) if chance.random() < 0.01 else b"\r\n"

    data = b""
    while body:
        size = chance.randint(1, len(body))
        form = chance.choice(_SIZES) if chance.random() < 0.03 else b"%x"
        data += form.replace(b"%x", b"%x" % size) + end() + body[:size] + end()
        body = body[size:]
    last = chance.choice((b"00", b"", b"0;a", b"0 ", b"-0")) if chance.random() < 0.03 else b"0"
    return data + last + end() + (chance.choice(_TRAILERS) if chance.random() < 0.08 else b"") + end()


_METHODS = (b"get", b"P\tUT", b"PATCH", b"PROPFIND", b"G-T", b"")
_VERSIONS = (
    b"HTTP/1.0",
    b"HTTP/1.0",
    b"HTTP/1.2",
    b"HTTP/2.0",
    b"http/1.1",
    b"HTTP/1.10",
    b"HTTP/01.1",
    b"HTTP/1",
    b"",
)
_TARGETS = (
    b"http://m/puppet-ca/v1/certificate/%s",
    b"//%s",
    b"/%s#a",
    b"/%s b",
    b"/puppet-ca/v1/certificate/%s?a=b",
    b"*%s",
)
_SPACES = (b"  ", b"\t", b" \t", b"\x0b")
_HOSTS = (b"Host: m\r\nHost: n", b"Host:", b"host : m", b"Host: m\x0b", b"hOST: m", b"Host: m/n", b"X: m")
_ENDS = (b"\n", b"\r", b"\r\r\n", b"\n\r", b"", b" \r\n", b"\r\n\r\n")
_BEFORE = (b"\r\n", b"\n", b"\r\n\r\n", b" ")
_LENGTHS = (
    b"Content-Length: +%d", b"Content-Length: 0%d", b"Content-Length: %d ", b"Content-Length:%d",
    b"Content-Length : %d", b"Content-Length: %d, %d", b"Content-Length: 0x%d", b"Content-Length: %d.0",
    b"content-length: %d",
    b"Content_Length: %d", b"Content-Length: -%d", b"Content-Length:\t%d", b'Content-Length: "%d"',
    b"Content-Length: %d;a", b"Content-Length: \x0b%d", b" Content-Length: %d", b"Content-Length:",
    b"Content-Length: %d\r\nContent-Length: 0", b"Content-Length: 0\r\nContent-Length: %d",
    b"Content-Length: %d\r\nContent-Length: %d", b"X: a\r\n Content-Length: %d", b"Content-Length: \r\n %d",
    b"Content-Length: 000000000000%d", b"Content-Length: 000000000000000000000%d", b"Content-Length: 1%d",
)  # fmt: skip
_CODINGS = (
    b"transfer-encoding: CHUNKED", b"Transfer-Encoding: chunked ", b"Transfer-Encoding:chunked",
    b"Transfer-Encoding : chunked", b"Transfer-Encoding: identity", b"Transfer-Encoding: gzip, chunked",
    b"Transfer-Encoding: chunked, identity", b"Transfer-Encoding: chunked, chunked", b"Transfer-Encoding: xchunked",
    b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", b'Transfer-Encoding: "chunked"',
    b"Transfer-Encoding: chunked;q=1", b"Transfer-Encoding:\x0bchunked", b"Transfer-Encoding: \tchunked",
    b"Transfer_Encoding: chunked", b"X: a\r\n Transfer-Encoding: chunked", b"Transfer-Encoding:\r\n chunked",
    b"Transfer-Encoding: identity\r\nTransfer-Encoding: chunked", b"Transfer-Encoding:", b"TE: chunked",
)  # fmt: skip
_SIZES = (
    b"0%x", b"0000000000000%x", b"0000000000000000%x", b"+%x", b" %x", b"%x ", b"0x%x", b"%x;a=b", b'%x;a="\n"', b"-%x",
    b"%x\t", b"%x;", b"1%x", b"ffffffffffffffff%x", b"%x,", b"_%x",
)  # fmt: skip
_TRAILERS = (b"X: a\r\n", b"X: a\r\nY: b\r\n", b"Content-Length: 5\r\n", b" folded\r\n", b"broken\r\n", b"X: a\n")
_USUAL = (b"Connection: keep-alive", b"Expect: 100-continue", b"Accept: */*", b"Content-Type: text/pson", b"X-A: \xe9")
_OTHERS = (
    b"Connection: close", b"Connection: Transfer-Encoding", b"Expect: 200-ok", b"Upgrade: h2c", b"X-A:",
    b"X-A: b\r\n c", b"X A: b", b": b", b"X-A", b"X-A\0: b", b"X-A: \0", b"X-A: \x01", b"(X): a", b"X-A: b\rX-B: c",
    b"Connection: closed", b"X-" + b"a" * 200 + b": b", b"X-A: " + b"b" * 9000, b"X-A: " + b"b" * 3000,
)  # fmt: skip


# -- readings ---------------------------------------------------------------------------------------------


@dataclass
class Reading:
    """What somebody takes for messages."""

    names: list[bytes] = field(default_factory=list)
    """For each complete one the name in its first line; empty: there is none."""
    begun: bytes | None = None
    """The same of a message that is not complete."""
    refused: str = ""
    """Why no more was read."""
    closes: bool = False
    """Whether the connection ends after the last complete one. Jetty does not say so to HTTP/1.0."""
    passed_on: bytes = b""
    """What we pass on of the complete ones."""


def ours(data: bytes) -> Reading:
    """What the engine takes for messages."""
    reader, reading = Reader(), Reading()
    reader.feed(data)
    try:
        while head := reader.head(framing.request):
            reading.begun = _name(head.first[1])
            passed_on = head.assembled() + framed(head, reader.body(), last=reader.complete)
            if not reader.complete:
                break
            reading.passed_on += passed_on
            reading.names.append(reading.begun)
            reading.begun = None
            if head.close:
                reading.closes = True
                break
    except Refused as refused:
        reading.refused = refused.message
    return reading


def masters(address: tuple[str, int], data: bytes) -> Reading:
    """What a master takes for messages, by its answers."""
    reading, answers = Reading(), b""
    with (
        socket.create_connection(address, PATIENCE) as raw,
        _CONTEXT.wrap_socket(raw) as connection,
        contextlib.suppress(ConnectionError, ssl.SSLError),
    ):
        connection.sendall(data)
        while piece := connection.recv(65536):
            answers += piece
    while answers and not reading.refused:
        head, _, rest = answers.partition(b"\r\n\r\n")
        status = head.split(b" ", 2)[1]
        if status[:1] == b"1":
            answers = rest
            continue
        body, answers = _body(status, head, rest)
        if status in _REFUSALS and b"<pre>" in body:
            reading.refused = body.decode("latin-1")
        else:
            reading.names.append(_name(body))
            if _CLOSES.search(head) or not (_LENGTH.search(head) or _CHUNKED.search(head) or status in _EMPTY):
                reading.refused = "the master closes the connection"
    return reading


def _body(status: bytes, head: bytes, rest: bytes) -> tuple[bytes, bytes]:
    """The body of an answer, and what follows."""
    if status in _EMPTY:
        return b"", rest
    if found := _LENGTH.search(head):
        return rest[: int(found[1])], rest[int(found[1]) :]
    if not _CHUNKED.search(head):
        return rest, b""
    body = b""
    while rest:
        size, _, rest = rest.partition(b"\r\n")
        length = int(size, 16)
        body, rest = body + rest[:length], rest[length + 2 :]
        if not length:
            break
    return body, rest


def _name(text: bytes) -> bytes:
    found = _NAME.search(text)
    return found[0] if found else b""


def difference(address: tuple[str, int], data: bytes) -> str:
    """Return in which way we and the master take these bytes for different messages; empty: in none.

    What we refuse may be anything. What the master refuses, too, ends the comparison.
    """
    here = ours(data)
    if not here.refused:
        expected = [*here.names, here.begun] if here.begun is not None else here.names  # it may answer early
        if found := _disagree(expected, len(here.names), masters(address, data)):
            return f"as it came: {found}"
    if here.names:
        last = [] if here.closes else [END]
        there = masters(address, here.passed_on + _plain(END, b"Connection: close\r\n"))
        if found := _disagree([*here.names, *last], len(here.names) + len(last), there):
            return f"as it is passed on: {found}"
    return ""


def _disagree(expected: list[bytes], least: int, there: Reading) -> str:
    """In which way a master's answers are not to the first of these messages, or not to so many of them though it took
    all. Not every answer repeats the name."""
    fewer = len(there.names) < least and not there.refused
    others = any(
        answered and asked and answered != asked for asked, answered in zip(expected, there.names, strict=False)
    )
    if not (fewer or others or len(there.names) > len(expected)):
        return ""
    return f"{expected!r}, for the master {there.names!r} {there.refused}"


class Comparison(NamedTuple):
    """What came of many streams."""

    tried: int
    accepted: int
    """Streams that we took for nothing but whole messages."""
    differences: list[tuple[int, str]]
    """Numbers of streams, and what was different."""


def compare(address: tuple[str, int], first: int, seconds: float) -> Comparison:
    """Compare streams, from this number on, for so long."""
    until, accepted, differences = time.monotonic() + seconds, 0, []

    def one(number: int) -> tuple[bool, str]:
        data = stream(random.Random(number))  # noqa: S311
        reading = ours(data)
        return not reading.refused and reading.begun is None, difference(address, data)

    numbers = itertools.count(first)
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        while time.monotonic() < until:
            some = list(itertools.islice(numbers, 50 * CONNECTIONS))
            for number, (whole, different) in zip(some, pool.map(one, some), strict=True):
                accepted += whole
                if different:
                    differences.append((number, different))
    return Comparison(next(numbers) - first, accepted, differences)
