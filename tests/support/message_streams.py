"""Streams of requests that are nearly right: what a parser may read in a way of its own.

Each request asks for a certificate with a name of its own (``fz`` and a number). Bodies contain requests, too: if one
of these is answered, it was smuggled.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import random
    from collections.abc import Iterator, Sequence

_EDITS = (
    b"\r", b"\n", b"\r\n", b"\r\n\r\n", b" ", b"\t", b":", b",", b";", b"0", b"1", b"+", b"-", b"\0", b"\x0b", b"\x7f",
    b"\x80", b"\xff", b"a", b"A", b"%", b"/", b"?", b"\"", b"_", b"chunked", b"\r\nHost: x", b"\r\n ", b"\r\n\t",
)  # fmt: skip


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
    return data + plain(next(names), b"Connection: close\r\n")


def plain(name: bytes, more: bytes = b"") -> bytes:
    """An ordinary request for a certificate, with more header lines."""
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
        smuggled = plain(next(names))
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
