"""A capture for other tools: as mitmproxy's flows, an HTTP archive (HAR) or lines of JSON.

Which records, in which format, and what that has no place for; how a record is written is known to ``mitm_flows``,
``har`` and ``jsonl``.
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
    """The format that a file's name stands for. Raises InspectorError."""
    found = _ENDINGS.get(path.suffix.lower())
    if found is None:
        raise InspectorError(f"{path} names no format.", f"Let it end in {', '.join(_ENDINGS)}, or give --format.")
    return found


@dataclass(slots=True)
class Chosen:
    """The records of a capture that are to be exported."""

    capture: Path
    whole: bool
    """Whether it is all there is."""
    owners: Mapping[int, RunBrief | None]
    """The run that each belongs to, by its number."""
    kinds: Counter[str] = field(default_factory=Counter)
    """How many of each kind they are, as far as somebody counted."""

    @classmethod
    def by(cls, capture: Path, text: str = "") -> Chosen:
        """Those that a filter lets through. Raises InspectorError."""
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
        """Them as text, in HAR or jsonl; secrets masked unless they are wanted. Raises CaptureError."""
        with Capture.open(self.capture) as capture:
            written = har.lines if kind == "har" else jsonl.lines
            yield from written(self._items(capture), self.owners.get, secrets=secrets)

    def write(self, kind: Format, path: Path, *, secrets: bool = False) -> int:
        """Write them to a new file; returns their number. Raises InspectorError."""
        if kind != "flows":
            files.write(self.lines(kind, secrets=secrets), path)
            return len(self.owners)
        from inspector.formats.mitm_flows import export_flows  # loads mitmproxy

        with Capture.open(self.capture) as capture:
            return export_flows(self._records(capture), path, secrets=secrets)

    def notes(self, kind: Format) -> Iterator[str]:
        """What a format can't hold of them, or holds where other tools don't look."""
        others = " and ".join(f"{name} ({self.kinds[each]})" for each, name in _OTHERS if self.kinds[each])
        if others and kind == "flows":
            yield f"A flow file has no place for {others}: they are left out."
        if others and kind == "har":
            yield f"HAR has no place for {others}: they are in _puppet.records."

    def _records(self, capture: Capture) -> Iterator[Record]:
        return (record for seq in self.owners if (record := capture.record(seq)))

    def _items(self, capture: Capture) -> Iterator[CaptureItem]:
        told: set[str] = set()
        for record in self._records(capture):
            for leg in lossless.legs(record):
                if leg.id not in told:
                    told.add(leg.id)
                    yield capture.connection(leg.id) or Connection(leg)
            yield record
        if self.whole:
            yield from (each for each in capture.connections() if each.leg.id not in told)
