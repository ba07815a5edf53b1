"""Where a balancer says that a connection comes from."""

from __future__ import annotations

import ipaddress
import struct

import pytest

from inspector.proxy.engine import proxy_protocol
from inspector.proxy.engine.proxy_protocol import SIGNATURE, Header, Unreadable
from tests.support.rows import each_row


def binary(source: str, port: int, *, command: int = 0x21, more: bytes = b"") -> bytes:
    """A header of version 2."""
    address = ipaddress.ip_address(source)
    family = 0x11 if address.version == 4 else 0x21
    addresses = address.packed + address.packed + struct.pack("!HH", port, 8140) + more
    return SIGNATURE + struct.pack("!BBH", command, family, len(addresses)) + addresses


@each_row(
    ("header", "source"),
    [
        (b"PROXY TCP4 10.0.0.7 10.0.0.1 40001 8140\r\n", ("10.0.0.7", 40001)),
        (b"PROXY TCP6 2001:DB8::7 2001:db8::1 40001 8140\r\n", ("2001:db8::7", 40001)),
        (b"PROXY UNKNOWN\r\n", None),
        (b"PROXY UNKNOWN a b c d\r\n", None),
        (binary("10.0.0.7", 40001), ("10.0.0.7", 40001)),
        (binary("2001:db8::7", 40001), ("2001:db8::7", 40001)),
        (binary("10.0.0.7", 1, more=b"\x04\x00\x03abc"), ("10.0.0.7", 1)),
        (binary("10.0.0.7", 1, command=0x20), None),
        (SIGNATURE + b"\x21\x31\x00\x00", None),
        (SIGNATURE + b"\x20\x00\x00\x00", None),
    ],
)
def test_a_header_says_where_the_agent_is(header: bytes, source: tuple[str, int] | None) -> None:
    assert proxy_protocol.read(header + b"\x16\x03\x01") == Header(len(header), source)
    for size in range(1, len(header)):
        assert proxy_protocol.read(header[:size]) is None


@each_row(
    "data",
    [
        b"\x16\x03\x01",
        b"GET / HTTP/1.1\r\n",
        b"PROXY TCP4 10.0.0.7\r\n",
        b"PROXY TCP4 2001:db8::7 2001:db8::1 1 2\r\n",
        b"PROXY TCP4 10.0.0.7 10.0.0.1 x 8140\r\n",
        b"PROXY TCP4 10.0.0.7 10.0.0.1 400010 8140\r\n",
        b"PROXY TCP4 10.0.0.\xb2 10.0.0.1 1 8140\r\n",
        b"PROXY UDP4 10.0.0.7 10.0.0.1 1 8140\r\n",
        b"PROXY TCP4 " + b"1" * 200,
        SIGNATURE + b"\x11\x11\x00\x0c" + bytes(12),
        SIGNATURE + b"\x22\x11\x00\x0c" + bytes(12),
        SIGNATURE + b"\x21\x11\xff\xff",
        SIGNATURE + b"\x21\x11\x00\x04" + bytes(4),
    ],
)
def test_what_is_no_header_is_refused(data: bytes) -> None:
    with pytest.raises(Unreadable):
        proxy_protocol.read(data)
