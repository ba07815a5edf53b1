"""Exports of a capture: as mitmproxy's flows, an HTTP archive (HAR), lines of JSON, or for a viewer.

Selects the records and the format, and reports what the format cannot contain; ``mitm_flows``, ``har``, ``jsonl``,
``trace``, ``otlp`` and ``packet_capture`` write the records.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from inspector.capture.store import Capture
from inspector.errors import InspectorError
from inspector.explain.master_log.measured import NOTHING
from inspector.formats import files, har, jsonl, otlp, packet_capture, trace
from inspector.formats.outgoing import Outgoing
from inspector.model import Connection
from inspector.progress import unwatched, watched
from inspector.summaries import listing, wording

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from pathlib import Path

    from inspector.explain.master_log.measured import MasterTimes
    from inspector.formats.lossless import CaptureItem
    from inspector.formats.outgoing import Content
    from inspector.model import Record
    from inspector.progress import Watch
    from inspector.summaries.summary import RunBrief


def _write_flows(items: Iterator[CaptureItem], path: Path) -> int:
    from inspector.formats.mitm_flows import export_flows  # imports mitmproxy

    return export_flows((item for item in items if not isinstance(item, Connection)), path)


class Format(NamedTuple):
    """A format that captures are exported in. It has ``lines`` if it is text, else ``write``."""

    endings: tuple[str, ...]
    """Its endings of file names, in lower case."""
    lines: Callable[..., Iterator[str]] | None = None
    """Yields lines of the items of a capture, the runs of their records, and what becomes of findings' sentences, as
    ``jsonl.lines`` does."""
    write: Callable[..., int] | None = None
    """Writes the items of a capture to a new file and returns the number of records in it."""
    note: str = ""
    """What becomes of failed handshakes and gaps, if the format has no place for them; ``{others}`` counts them."""
    takes: tuple[str, ...] = ()
    """What else its lines show of what was chosen (fields of ``Chosen``)."""
    about: str = ""
    """What is not as it was on the wire, if a reader could think so."""


FORMATS = {
    "flows": Format(
        (".mitm", ".flow", ".flows"),
        write=_write_flows,
        note="A flow file cannot contain {others}: they are left out.",
    ),
    "har": Format(
        (".har",),
        lines=har.lines,
        takes=("unanalyzed",),
        note="HAR cannot express {others}: they are in _puppet.records.",
    ),
    "jsonl": Format((".jsonl",), lines=jsonl.lines),
    "trace": Format((".trace.json", ".trace"), lines=trace.lines, takes=("times",)),
    "otlp": Format((".otlp.json", ".otlp"), lines=otlp.lines, takes=("times",)),
    "pcapng": Format(
        (".pcapng",),
        write=packet_capture.write,
        note="Packets have no place for {others}: handshakes are comments of empty packets, gaps are left out.",
        about="The packets are made up: they carry the recorded HTTP without TLS, over TCP with the agents' addresses.",
    ),
}
"""By name."""
_OTHERS = (("handshake", "failed handshakes"), ("gap", "gaps"))


def format_of(path: Path) -> str:
    """Return the name of the format for a file name. Raises InspectorError."""
    found = next((name for name, chosen in FORMATS.items() if path.name.lower().endswith(chosen.endings)), None)
    if found is None:
        endings = ", ".join(ending for chosen in FORMATS.values() for ending in chosen.endings)
        raise InspectorError(
            f"The name {path} does not indicate a format.", f"Use the ending {endings}, or give --format."
        )
    return found


def text_of(name: str) -> Callable[..., Iterator[str]]:
    """Return what yields a format as lines of text. Raises InspectorError for a binary one."""
    lines = FORMATS[name].lines
    if lines is None:
        raise InspectorError(
            f"The format {name} is binary and is not written to standard output.",
            f"Pass a file: -o FILE{FORMATS[name].endings[0]}",
        )
    return lines


@dataclass(slots=True)
class Chosen:
    """The records of a capture to export."""

    capture: Path
    whole: bool
    """Whether these are all records of the capture."""
    owners: Mapping[int, RunBrief | None]
    """The run of each record, by record number."""
    kinds: Counter[str] = field(default_factory=Counter)
    """The number of records of each kind, if they were counted."""
    opened: frozenset[Content] | None = frozenset()
    """The kinds of content that are not withheld; None: everything leaves as it is, secrets too."""
    withheld: Counter[Content] = field(default_factory=Counter)
    """The number of values that were withheld, once the records are written."""
    unanalyzed: dict[int, str] = field(default_factory=dict)
    """The numbers of those that were not analyzed, and why."""
    unexported: dict[int, str] = field(default_factory=dict)
    """The numbers of those that could not be masked and so were left out, and why; once the records are written."""
    times: MasterTimes = NOTHING
    """The times of the records in a master's logs."""

    @classmethod
    def by(
        cls,
        capture: Path,
        text: str = "",
        opened: frozenset[Content] | None = frozenset(),
        watch: Watch = unwatched,
    ) -> Chosen:
        """Select the records that match a filter. Raises InspectorError."""
        owners: dict[int, RunBrief | None] = {}
        kinds: Counter[str] = Counter()
        unanalyzed: dict[int, str] = {}
        for brief, run in listing.listed(capture, text, watch, watch):
            owners[brief.seq] = run
            kinds[brief.kind] += 1
            if brief.unanalyzed:
                unanalyzed[brief.seq] = brief.unanalyzed
        return cls(capture, not text.strip(), owners, kinds, opened, unanalyzed=unanalyzed)

    def lines(self, name: str, watch: Watch = unwatched, writing: Watch = unwatched) -> Iterator[str]:
        """Yield them in a format that is text. ``watch`` is called before the first line, ``writing`` between the
        lines. Raises InspectorError.
        """
        more = {field: getattr(self, field) for field in FORMATS[name].takes}
        return self._lines(partial(text_of(name), **more), watch, writing)

    def write(self, name: str, path: Path, watch: Watch = unwatched) -> int:
        """Write them to a new file; return their number. Raises InspectorError."""
        binary = FORMATS[name].write
        if binary is None:
            files.write(self.lines(name, watch, watch), path)
            return len(self.owners) - len(self.unexported)
        with Capture.open(self.capture) as capture:
            return binary(self._items(capture, self._outgoing(capture, watch), watch), path)

    def legs(self) -> set[str] | None:
        """Return the identifiers of the connections that the chosen records used; None if all records are chosen."""
        if self.whole:
            return None
        with Capture.open(self.capture) as capture:
            records = (capture.record(seq) for seq in self.owners)
            return {leg.id for record in records if record for leg in record.legs}

    def notes(self, name: str) -> Iterator[str]:
        """Yield notes about records that the format cannot contain, or contains where other tools do not look, and
        about those that were not analyzed."""
        if FORMATS[name].about:
            yield FORMATS[name].about
        others = " and ".join(f"{noun} ({self.kinds[kind]})" for kind, noun in _OTHERS if self.kinds[kind])
        if others and (note := FORMATS[name].note):
            yield note.format(others=others)
        for seq, reason in self.unanalyzed.items():
            yield f"{wording.unanalyzed(seq, reason)}."
        for seq, reason in self.unexported.items():
            yield f"record {seq} was not exported: {reason}."

    def _lines(self, lines: Callable[..., Iterator[str]], watch: Watch, writing: Watch) -> Iterator[str]:
        with Capture.open(self.capture) as capture:
            outgoing = self._outgoing(capture, watch)
            sentence = outgoing.sentence if outgoing else None
            yield from lines(self._items(capture, outgoing, writing), self.owners.get, sentence)

    def _outgoing(self, capture: Capture, watch: Watch) -> Outgoing | None:
        if self.opened is None:
            return None
        outgoing = Outgoing.of((capture, capture.last), pseudonyms=False, opened=self.opened, watch=watch)
        self.withheld = outgoing.withheld
        return outgoing

    def _records(self, capture: Capture, outgoing: Outgoing | None, watch: Watch) -> Iterator[tuple[Record, Record]]:
        """Yield each record, and as it leaves."""
        for seq in watched(self.owners, watch, len(self.owners), "writing record"):
            record = capture.record(seq)
            if record is None:
                continue
            leaving = outgoing.leaving(record) if outgoing else record
            if leaving is not None:
                yield record, leaving
            elif outgoing:
                self.unexported[seq] = outgoing.unmasked[seq]

    def _items(self, capture: Capture, outgoing: Outgoing | None, watch: Watch) -> Iterator[CaptureItem]:
        written: set[str] = set()
        for record, leaving in self._records(capture, outgoing, watch):
            for leg in record.legs:
                if leg.id not in written:
                    written.add(leg.id)
                    yield _connection(capture.connection(leg.id) or Connection(leg), outgoing)
            yield leaving
        if self.whole:
            for connection in capture.connections():
                if connection.leg.id not in written:
                    yield _connection(connection, outgoing)


def _connection(connection: Connection, outgoing: Outgoing | None) -> Connection:
    return Connection(outgoing.leg(connection.leg), connection.closed) if outgoing else connection
