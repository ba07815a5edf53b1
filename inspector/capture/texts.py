"""The JSON of records and connections, packed with a dictionary that is made from the first of them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import zstandard

if TYPE_CHECKING:
    import sqlite3

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
