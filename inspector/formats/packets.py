"""TCP made up around what was sent over a connection: true addresses and times, sequence numbers of our own."""

from __future__ import annotations

import hashlib
import ipaddress
import struct
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator

SEGMENT = 32_768
"""Bytes of data in a packet, as network cards hand them over."""
INCOMPLETE = 60_000
"""The same if not all of a message was recorded: its beginning is in one packet, which itself is incomplete. Otherwise
Wireshark would wait for the rest, and not show its head."""
MISSING = 2048
"""Packets that stand for bytes which were not recorded; more bytes are only a gap in the sequence numbers."""
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
"""Flags of TCP."""
_WINDOW = 65_535
_TCP = 6
_OFFSET = 5 << 4
"""The length of TCP's header, without options."""
_FOUR, _SIX = struct.Struct("!BBHHHBBH4s4sHHIIBBHHH"), struct.Struct("!IHBB16s16sHHIIBBHHH")
"""The headers of IPv4 or IPv6 and TCP."""


class Peer(NamedTuple):
    """An end of a connection; an address that is not known is the unspecified one."""

    address: str | None
    port: int | None


class Packet(NamedTuple):
    """A packet, which begins with its IP header."""

    time: int
    """In nanoseconds."""
    data: bytes
    missing: int = 0
    """Bytes at its end that were not recorded."""
    comment: str = ""


type _Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def _address(text: str | None) -> _Address | None:
    try:
        return ipaddress.ip_address((text or "").partition("%")[0])
    except ValueError:
        return None


def _pair(one: str | None, other: str | None) -> tuple[bytes, bytes, bool]:
    """Return both addresses in the same version, and whether that is 6."""
    found = [_address(text) for text in (one, other)]
    six = any(address is not None and address.version == 6 for address in found)
    packed = []
    for address in found:
        if address is None:
            packed.append(bytes(16 if six else 4))
        elif six and address.version == 4:
            packed.append(bytes(10) + b"\xff\xff" + address.packed)
        else:
            packed.append(address.packed)
    return packed[0], packed[1], six


class Stream:
    """A TCP connection. Its packets are never earlier than the previous ones."""

    def __init__(self, ident: str, client: Peer, server: Peer) -> None:
        """``ident`` is what sequence numbers, and a port that is not known, are made of."""
        client_address, server_address, self._six = _pair(client.address, server.address)
        made = hashlib.sha256(ident.encode("utf-8", "surrogatepass")).digest()
        ports = [peer.port if peer.port and 0 < peer.port < 65_536 else port for peer, port in
                 ((client, 32_768 + int.from_bytes(made[:2]) % 28_000), (server, 8140))]  # fmt: skip
        self._ways: tuple[tuple[bytes, bytes, int, int], ...] = (
            (client_address, server_address, ports[0], ports[1]),
            (server_address, client_address, ports[1], ports[0]),
        )
        # What checksums are made of that is the same both ways.
        addresses = _words(client_address) + _words(server_address)
        self._ip_words = addresses + 0x4500 + 0x4000 + (64 << 8 | _TCP)
        self._tcp_words = addresses + sum(ports) + _TCP + (_OFFSET << 8) + _WINDOW
        self._next = [int.from_bytes(made[2:6]), int.from_bytes(made[6:10])]
        """The next sequence number of the client, and of the server."""
        self._time = 0
        self.opened = False
        self._closed = [False, False]

    def open(self, began: int, connected: int, comment: str = "") -> Iterator[Packet]:
        """Yield the handshake of TCP."""
        self.opened = True
        yield self.packet(0, began, SYN, comment=comment)
        yield self.packet(1, connected, SYN | ACK)
        yield self.packet(0, connected, ACK)

    def send(
        self, by: int, began: int, ended: int, data: bytes, missing: int = 0, comment: str = ""
    ) -> Iterator[Packet]:
        """Yield data of the client (0) or of the server (1), sent between two moments; after it come bytes that were
        not recorded."""
        missing = max(0, missing)  # a damaged capture may have any number
        if missing:
            missing += len(data) - len(data[:INCOMPLETE])
            data = data[:INCOMPLETE]
            here = min(missing, INCOMPLETE + 1 - len(data))
            yield self.packet(by, began, ACK | PSH, data, here, comment)
            left = missing - here
        else:
            left = 0
            for at in range(0, len(data), SEGMENT):
                piece = data[at : at + SEGMENT]
                time = began + (ended - began) * (at + len(piece)) // len(data) if at else began
                yield self.packet(by, time, ACK | PSH, piece, comment=comment if not at else "")
        for _ in range(MISSING):
            if left <= 0:
                break
            yield self.packet(by, ended, ACK, missing=min(left, SEGMENT))
            left -= SEGMENT
        self._next[by] += max(0, left)
        if data or missing:
            yield self.packet(1 - by, ended, ACK)

    def note(self, by: int, time: int, comment: str) -> Packet:
        """Return a packet without data, with a comment."""
        return self.packet(by, time, ACK, comment=comment)

    def close(self, by: int, time: int, *, reset: bool = False, comment: str = "") -> Iterator[Packet]:
        """Yield the end that one side makes; nothing if it has done so."""
        if self._closed[by] or not self.opened:
            return
        self._closed[by] = True
        if reset:
            self._closed = [True, True]
        yield self.packet(by, time, RST | ACK if reset else FIN | ACK, comment=comment)
        if not reset:
            yield self.packet(1 - by, time, ACK)

    def packet(self, by: int, time: int, flags: int, data: bytes = b"", missing: int = 0, comment: str = "") -> Packet:
        """Return a packet of one side, with these flags of TCP."""
        self._time = time = max(self._time, time)
        source, target, source_port, target_port = self._ways[by]
        acknowledged = self._next[1 - by] & 0xFFFFFFFF if flags & ACK else 0
        sequence = self._next[by] & 0xFFFFFFFF
        self._next[by] += len(data) + missing + bool(flags & (SYN | FIN))
        size = 20 + len(data) + missing
        checksum = 0
        if not missing:  # else it covers what is not there
            checksum = _checksum(self._tcp_words + size + flags + sequence + acknowledged + _words(data))
        tcp = source_port, target_port, sequence, acknowledged, _OFFSET, flags, _WINDOW, checksum, 0
        if self._six:
            head = _SIX.pack(6 << 28, size, _TCP, 64, source, target, *tcp)
        else:
            size += 20
            checksum = _checksum(self._ip_words + size)
            head = _FOUR.pack(0x45, 0, size, 0, 0x4000, 64, _TCP, checksum, source, target, *tcp)
        return Packet(time, head + data, missing, comment)


def _words(data: bytes) -> int:
    """Return a number with the same checksum as the sum of the 16-bit words of some data: 2**16 is 1 modulo 2**16 - 1.
    The sum itself takes ten times as long, and dividing the whole number half as long again."""
    half = len(data) >> 2 << 1
    return (int.from_bytes(data[:half]) + (int.from_bytes(data[half:]) << len(data) % 2 * 8)) % 0xFFFF


def _checksum(total: int) -> int:
    """Return the checksum of IP and TCP (RFC 1071) of a sum of words, or of longer numbers."""
    return -total % 0xFFFF
