"""The bodies and certificates of a capture, each stored once, and the JSON of its records: how both are packed.

Packed zeros have a ten-thousandth of their size, and a record that names a stored body has some bytes: what a reader
unpacks is limited by the size of the file, not by what it claims (``Share``).
"""

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
SMALL = 2**16
"""Bytes up to which a body or a record's JSON does not count: a record has some hundred bytes in the file itself."""
UNPACKED = 2**28
"""Bytes of larger ones that are unpacked of any capture."""
RATIO = 300
"""Bytes of them for each byte of the file beyond that: text packs to a tenth, and many nodes fetch the same files."""


class Unread(ValueError):
    """It is not unpacked: the file's share is used up."""

    def __init__(self, size: int) -> None:
        super().__init__(
            f"{size:,} bytes were not unpacked: what was read of this capture before has many times its size"
        )
        self.size = size


class Share:
    """What a reader may unpack of a file, in all: in proportion to its size."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._used = 0
        self._limit = 0

    def take(self, size: int) -> None:
        """Count what is about to be unpacked. Raises Unread if it is too much."""
        if size <= SMALL:
            return
        if self._used + size > self._limit:  # the file may have grown
            self._limit = UNPACKED + RATIO * _occupied(self._path)
        if self._used + size > self._limit:
            raise Unread(size)
        self._used += size


def _occupied(path: Path) -> int:
    """Return the bytes of a file, without its holes."""
    try:
        status = path.stat()
    except OSError:
        return 0
    return min(status.st_size, status.st_blocks * 512)


class Bodies:
    """Writes and reads the table ``blob``. Its caller begins and ends the transactions."""

    def __init__(self, db: sqlite3.Connection, folder: Path, share: Share | None) -> None:
        """``folder`` has room for the temporary files that large bodies need. Without ``share`` all is unpacked."""
        self._db = db
        self._folder = folder
        self._share = share
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
        """Return the body with a digest. Raises ValueError if it is missing or damaged, Unread if it is too much."""
        if not digest:
            return b""
        if (known := self._read.pop(digest, None)) is not None:
            self._read[digest] = known
            self._take(len(known))
            return known
        row = self._db.execute("SELECT size, data FROM blob WHERE sha256 = ?", (bytes.fromhex(digest),)).fetchone()
        if row is None or not 0 <= row[0] <= MAX_BLOB:
            raise ValueError(f"a body is missing ({digest[:12]})")
        self._take(row[0])
        try:
            if zstandard.frame_content_size(row[1]) not in (row[0], zstandard.CONTENTSIZE_UNKNOWN):
                raise ValueError(f"a body has another size than its record ({digest[:12]})")
            body = self._unzstd.decompress(row[1], max_output_size=row[0])
        except zstandard.ZstdError as error:
            raise ValueError(f"a body cannot be unpacked ({digest[:12]}: {error})") from error
        if len(body) <= CACHED_BODY:
            self._read[digest] = body
            self._size += len(body)
            while self._size > CACHED:
                self._size -= len(self._read.pop(next(iter(self._read))))
        return body

    def _take(self, size: int) -> None:
        if self._share is not None:
            self._share.take(size)


# -- the JSON of records and connections ---------------------------------------------------------------

LEARNT = 32
"""Records that the dictionary is made from."""
DICTIONARY = 2**16
"""Maximum size of the dictionary in bytes."""
MAX_TEXT = 2**26
"""The largest JSON of a record that is unpacked (bytes)."""


class Texts:
    """Packs and unpacks the JSON of records and legs with the capture's dictionary, once there is one."""

    def __init__(self, db: sqlite3.Connection, share: Share | None) -> None:
        self._db = db
        self._share = share
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
        """Unpack JSON. Raises ValueError if it is damaged, or too much."""
        if isinstance(data, str):
            return data
        if self._unpacker is None:
            self._unpacker = zstandard.ZstdDecompressor(dict_data=self._known())
        try:
            size = zstandard.frame_content_size(data)
            if size > MAX_TEXT:
                raise ValueError("it is too large")
            if self._share is not None:
                self._share.take(size)
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
