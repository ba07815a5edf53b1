"""What waits to be recorded, and what of it is dropped when it is too much."""

from __future__ import annotations

import dataclasses
import threading
from collections import Counter
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from inspector.model import Exchange, Gap
from inspector.protocol import endpoints, kinds
from inspector.proxy.limits.quota import ADDRESSES
from inspector.text import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from inspector.capture.spool import Spool
    from inspector.model import Connection, Message, Record
    from inspector.proxy.analysis_client import AnalysisResult

    type Callback = Callable[[AnalysisResult], None]

RECORD = 3000
"""Bytes of memory that a record takes without its bodies and headers."""
RESERVE = 8
"""The part of the limit that is added for nodes that have less waiting than others."""
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
    node: str = ""
    """Whose record it is: the certname of the identity that was used, or else the address."""

    def close(self) -> None:
        """Release the large bodies: it is not recorded."""
        for spool in self.spools.values():
            spool.close()


class Backlog:
    """Counts what waits, and decides what of it is dropped: of the nodes that have most waiting.

    One thread adds, another one removes.
    """

    def __init__(self, limit: int, work: str, *, names: bool = True) -> None:
        """Above half of ``limit`` bytes the bodies of files are dropped, above it exchanges about files, and above
        twice the limit everything. ``work`` says what all of it waits for: to be written. ``names``: what was dropped
        may name whose it was."""
        self._limit = limit
        self._work = work
        self._names = names
        self._lock = threading.Lock()
        """Held for some steps only: the event loop adds."""
        self._waiting = 0
        self._nodes: Counter[str] = Counter()
        """Bytes that wait, by node."""
        self._dropped: dict[str, Counter[str]] = {}
        """By kind of loss the records, by node."""

    def add(self, record: Record | Connection, callback: Callback | None, spools: Mapping[str, Spool]) -> Item | None:
        """Return what is recorded of a record; None for nothing."""
        node = _node(record)
        with self._lock:
            if self._waiting > self._limit // 2 and (reduced := self._reduced(record, node)) is not record:
                if reduced is None:
                    Item(record, callback, spools).close()
                    return None
                record = reduced  # large bodies stay: they are on the disk
            weight = _weight(record)
            self._waiting += weight
            self._nodes[node] += weight
        return Item(record, callback, spools, weight, node)

    @property
    def waiting(self) -> int:
        """About as many bytes of memory as what waits takes."""
        return self._waiting

    def remove(self, item: Item) -> None:
        """Note that an item waits no more."""
        with self._lock:
            self._waiting -= item.weight
            self._nodes[item.node] -= item.weight
            if self._nodes[item.node] <= 0:
                del self._nodes[item.node]

    def drops(self) -> Iterator[tuple[str, int]]:
        """What was dropped since the last call, as sentences, each with the number of records that were lost."""
        with self._lock:
            dropped, self._dropped = self._dropped, {}
        for kind, nodes in dropped.items():
            number, ((node, most), *_) = nodes.total(), nodes.most_common(1)
            whose = f" ({most:,} of {clean(node)})" if self._names and node else ""
            yield DROPS[kind].format(number, self._work) + whose, 0 if kind == "body" else number

    def _reduced(self, record: Record | Connection, node: str) -> Record | Connection | None:
        """Return what is recorded while too much waits: bodies are dropped first, then exchanges.

        Of a node that has less waiting than the average, nothing is dropped as long as there is any room.
        """
        waiting = self._waiting
        if self._nodes[node] * len(self._nodes) < waiting and waiting <= 2 * self._limit + self._limit // RESERVE:
            return record
        about_files = isinstance(record, Exchange) and _FILES.search(record.request.target) is not None
        if waiting > 2 * self._limit:
            self._drop("record", node)
            return None
        if waiting > self._limit and about_files:
            self._drop("file", node)
            return None
        if isinstance(record, Exchange) and about_files and (bare := _without_bodies(record)) is not record:
            self._drop("body", node)
            return bare
        return record

    def _drop(self, kind: str, node: str) -> None:
        nodes = self._dropped.setdefault(kind, Counter())
        nodes[node if node in nodes or len(nodes) < ADDRESSES else ""] += 1


def _node(record: Record | Connection) -> str:
    if isinstance(record, Exchange):
        return (record.identity.certname if record.identity else None) or record.agent.address or ""
    return "" if isinstance(record, Gap) else record.leg.address or ""


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
