"""The copy of a body that is streamed through the proxy: in memory while it is small, then on the disk.

So the proxy's memory does not grow with the files that agents download. Above a limit only the first bytes are stored,
with the size and the digest of the whole body.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import tempfile
from pathlib import Path
from typing import IO, TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Iterator

MEMORY = 64 * 2**10
"""Bytes of one body that are kept in memory."""
HEAD = 64 * 2**10
"""Bytes that are stored of a body that is not stored whole."""
KEEP = 64 * 2**20
"""Default for the largest body that is stored whole."""
CHUNK = 2**20


class Spool:
    """The copy of one body. Not for more than one thread at a time."""

    def __init__(self, folder: Path, keep: int = KEEP) -> None:
        """Create an empty copy. Above the memory limit it uses an unnamed file in this directory; ``keep`` is the
        largest body that is stored whole."""
        self._folder = folder
        self._keep = keep
        self._head = bytearray()
        self._file: IO[bytes] | None = None
        self._digest: hashlib._Hash | None = None
        """Only of a body that is not in memory."""
        self._sha256: bytes | None = None
        self.size = 0
        """Size of the body so far."""
        self.cut = False
        """Only the head is stored: the body is too large, or the disk is full."""

    @classmethod
    def received(cls, descriptor: int, size: int, sha256: bytes) -> Self:
        """Return the copy of a body that another process wrote to a file; it owns the descriptor."""
        spool = cls(Path())
        spool._file = os.fdopen(descriptor, "rb", buffering=0)
        spool.size, spool._sha256 = size, sha256
        return spool

    def add(self, data: bytes) -> None:
        """Add a piece of the body. Never raises."""
        self.size += len(data)
        wanted = self.size <= self._keep
        if self._digest is None:
            if wanted and self.size <= MEMORY:
                self._head += data
                return
            self._digest = hashlib.sha256(self._head)
        self._digest.update(data)
        if self.cut:
            return
        if not wanted:
            self.give_up(data)
            return
        try:
            if self._file is None:
                file = tempfile.TemporaryFile(dir=self._folder, buffering=0)  # noqa: SIM115
                with contextlib.ExitStack() as stack:
                    stack.callback(file.close)
                    _write(file, self._head)
                    stack.pop_all()
                # The file has it now: of a thousand bodies under way the heads would be 64 MB.
                self._file, self._head = file, bytearray()
            _write(self._file, data)
        except OSError:
            self.give_up(data)

    def give_up(self, data: bytes = b"") -> None:
        """Store only the head from now on; the last piece was not stored, or only a part of it."""
        begin = self.head[: self.size - len(data)]
        self._head = bytearray(begin + data[: HEAD - len(begin)])
        self.cut = True
        self.close()

    @property
    def in_memory(self) -> int:
        """Bytes in memory."""
        return len(self._head)

    @property
    def on_disk(self) -> bool:
        """Whether it is in a file."""
        return self._file is not None

    @property
    def body(self) -> bytes | None:
        """The whole body, if it is in memory."""
        return None if self.cut or self._file is not None else bytes(self._head)

    @property
    def head(self) -> bytes:
        """The first bytes of the body."""
        if self._file is not None:
            with contextlib.suppress(OSError):
                return os.pread(self.descriptor, HEAD, 0)
        return bytes(self._head[:HEAD])

    @property
    def sha256(self) -> bytes:
        """The digest of the whole body."""
        if self._sha256 is None:
            return (self._digest or hashlib.sha256(self._head)).digest()
        return self._sha256

    @property
    def descriptor(self) -> int:
        """The descriptor of the file that holds the body."""
        assert self._file is not None  # noqa: S101 - only asked for after the body was moved to the disk
        return self._file.fileno()

    def chunks(self) -> Iterator[bytes]:
        """Yield the whole body from the disk. Raises OSError."""
        at = 0
        while data := os.pread(self.descriptor, CHUNK, at):
            at += len(data)
            yield data

    def close(self) -> None:
        """Release the file."""
        if self._file is not None:
            self._file.close()
            self._file = None


def _write(file: IO[bytes], data: bytes | bytearray) -> None:
    """Write all of it. Raises OSError: on a disk that is almost full a part may be written first."""
    view = memoryview(data)
    while view:
        view = view[file.write(view) :]
