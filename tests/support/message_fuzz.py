"""What a message is, to us and to a real master: streams of requests that are nearly right, read by both.

The streams are those of `message_streams`. Each request asks for a name of its own, which the master's answer repeats;
so the answers say where the master saw a request begin.
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
from typing import NamedTuple

from inspector.proxy.engine import framing
from inspector.proxy.engine.exchange import framed
from inspector.proxy.engine.framing import Reader, Refused
from tests.support.message_streams import plain, stream

CONNECTIONS = 8
"""That are compared at a time."""
PATIENCE = 20.0
"""Seconds that a master may be silent before the connection is taken for stuck: it has a limit of its own."""
TRIES = 5
"""To connect."""
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
            while reader.more:
                passed_on += framed(head, reader.body(), last=reader.complete)
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
    with _connected(address) as connection, contextlib.suppress(ConnectionError, ssl.SSLError):
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


def _connected(address: tuple[str, int]) -> ssl.SSLSocket:
    """Connect to a master. On a busy machine a handshake may take longer than it waits for a client's next bytes: then
    it closes the connection, of which it has read no message."""
    for _ in range(TRIES - 1):
        with contextlib.suppress(ssl.SSLEOFError, ConnectionError):
            return _CONTEXT.wrap_socket(socket.create_connection(address, PATIENCE))
    return _CONTEXT.wrap_socket(socket.create_connection(address, PATIENCE))


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
        there = masters(address, here.passed_on + plain(END, b"Connection: close\r\n"))
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
        # A busy master may close a connection before it has read the messages; what is different is so each time.
        different = difference(address, data) and difference(address, data)
        return not reading.refused and reading.begun is None, different

    numbers = itertools.count(first)
    with ThreadPoolExecutor(CONNECTIONS) as pool:
        while time.monotonic() < until:
            some = list(itertools.islice(numbers, 50 * CONNECTIONS))
            for number, (whole, different) in zip(some, pool.map(one, some), strict=True):
                accepted += whole
                if different:
                    differences.append((number, different))
    return Comparison(next(numbers) - first, accepted, differences)
