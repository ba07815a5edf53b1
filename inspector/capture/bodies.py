"""The bodies and certificates of a capture, each stored once, packed."""

from __future__ import annotations

import hashlib
import tempfile
from typing import TYPE_CHECKING

import zstandard

from inspector.capture.spool import CHUNK

if TYPE_CHECKING:
    import sqlite3
    from pathlib import Path

    from inspector.capture.spool import Spool

MAX_BLOB = 2**31 - 1
"""The largest body that is unpacked (bytes)."""

CACHED = 2**22
"""Bytes of unpacked bodies that a reader keeps: many records have the same ones."""
CACHED_BODY = 2**18
"""The largest of them."""
KNOWN = 20_000
"""Digests of written bodies that are remembered."""


class Bodies:
    """Writes and reads the table ``blob``. Its caller begins and ends the transactions."""

    def __init__(self, db: sqlite3.Connection, folder: Path) -> None:
        """``folder`` has room for the temporary files that large bodies need."""
        self._db = db
        self._folder = folder
        self._zstd = zstandard.ZstdCompressor(level=3, write_content_size=True)
        self._unzstd = zstandard.ZstdDecompressor()
        self._known: set[bytes] = set()
        """Digests of stored bodies."""
        self._stored: set[bytes] = set()
        """Digests of bodies that are stored once the transaction is committed."""
        self._read: dict[str, bytes] = {}
        """The bodies that were read last, by their digest."""
        self._size = 0
        """Bytes of them."""

    def committed(self) -> None:
        """Remember what the transaction has stored."""
        if len(self._known) > KNOWN:
            self._known.clear()  # an optimisation only: existing bodies are not written again anyway
        self._known |= self._stored
        self._stored.clear()

    def rolled_back(self) -> None:
        """Forget what the transaction would have stored."""
        self._stored.clear()

    def write_spool(self, spool: Spool) -> str:
        """Copy a large body from the disk into the capture, piece by piece; return its digest."""
        digest = spool.sha256
        if digest not in self._known and digest not in self._stored:
            with tempfile.TemporaryFile(dir=self._folder) as packed:
                packer = self._zstd.compressobj(size=spool.size)
                for chunk in spool.chunks():
                    packed.write(packer.compress(chunk))
                packed.write(packer.flush())
                size = packed.tell()
                packed.seek(0)
                made = self._db.execute(
                    "INSERT INTO blob (sha256, size, data) VALUES (?, ?, zeroblob(?)) ON CONFLICT DO NOTHING",
                    (digest, spool.size, size),
                )
                if made.rowcount and made.lastrowid:
                    with self._db.blobopen("blob", "data", made.lastrowid) as blob:
                        while chunk := packed.read(CHUNK):
                            blob.write(chunk)
            self._stored.add(digest)
        return digest.hex()

    def write(self, data: bytes) -> str | None:
        """Store a body; return its digest, None for an empty one."""
        if not data:
            return None
        digest = hashlib.sha256(data).digest()
        if digest not in self._known and digest not in self._stored:
            self._db.execute(
                "INSERT INTO blob (sha256, size, data) VALUES (?, ?, ?) ON CONFLICT DO NOTHING",
                (digest, len(data), self._zstd.compress(data)),
            )
            self._stored.add(digest)
        return digest.hex()

    def read(self, digest: str | None) -> bytes:
        """Return the body with a digest. Raises ValueError if it is missing or damaged."""
        if not digest:
            return b""
        if (known := self._read.pop(digest, None)) is not None:
            self._read[digest] = known
            return known
        row = self._db.execute("SELECT size, data FROM blob WHERE sha256 = ?", (bytes.fromhex(digest),)).fetchone()
        if row is None or row[0] > MAX_BLOB:
            raise ValueError(f"a body is missing ({digest[:12]})")
        try:
            body = self._unzstd.decompress(row[1], max_output_size=row[0])
        except zstandard.ZstdError as error:
            raise ValueError(f"a body cannot be unpacked ({digest[:12]}: {error})") from error
        if len(body) <= CACHED_BODY:
            self._read[digest] = body
            self._size += len(body)
            while self._size > CACHED:
                self._size -= len(self._read.pop(next(iter(self._read))))
        return body
