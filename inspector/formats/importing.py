"""Import of records into a capture, from the files of other tools and from our own exports.

The type of a file is detected from its contents. Of a file that is cut off or damaged, the records before the damage
are imported.
"""

from __future__ import annotations

import heapq
import itertools
import math
import operator
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from inspector import inputs, regex
from inspector.capture import paths
from inspector.capture.replacing import created, must_be_new
from inspector.errors import CaptureError
from inspector.formats import har_reader, jsonl
from inspector.model import Connection, Handshake
from inspector.progress import unwatched
from inspector.protocol import alerts
from inspector.text import beginning, clean, size

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from inspector.capture.store import Capture
    from inspector.formats.lossless import CaptureItem
    from inspector.model import Exchange
    from inspector.progress import Watch

_LABELS = {"handshakes": "failed handshakes"}
BATCH = 500
"""Records per write."""
REASON = 400
"""Characters of the reason why a file cannot be read: it may quote the file."""
_HEAD = 4096
"""Bytes from which the type of a file is detected."""


@dataclass(slots=True)
class Loaded:
    """The result of an import."""

    kinds: Counter[str] = field(default_factory=Counter)
    """The number of records and connections of each kind that were imported; without any no capture is made."""
    errors: list[CaptureError] = field(default_factory=list)
    """The errors in the files, at most one per file."""
    formats: set[str] = field(default_factory=set)

    @property
    def counts(self) -> dict[str, int]:
        """The number of records of each kind, by the kind's plural."""
        return {f"{kind}s": self.kinds[kind] for kind in ("exchange", "handshake", "gap")}

    @property
    def description(self) -> str:
        """The number of records of each kind, as text."""
        return ", ".join(f"{number} {_LABELS.get(kind, kind)}" for kind, number in self.counts.items() if number)


def load(sources: Sequence[Path], target: Path, watch: Watch = unwatched) -> Loaded:
    """Create a capture of the records of files: those of one file in their order, files merged by the time when a
    record ended.

    Raises CaptureError if the capture cannot be written, also if ``target`` exists.
    """
    must_be_new(target)  # before a large file is read
    loaded = Loaded()
    sizes = list(map(paths.size, sources))
    shares = [0.0] * len(sources)

    def timed(number: int) -> Iterator[tuple[float, CaptureItem]]:
        def read(share: float) -> None:
            shares[number] = share
            watch(int(sum(map(operator.mul, sizes, shares))), sum(sizes), "importing", size)

        return _timed(sources[number], target, loaded, read)

    items = heapq.merge(*map(timed, range(len(sources))), key=lambda timed: timed[0])
    first = next(items, None)
    if first is None:
        return loaded
    noted: set[str] = set()
    with created(target) as capture:
        for _, item in itertools.chain([first], items):
            keep(item, capture, noted)
            loaded.kinds[type(item).__name__.lower()] += 1
            if len(capture.pending) >= BATCH:
                capture.flush()
        capture.set_meta([("source", f"imported from {', '.join(sorted(loaded.formats))}")])
    return loaded


def keep(item: CaptureItem, capture: Capture, noted: set[str]) -> None:
    """Append a record and its connections to a capture; ``noted`` are the connections that it already has."""
    if isinstance(item, Connection):
        noted.add(item.leg.id)
        capture.note(item)
        return
    for leg in item.legs:
        if leg.id not in noted:
            capture.note(Connection(leg))
    capture.append(item)


def _timed(
    source: Path, target: Path, loaded: Loaded, read: Callable[[float], None]
) -> Iterator[tuple[float, CaptureItem]]:
    """Yield the contents of a file, with the time used for merging. ``read`` is called with the share of the work that
    is done."""
    number, time = 0, -math.inf
    try:
        for item in _read(source, loaded.formats, read):
            if not isinstance(item, Connection):
                number, time = number + 1, item.ended
            yield time, item
    except OSError as error:
        loaded.errors.append(CaptureError(f"Cannot read {source}: {error.strerror}.", "Check the path."))
    except ValueError as error:
        why = beginning(clean(str(error).rstrip(".")), REASON)
        if number:
            message = f"{source} is cut off or damaged after {number} records ({why})."
            loaded.errors.append(CaptureError(message, f"The records before the damage are in {target}."))
        else:
            hint = "Give flows of `mitmdump -w`, a browser's HAR, or what `export` wrote as flows, HAR or jsonl."
            loaded.errors.append(CaptureError(f"Cannot import {source}: {why}.", hint))


def with_refusal(exchange: Exchange) -> Iterator[Exchange | Handshake]:
    """Yield an exchange, and the master's refusal that ended it: of that, a flow has only an error text."""
    alert = alerts.refusal(exchange.error or "")
    yield exchange
    if exchange.response or exchange.master is None or alert is None:
        return
    reason = f"the master refused the connection with the alert {alert}"
    yield Handshake(exchange.master, exchange.ended, reason, alert, "master")


def _read(source: Path, formats: set[str], read: Callable[[float], None]) -> Iterator[CaptureItem]:
    with inputs.opened(source) as file:
        head = file.read(_HEAD).removeprefix(b"\xef\xbb\xbf").lstrip()
    if regex.match(rb"\d+:", head):
        from inspector.formats.mitm_flows import flows  # imports mitmproxy

        formats.add("mitmproxy's flows")
        for exchange in flows(source, read):
            yield from with_refusal(exchange)
    elif regex.match(rb'\{\s*"log"\s*:', head):
        formats.add("HAR")
        yield from har_reader.read(source, read)
    elif head.startswith(b"{"):
        formats.add("jsonl")
        yield from jsonl.read(source, read)
    elif head.startswith(b"SQLite format 3"):
        raise ValueError("it already is a capture; `puppet-inspector captures merge` merges captures")
    else:
        raise ValueError("it is not a flow file of mitmproxy, not HAR and not jsonl" if head else "it is empty")
