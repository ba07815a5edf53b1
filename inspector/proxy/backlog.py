"""What waits to be recorded, and what of it is dropped when it is too much."""

from __future__ import annotations

import dataclasses
from collections import Counter
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from inspector.model import Exchange
from inspector.protocol import endpoints, kinds

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from inspector.capture.spool import Spool
    from inspector.model import Connection, Message, Record
    from inspector.proxy.analysis_client import AnalysisResult

    type Callback = Callable[[AnalysisResult], None]

RECORD = 3000
"""Bytes of memory that a record takes without its bodies and headers."""
HEADER = 150
"""Bytes of memory that a header takes besides its text."""
_FILES = endpoints.paths(kinds.FILES)

DROPS = {
    "body": "{} exchanges about files recorded without bodies: traffic came in faster than it could be {}",
    "file": "{} exchanges about files lost: traffic came in faster than it could be {}",
    "record": "{} records lost: traffic came in faster than it could be {}",
}


class Item(NamedTuple):
    """A record, or the state of a connection, that waits to be recorded."""

    record: Record | Connection
    callback: Callback | None = None
    """Gets the analysis result, on another thread."""
    spools: Mapping[str, Spool] = MappingProxyType({})
    """The record's large bodies."""
    weight: int = 0
    """About as many bytes of memory as it takes."""

    def close(self) -> None:
        """Release the large bodies: it is not recorded."""
        for spool in self.spools.values():
            spool.close()


class Backlog:
    """Counts what waits, and decides what of it is dropped. One thread adds, another one removes."""

    def __init__(self, limit: int, work: str) -> None:
        """Above half of ``limit`` bytes the bodies of files are dropped, above it exchanges about files, and above
        twice the limit everything. ``work`` says what all of it waits for: to be written."""
        self._limit = limit
        self._work = work
        self._added = self._removed = 0
        self._dropped: Counter[str] = Counter()

    def add(self, record: Record | Connection, callback: Callback | None, spools: Mapping[str, Spool]) -> Item | None:
        """Return what is recorded of a record; None for nothing."""
        waiting = self.waiting
        if waiting > self._limit // 2 and (reduced := self._reduced(record, waiting)) is not record:
            if reduced is None:
                Item(record, callback, spools).close()
                return None
            record = reduced  # large bodies stay: they are on the disk
        weight = _weight(record)
        self._added += weight
        return Item(record, callback, spools, weight)

    @property
    def waiting(self) -> int:
        """About as many bytes of memory as what waits takes."""
        return self._added - self._removed

    def remove(self, item: Item) -> None:
        """Note that an item waits no more."""
        self._removed += item.weight

    def drops(self) -> Iterator[tuple[str, int]]:
        """What was dropped since the last call, as sentences, each with the number of records that were lost."""
        for kind in list(self._dropped):
            number = self._dropped.pop(kind)
            yield DROPS[kind].format(number, self._work), 0 if kind == "body" else number

    def _reduced(self, record: Record | Connection, waiting: int) -> Record | Connection | None:
        """Return what is recorded while too much waits: bodies are dropped first, then exchanges."""
        about_files = isinstance(record, Exchange) and _FILES.search(record.request.target) is not None
        if waiting > 2 * self._limit:
            self._dropped["record"] += 1
            return None
        if waiting > self._limit and about_files:
            self._dropped["file"] += 1
            return None
        if isinstance(record, Exchange) and about_files and (bare := _without_bodies(record)) is not record:
            self._dropped["body"] += 1
            return bare
        return record


def _weight(record: Record | Connection) -> int:
    if not isinstance(record, Exchange):
        return RECORD
    weight = RECORD + len(record.request.target) + _size(record.request)
    return weight + _size(record.response) if record.response else weight


def _size(message: Message) -> int:
    return len(message.body) + sum(HEADER + len(name) + len(value) for name, value in message.headers)


def _without_bodies(exchange: Exchange) -> Exchange:
    request, response = exchange.request, exchange.response
    if not request.body and not (response and response.body):
        return exchange
    return dataclasses.replace(
        exchange,
        request=dataclasses.replace(request, body=b"", lost=request.lost + len(request.body)),
        response=response and dataclasses.replace(response, body=b"", lost=response.lost + len(response.body)),
    )
