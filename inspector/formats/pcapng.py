"""Blocks of a pcapng file, which Wireshark opens: written, and read again.

Source: PCAP Next Generation Capture File Format (draft-ietf-opsawg-pcapng).
"""

from __future__ import annotations

import struct
from typing import IO, TYPE_CHECKING, NamedTuple

from inspector import __version__
from inspector.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterator

SECTION, INTERFACE, PACKET, SECRETS = 0x0A0D0D0A, 1, 6, 10
"""Types of blocks."""
RAW_IP = 101
"""The link type of packets that begin with their IP header."""
LARGEST = 2**24
"""Bytes of a block that is read."""
_MAGIC = 0x1A2B3C4D
_TLS_KEY_LOG = 0x544C534B
_COMMENT, _NAME, _TSRESOL, _APPLICATION = 1, 2, 9, 4
"""Options: the first is one of every block, the others of interfaces and of the section."""
NANOSECONDS = b"\x09"
_PACKET, _SIZE = struct.Struct("<7I"), struct.Struct("<I")
"""The beginning of a packet's block, and the end of any."""


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _option(code: int, value: bytes) -> bytes:
    return struct.pack("<HH", code, len(value)) + _padded(value)


def _text(code: int, text: str) -> bytes:
    return _option(code, clean(text).encode()[:60_000].decode(errors="ignore").encode()) if text else b""


def _block(kind: int, body: bytes, options: bytes = b"") -> bytes:
    if options:
        options += bytes(4)
    size = 12 + len(body) + len(options)
    return struct.pack("<II", kind, size) + body + options + struct.pack("<I", size)


def section(comment: str) -> bytes:
    """Return the beginning of a file."""
    options = _text(_COMMENT, comment) + _text(_APPLICATION, f"puppet-inspector {__version__}")
    return _block(SECTION, struct.pack("<IHHq", _MAGIC, 1, 0, -1), options)


def interface(name: str) -> bytes:
    """Return an interface; the first one has the number 0. Its times are in nanoseconds."""
    options = _text(_NAME, name) + _option(_TSRESOL, NANOSECONDS)
    return _block(INTERFACE, struct.pack("<HHI", RAW_IP, 0, 0), options)


def packet(number: int, time: int, data: bytes, missing: int = 0, comment: str = "") -> bytes:
    """Return a packet of an interface at a time in nanoseconds; ``missing`` bytes of its end were not captured."""
    length = len(data)
    rest = bytes(-length % 4) + (_text(_COMMENT, comment) + bytes(4) if comment else b"")
    size = _PACKET.size + length + len(rest) + 4
    head = _PACKET.pack(PACKET, size, number, time >> 32, time & 0xFFFFFFFF, length, length + missing)
    return b"".join((head, data, rest, _SIZE.pack(size)))  # copied once: of the wire there are many


def secrets(lines: bytes, comment: str = "") -> bytes:
    """Return the secrets of TLS sessions, as lines of a key log."""
    return _block(SECRETS, struct.pack("<II", _TLS_KEY_LOG, len(lines)) + _padded(lines), _text(_COMMENT, comment))


class Block(NamedTuple):
    """A block that was read."""

    kind: int
    body: bytes
    """Without type and sizes."""

    @property
    def time(self) -> int:
        """The time of a packet, in nanoseconds."""
        high, low = struct.unpack_from("<II", self.body, 4)
        return int(high << 32 | low)

    @property
    def data(self) -> bytes:
        """The bytes of a packet, or the lines of secrets."""
        if self.kind == PACKET:
            (size,) = struct.unpack_from("<I", self.body, 12)
            return self.body[20 : 20 + size]
        (size,) = struct.unpack_from("<I", self.body, 4)
        return self.body[8 : 8 + size]

    @property
    def comment(self) -> str:
        """The first option of a packet or of secrets, if it is a comment."""
        at = (20 if self.kind == PACKET else 8) + len(_padded(self.data))
        if len(self.body) < at + 4:
            return ""
        code, size = struct.unpack_from("<HH", self.body, at)
        return self.body[at + 4 : at + 4 + size].decode(errors="replace") if code == _COMMENT else ""

    def whole(self) -> bytes:
        """Return the block as it was."""
        return _block(self.kind, self.body)


def blocks(file: IO[bytes]) -> Iterator[Block]:
    """Yield the blocks of a file that this module wrote. It may be cut off: what comes after damage is not read."""
    while len(head := file.read(8)) == 8:
        kind, size = struct.unpack("<II", head)
        if not 12 <= size <= LARGEST or size % 4:
            return
        rest = file.read(size - 8)
        if len(rest) < size - 8 or struct.unpack_from("<I", rest, size - 12)[0] != size:
            return
        if kind in (PACKET, SECRETS) and size < (32 if kind == PACKET else 20):
            return
        yield Block(kind, rest[:-4])
