"""The copies of bodies that pass: in memory while they are small, then on the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from inspector.capture.spool import Spool

if TYPE_CHECKING:
    from pathlib import Path

SMALL = 2**16
"""Bytes of a body in memory."""
KEEP_ALL = 512 * 2**20
"""Limit for the copies of all bodies in transfer, in bytes: anyone who can reach the proxy can send bodies."""


class Copies:
    """Counts the copies of all bodies in transfer."""

    def __init__(self, folder: Path, keep: int) -> None:
        """``folder`` has room for large bodies; ``keep`` is the largest one that is stored whole."""
        self._folder, self._keep = folder, keep
        self.size = 0
        """Bytes of all of them."""

    def spool(self) -> Spool:
        """Return an empty copy that goes to the disk when it is large."""
        return Spool(self._folder, self._keep)


class Copy(NamedTuple):
    """A body that was copied."""

    data: bytes
    spool: Spool | None = None
    """Has a large body whole; then ``data`` is empty."""
    lost: int = 0
    """Bytes that were not stored."""
    digest: str = ""
    """The SHA-256 (hex) of a body that was not stored whole."""


class Body:
    """The copy of a body: in memory while it is small, then in a spool."""

    __slots__ = ("_copies", "_data", "size", "spool")

    def __init__(self, copies: Copies) -> None:
        self._copies = copies
        self._data = bytearray()
        self.size = 0
        self.spool: Spool | None = None
        """Set once the body is large."""

    def add(self, data: bytes) -> None:
        """Add a piece."""
        self._copies.size += len(data)
        self.size += len(data)
        if self.spool is None:
            self._data += data
            if self.size <= SMALL:
                return
            self.spool, data, self._data = self._copies.spool(), bytes(self._data), bytearray()
        self.spool.add(data, wanted=self._copies.size <= KEEP_ALL)

    def finish(self) -> Copy:
        """Return the copy: the body is complete."""
        spool, self.spool = self.spool, None
        self.close()
        if spool is None:
            return Copy(bytes(self._data))
        if spool.cut:
            return Copy(spool.head, lost=spool.size - len(spool.head), digest=spool.sha256.hex())
        return Copy(b"", spool)

    def close(self) -> None:
        """Forget the body, unless it was handed on."""
        self._copies.size -= self.size
        self.size = 0
        if self.spool is not None:
            self.spool.close()
            self.spool = None
