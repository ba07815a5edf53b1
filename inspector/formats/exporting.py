"""Exports of a capture: as mitmproxy's flows, an HTTP archive (HAR) or lines of JSON.

Selects the records and the format, and reports what the format cannot contain; ``mitm_flows``, ``har`` and ``jsonl``
write the records.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, get_args

from inspector.capture.store import Capture
from inspector.errors import InspectorError
from inspector.formats import files, har, jsonl, lossless
from inspector.model import Connection
from inspector.summaries import follow, summary, wording

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from inspector.formats.lossless import CaptureItem
    from inspector.model import Record
    from inspector.runs.run import Run
    from inspector.summaries.summary import RunBrief

type Format = Literal["flows", "har", "jsonl"]
FORMATS: tuple[Format, ...] = get_args(Format.__value__)
_ENDINGS: dict[str, Format] = {
    ".mitm": "flows", ".flow": "flows", ".flows": "flows", ".har": "har", ".jsonl": "jsonl"
}  # fmt: skip
_OTHERS = (("handshake", "failed handshakes"), ("gap", "gaps"))


def format_of(path: Path) -> Format:
    """Return the format for a file name. Raises InspectorError."""
    found = _ENDINGS.get(path.suffix.lower())
    if found is None:
        raise InspectorError(
            f"The name {path} does not indicate a format.", f"Use the ending {', '.join(_ENDINGS)}, or give --format."
        )
    return found


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

    @classmethod
    def by(cls, capture: Path, text: str = "") -> Chosen:
        """Select the records that match a filter. Raises InspectorError."""
        owners: dict[int, RunBrief | None] = {}
        kinds: Counter[str] = Counter()
        runs: dict[Run, RunBrief] = {}
        for brief, run, _ in follow.listed(capture, text):
            if run and run not in runs:
                runs[run] = summary.of_run(run, wording.conclusion(run))
            owners[brief.seq] = runs[run] if run else None
            kinds[brief.kind] += 1
        return cls(capture, not text.strip(), owners, kinds)

    def lines(self, kind: Format, *, secrets: bool = False) -> Iterator[str]:
        """Yield them as text, in HAR or jsonl; secrets are masked unless ``secrets`` is set. Raises CaptureError."""
        with Capture.open(self.capture) as capture:
            written = har.lines if kind == "har" else jsonl.lines
            yield from written(self._items(capture), self.owners.get, secrets=secrets)

    def write(self, kind: Format, path: Path, *, secrets: bool = False) -> int:
        """Write them to a new file; return their number. Raises InspectorError."""
        if kind != "flows":
            files.write(self.lines(kind, secrets=secrets), path)
            return len(self.owners)
        from inspector.formats.mitm_flows import export_flows  # imports mitmproxy

        with Capture.open(self.capture) as capture:
            return export_flows(self._records(capture), path, secrets=secrets)

    def notes(self, kind: Format) -> Iterator[str]:
        """Return notes about records that the format cannot contain, or contains where other tools do not look."""
        others = " and ".join(f"{name} ({self.kinds[key]})" for key, name in _OTHERS if self.kinds[key])
        if others and kind == "flows":
            yield f"A flow file cannot contain {others}: they are left out."
        if others and kind == "har":
            yield f"HAR cannot express {others}: they are in _puppet.records."

    def _records(self, capture: Capture) -> Iterator[Record]:
        return (record for seq in self.owners if (record := capture.record(seq)))

    def _items(self, capture: Capture) -> Iterator[CaptureItem]:
        written: set[str] = set()
        for record in self._records(capture):
            for leg in lossless.legs(record):
                if leg.id not in written:
                    written.add(leg.id)
                    yield capture.connection(leg.id) or Connection(leg)
            yield record
        if self.whole:
            yield from (connection for connection in capture.connections() if connection.leg.id not in written)
