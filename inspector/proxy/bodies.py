"""The copies of bodies that pass: in memory while they are small, then on the disk."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from inspector.capture.spool import Spool

if TYPE_CHECKING:
    from pathlib import Path

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
    """The copy of a body while it passes."""

    __slots__ = ("_copies", "_spool")

    def __init__(self, copies: Copies) -> None:
        self._copies = copies
        self._spool: Spool | None = None
        """None as long as there is nothing to copy: most requests have no body."""

    def add(self, data: bytes) -> None:
        """Add a piece."""
        if data:
            self._copies.size += len(data)
            self._spool = self._spool or self._copies.spool()
            self._spool.add(data, wanted=self._copies.size <= KEEP_ALL)

    @property
    def size(self) -> int:
        """Bytes so far."""
        return self._spool.size if self._spool else 0

    @property
    def in_memory(self) -> int:
        """Bytes of it in memory."""
        return self._spool.in_memory if self._spool else 0

    def finish(self) -> Copy:
        """Return the copy: the body is complete."""
        spool = self._take()
        if spool is None:
            return Copy(b"")
        if not spool.cut:
            return Copy(b"", spool) if spool.body is None else Copy(spool.body)
        lost = spool.size - len(spool.head)
        return Copy(spool.head, lost=lost, digest=spool.sha256.hex() if lost else "")

    def close(self) -> None:
        """Forget the body, unless it was handed on."""
        if spool := self._take():
            spool.close()

    def _take(self) -> Spool | None:
        spool, self._spool = self._spool, None
        if spool:
            self._copies.size -= spool.size
        return spool
