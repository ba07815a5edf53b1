"""The copies of bodies that pass: in memory while they are small, then on the disk.

All together are limited. When they are too many, whoever has most loses the newest of his: one who sends bodies that
never end would otherwise keep those of all others from being recorded.
"""

from __future__ import annotations

from collections import Counter
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
        """Bytes of all of them, without those of which only the head is stored."""
        self._sizes: Counter[str] = Counter()
        """The same by payer."""
        self._large: dict[str, dict[Body, None]] = {}
        """By payer: those on the disk, in the order in which they came there."""

    def spool(self) -> Spool:
        """Return an empty copy that goes to the disk when it is large."""
        return Spool(self._folder, self._keep)

    def count(self, body: Body, more: int, *, large: bool) -> None:
        """Count bytes of a body, or fewer of them; ``large``: it is on the disk."""
        payer = body.payer
        self.size += more
        self._sizes[payer] += more
        bodies = self._large.setdefault(payer, {})
        if large:
            bodies[body] = None
        else:
            bodies.pop(body, None)
        if not bodies:
            del self._large[payer]
        if not self._sizes[payer]:
            del self._sizes[payer]
        if more > 0 and self.size > KEEP_ALL and self._large:
            most = self._large[max(self._large, key=self._sizes.__getitem__)]
            next(reversed(most)).cut()


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

    __slots__ = ("_copies", "_counted", "_spool", "payer")

    def __init__(self, copies: Copies, payer: str = "") -> None:
        """``payer`` is who it is charged to: a certname, or an address."""
        self._copies = copies
        self.payer = payer
        self._counted = 0
        self._spool: Spool | None = None
        """None as long as there is nothing to copy: most requests have no body."""

    def add(self, data: bytes) -> None:
        """Add a piece."""
        if data:
            self._spool = self._spool or self._copies.spool()
            self._spool.add(data)
            self._count()

    def cut(self) -> None:
        """Store only the head of it from now on."""
        if self._spool:
            self._spool.give_up()
            self._count()

    def _count(self) -> None:
        spool = self._spool
        size = 0 if spool is None or spool.cut else spool.size
        more, self._counted = size - self._counted, size
        if more:
            self._copies.count(self, more, large=spool is not None and spool.on_disk)

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
        self._count()
        return spool
