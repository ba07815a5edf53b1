"""The captures of a directory: start, size, agents and findings of each.

Runs and findings come from the derived index, which is built if there is none yet.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

import msgspec

from inspector import inputs, text
from inspector.capture import paths
from inspector.capture.store import Capture
from inspector.columns import Count, Number, Utc
from inspector.errors import CaptureError, InspectorError
from inspector.model import Severity
from inspector.progress import named, unwatched
from inspector.summaries import index, indexer
from inspector.summaries.index import Index

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from inspector.model import Finding
    from inspector.progress import Watch
    from inspector.summaries.index import IndexState

COLUMNS = ("capture", "from", "to", "size", "agents", "runs", "errors", "warnings", "notices", "state")
SPARE = ("to", "notices", "size", "agents", "from")
"""What a narrow terminal goes without, the first one first."""


@dataclass(frozen=True, slots=True)
class CaptureSummary:
    """A capture's data from the index."""

    begun: float
    """When its first record began; seconds since the epoch."""
    ended: float
    """When its last record ended."""
    records: int
    agents: int
    """The agents' certnames, or addresses if the certname is not known."""
    runs: int
    findings: tuple[Finding, ...]
    unanalyzed: int = 0
    """Number of records that were not analyzed."""


class PlainCapture(msgspec.Struct, rename={"begin": "from", "end": "to"}):
    """A capture of a directory."""

    capture: str
    """Its path."""
    begin: Utc | None
    """When its first record began; null: there is no record, or the capture cannot be read."""
    end: Utc | None
    """When its last record ended."""
    bytes: Count
    """Size on disk, including data that is still being written."""
    records: Number | None
    """Exchanges, failed handshakes and gaps."""
    agents: Count | None
    """Certnames of the agents, or addresses where the certname is not known."""
    runs: Count | None
    findings: dict[Severity, Count] | None
    not_analyzed: Count | None
    """Number of records that were not analyzed: their findings may be missing. null if the capture is empty or cannot
    be read."""
    open: bool
    """True if a proxy is writing it, or was killed while writing."""
    trouble: str | None
    """Why the capture cannot be read completely; null: no problem."""


@dataclass(frozen=True, slots=True)
class CaptureEntry:
    """One capture of a directory."""

    path: Path
    size: int
    """Bytes, including files that are being written."""
    live: bool = False
    """A proxy is writing it, or was killed while writing."""
    known: CaptureSummary | None = None
    """None: it contains no record, or it cannot be read."""
    trouble: str = ""
    """The part that cannot be read; empty if all can."""

    def row(self) -> tuple[str, ...]:
        """The cells for ``COLUMNS``; times are local."""
        known = self.known
        left = f"{known.unanalyzed} not analyzed" if known and known.unanalyzed else ""
        state = "; ".join(filter(None, ("open" if self.live else "", left, text.clean(self.trouble))))
        name, size = text.clean(self.path.name), text.size(self.size)
        if known is None:
            return name, "-", "-", size, "-", "-", "-", "-", "-", state or "empty"
        found = Counter(finding.severity for finding in known.findings)
        return (
            name,
            text.local_second(known.begun)[:-3],
            text.local_second(known.ended)[:-3],
            size,
            str(known.agents),
            str(known.runs),
            *(str(found[severity]) for severity in (Severity.ERROR, Severity.WARNING, Severity.NOTICE)),
            state,
        )

    def plain(self) -> PlainCapture:
        """The capture for ``--json``."""
        known = self.known
        return PlainCapture(
            capture=str(self.path),
            begin=text.utc(known.begun) if known else None,
            end=text.utc(known.ended) if known else None,
            bytes=self.size,
            records=known.records if known else None,
            agents=known.agents if known else None,
            runs=known.runs if known else None,
            findings={severity: sum(found.severity is severity for found in known.findings) for severity in Severity}
            if known
            else None,
            not_analyzed=known.unanalyzed if known else None,
            open=self.live,
            trouble=self.trouble or None,
        )


def captures_in(folder: Path) -> list[Path]:
    """The captures in a directory, the one written last at the end. Raises InspectorError."""
    if not inputs.is_directory(folder):
        raise InspectorError(f"{folder} is not a directory.", "Name a directory that contains captures.")
    return sorted(folder.glob("*.sqlite"), key=lambda path: (paths.written(path), path.name))


def look(path: Path, watch: Watch = unwatched) -> CaptureEntry:
    """A capture's summary. Never raises: see ``trouble``."""
    held = CaptureEntry(path, paths.size(path))
    try:
        with Capture.open(path) as capture:
            last = capture.last
            held = CaptureEntry(path, held.size, capture.live)
            with _index(path) as found:
                whole = found is not None and found.fits(capture) and _whole(found.state(), last, live=capture.live)
        if not last:
            return held
        if not whole:
            indexer.build(path, index.place(path), watch=named(watch, text.clean(path.name)))
        with _index(path) as found:
            if found is None or found.state().last < last:
                raise CaptureError("Another process is reading it.", "Try again in a moment.")
            return CaptureEntry(path, held.size, held.live, _known(found), found.state().trouble)
    except InspectorError as error:
        trouble = error.message
    except (sqlite3.Error, OSError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        trouble = f"its index cannot be written: {reason}"
    return CaptureEntry(path, held.size, held.live, trouble=trouble)


@contextlib.contextmanager
def _index(path: Path) -> Iterator[Index | None]:
    found = Index.open(index.place(path))
    try:
        yield found
    finally:
        if found is not None:
            found.close()


def _whole(state: IndexState, last: int, *, live: bool) -> bool:
    """Whether an index is complete and up to date."""
    return state.last == last and (state.complete or live)


def _known(found: Index) -> CaptureSummary | None:
    state = found.state()
    if not state.records:
        return None
    runs = [run.brief for run in found.runs().values()]
    findings = tuple(finding for run in runs for finding in run.findings)
    agents = len({run.name for run in runs})
    return CaptureSummary(state.begun, state.ended, state.records, agents, len(runs), findings, state.unanalyzed)
