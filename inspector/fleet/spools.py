"""Rows on their way into tables: one file of JSON lines for each table, compressed, in a directory for the work.

They are on the disk, so that memory does not depend on how large a capture is.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec
import zstandard

from inspector.clocks import LAST
from inspector.fleet.tables import OF_ROW
from inspector.privacy import redact
from inspector.text import beginning

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.fleet.tables import Table, TableRow

PLACES = "places"
"""The name of the spool that says which run is at a place."""
_BATCH = 2**16
"""Bytes that are compressed together."""


class Place(msgspec.Struct, frozen=True, gc=False):
    """The number and the agent of a run that is over, or that became part of another one."""

    place: int
    number: int | None
    """None: it is no run that is listed, such as the calls of a tool."""
    certname: str | None


class Spools:
    """The spools of one capture."""

    def __init__(self, folder: Path) -> None:
        """Write into this directory, which exists and is empty."""
        self._folder = folder
        self._spools: dict[str, _Spool] = {}
        self._encoder = msgspec.json.Encoder()

    def add(self, row: TableRow) -> None:
        """Add a row to the spool of its table."""
        self._add(OF_ROW[type(row)].name, row)

    def add_place(self, place: Place) -> None:
        """Add what is known of a run. It must be added once."""
        self._add(PLACES, place)

    def close(self) -> None:
        """Write what is pending; nothing can be added any more."""
        for spool in self._spools.values():
            spool.close()

    def path(self, table: Table) -> Path | None:
        """The file with the rows of a table; None if there are none."""
        return self._path(table.name)

    @property
    def places(self) -> Path | None:
        """The file with the runs; None if there are none."""
        return self._path(PLACES)

    def _path(self, name: str) -> Path | None:
        return self._spools[name].path if name in self._spools else None

    def _add(self, name: str, row: msgspec.Struct) -> None:
        spool = self._spools.get(name)
        if spool is None:
            spool = self._spools[name] = _Spool(self._folder / f"{name}.jsonl.zst")
        try:
            line = self._encoder.encode(row)
        except UnicodeEncodeError:  # half of a surrogate pair, which other notations than JSON can contain
            line = self._encoder.encode(_encodable(msgspec.to_builtins(row)))
        spool.write(line)


def _encodable(value: object) -> object:
    match value:
        case str():
            return value.encode("utf-8", "replace").decode()
        case list():
            return [_encodable(item) for item in value]
        case dict():
            return {key: _encodable(item) for key, item in value.items()}
    return value


class _Spool:
    def __init__(self, path: Path) -> None:
        self.path = path
        self._file = path.open("xb")
        self._packed = zstandard.ZstdCompressor(level=1).stream_writer(self._file)
        self._pending = bytearray()

    def write(self, line: bytes) -> None:
        self._pending += line
        self._pending += b"\n"
        if len(self._pending) >= _BATCH:
            self._flush()

    def _flush(self) -> None:
        self._packed.write(bytes(self._pending))
        self._pending.clear()

    def close(self) -> None:
        self._flush()
        self._packed.close()  # type: ignore[no-untyped-call]  # it closes the file too


# -- values as a row holds them --------------------------------------------------------------------------------

LONGEST = 1000
"""Characters of a text; of longer ones the beginning."""
MESSAGE = 2000
"""Characters of a message."""
_CACHED = 200
"""Characters of a text whose masked form is cached."""


def micros(time: float) -> int:
    """A time as a spool holds it: microseconds since the epoch, within the years that a table can hold."""
    return 0 if math.isnan(time) else round(min(max(time, 0.0), LAST) * 1e6)


def short(value: str | None) -> str | None:
    """A text as long as a table holds it."""
    return value if value is None or len(value) <= LONGEST else beginning(value, LONGEST)


def message(value: str) -> str:
    """A message as long as a table holds it."""
    return beginning(value, MESSAGE)


def masked(value: str) -> str:
    """A text with masks instead of likely secrets. The same paths and values of facts come again and again."""
    return _masked(value) if len(value) <= _CACHED else redact.text(value)


_masked = lru_cache(maxsize=32_768)(redact.text)
