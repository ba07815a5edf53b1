"""The PROXY protocol, with which a load balancer says where a connection comes from.

Versions 1 (a line) and 2 (binary), as in HAProxy's doc/proxy-protocol.txt. A header is only read from configured
sources: whoever may send one may claim any address.
"""

from __future__ import annotations

import ipaddress
import struct
from typing import NamedTuple

from inspector.errors import InspectorError

SIGNATURE = b"\r\n\r\n\0\r\nQUIT\n"
"""The beginning of version 2."""
LINE = 107
"""Bytes of the longest header of version 1."""
LENGTH = 2048
"""Bytes that may follow the first 16 of version 2: addresses, and facts of the balancer's own."""
_LOCAL, _PROXY = 0x20, 0x21
_FAMILIES = {0x11: (4, "!4s4xH2x"), 0x21: (16, "!16s16xH2x")}
"""TCP over IPv4 and IPv6: bytes of an address, and where source address and port are."""


class Unreadable(InspectorError):
    """What arrived is not such a header."""


class Header(NamedTuple):
    """A header that was read."""

    size: int
    """Its bytes."""
    source: tuple[str, int] | None
    """The agent's address and port; None if the balancer speaks for itself (a health check) or does not know."""


def read(data: bytes) -> Header | None:
    """Read the header at the beginning of a connection; None if it has not arrived completely. Raises Unreadable."""
    if data[:12] == SIGNATURE[: len(data)] and data[:1] == b"\r":
        return _binary(data)
    if data[:6] == b"PROXY "[: len(data)]:
        return _line(data)
    raise Unreadable("the connection does not begin with the PROXY protocol")


def _line(data: bytes) -> Header | None:
    end = data.find(b"\r\n", 0, LINE)
    if end < 0:
        if len(data) >= LINE:
            raise Unreadable("the line of the PROXY protocol has no end")
        return None
    words = data[:end].split(b" ")
    if words[1] == b"UNKNOWN":
        return Header(end + 2, None)
    if len(words) != 6 or words[1] not in (b"TCP4", b"TCP6"):
        raise Unreadable("the line of the PROXY protocol is not valid")
    try:
        source = ipaddress.ip_address(words[2].decode("ascii"))
    except ValueError as error:
        raise Unreadable("the address in the PROXY protocol is not valid") from error
    if source.version != int(words[1][3:]) or not words[4].isdigit() or len(words[4]) > 5:
        raise Unreadable("the address in the PROXY protocol is not valid")
    return Header(end + 2, (str(source), int(words[4])))


def _binary(data: bytes) -> Header | None:
    if len(data) < 16:
        return None
    command, family, length = struct.unpack_from("!BBH", data, 12)
    if command not in (_LOCAL, _PROXY) or length > LENGTH:
        raise Unreadable("the header of the PROXY protocol is not valid")
    if len(data) < 16 + length:
        return None
    if command == _LOCAL or family not in _FAMILIES:
        return Header(16 + length, None)
    size, form = _FAMILIES[family]
    if length < 2 * size + 4:
        raise Unreadable("the header of the PROXY protocol is not valid")
    address, port = struct.unpack_from(form, data, 16)
    return Header(16 + length, (str(ipaddress.ip_address(address)), port))
