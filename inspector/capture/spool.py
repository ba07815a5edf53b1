"""A body that is passed on while it comes, and kept on the way: in memory while it is small, then on the disk.

However large a file is that an agent fetches, the proxy grows by what is under way. Beyond a limit only the first bytes
are kept, with the size and the digest of the whole.
"""

from __future__ import annotations

import hashlib
import os
import tempfile
from typing import IO, TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MEMORY = 2**20
"""Bytes of one body that are held in memory."""
HEAD = 64 * 2**10
"""Bytes that are kept of a body that is not kept whole."""
KEEP = 64 * 2**20
"""Bytes of a body that are kept, unless it is said otherwise."""
CHUNK = 2**20


class Spool:
    """The copy of one body. Not for more than one thread at a time."""

    def __init__(self, folder: Path, keep: int = KEEP) -> None:
        """What does not fit into memory goes to a file without a name in this directory; ``keep``: bytes that are kept
        at most."""
        self._folder = folder
        self._keep = keep
        self._head = bytearray()
        self._file: IO[bytes] | None = None
        self._digest = hashlib.sha256()
        self.size = 0
        """Bytes that came."""
        self.cut = False
        """Only the head is kept: the body is too large, or the disk has no room for it."""

    def add(self, data: bytes, *, wanted: bool = True) -> None:
        """More of it; not ``wanted``: no more is to be kept. Never raises."""
        self.size += len(data)
        self._digest.update(data)
        if self.cut:
            return
        if self.size > self._keep or not wanted:
            self._give_up()
            return
        if self._file is None and self.size <= MEMORY:
            self._head += data
            return
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115
                self._file.write(self._head)
                del self._head[HEAD:]
            self._file.write(data)
        except OSError:
            self._give_up()

    def _give_up(self) -> None:
        self.cut = True
        del self._head[HEAD:]
        self.close()

    @property
    def body(self) -> bytes | None:
        """The whole, if it is in memory."""
        return None if self.cut or self._file is not None else bytes(self._head)

    @property
    def head(self) -> bytes:
        """Its first bytes."""
        return bytes(self._head[:HEAD])

    @property
    def sha256(self) -> bytes:
        """The digest of the whole."""
        return self._digest.digest()

    def chunks(self) -> Iterator[bytes]:
        """The whole, from the disk. Raises OSError."""
        assert self._file is not None  # noqa: S101 - asked for only then
        at = 0
        while data := os.pread(self._file.fileno(), CHUNK, at):
            at += len(data)
            yield data

    def close(self) -> None:
        """Give the disk back what it took."""
        if self._file is not None:
            self._file.close()
            self._file = None
