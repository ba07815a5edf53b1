"""The bodies and certificates of a capture, each stored once, and the JSON of its records: how both are packed."""

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


# -- the JSON of records and connections ---------------------------------------------------------------

LEARNT = 32
"""Records that the dictionary is made from."""
DICTIONARY = 2**16
"""Maximum size of the dictionary in bytes."""
MAX_TEXT = 2**26
"""The largest JSON of a record that is unpacked (bytes)."""


class Texts:
    """Packs and unpacks the JSON of records and legs with the capture's dictionary, once there is one."""

    def __init__(self, db: sqlite3.Connection) -> None:
        self._db = db
        self._packer: zstandard.ZstdCompressor | None = None
        self._unpacker: zstandard.ZstdDecompressor | None = None

    def learn(self) -> None:
        """Load the dictionary, or make it from the records so far. Only within a transaction; discard it on failure."""
        if self._packer is None and (known := self._known() or self._made()):
            self._packer = zstandard.ZstdCompressor(level=3, dict_data=known, write_content_size=True)

    def pack(self, text: str) -> str | bytes:
        """Pack JSON; as long as there is no dictionary it stays text."""
        return self._packer.compress(text.encode()) if self._packer else text

    def unpack(self, data: str | bytes) -> str | bytes:
        """Unpack JSON. Raises ValueError if it is damaged."""
        if isinstance(data, str):
            return data
        if self._unpacker is None:
            self._unpacker = zstandard.ZstdDecompressor(dict_data=self._known())
        try:
            if zstandard.frame_content_size(data) > MAX_TEXT:
                raise ValueError("it is too large")
            return self._unpacker.decompress(data)
        except zstandard.ZstdError as error:
            raise ValueError(f"cannot be unpacked ({error})") from error

    def _known(self) -> zstandard.ZstdCompressionDict | None:
        row = self._db.execute("SELECT data FROM dictionary").fetchone()
        return _dictionary(zstandard.decompress(row[0], max_output_size=DICTIONARY)) if row else None

    def _made(self) -> zstandard.ZstdCompressionDict | None:
        records = self._db.execute("SELECT data FROM record ORDER BY seq LIMIT ?", (LEARNT,)).fetchall()
        if len(records) < LEARNT:
            return None
        legs = self._db.execute("SELECT leg FROM connection ORDER BY opened LIMIT ?", (LEARNT // 4,)).fetchall()
        data = "".join(text for (text,) in legs + records).encode()[-DICTIONARY:]
        self._db.execute("INSERT INTO dictionary VALUES (?)", (zstandard.compress(data),))
        return _dictionary(data)


def _dictionary(data: bytes) -> zstandard.ZstdCompressionDict:
    return zstandard.ZstdCompressionDict(data, dict_type=zstandard.DICT_TYPE_RAWCONTENT)
