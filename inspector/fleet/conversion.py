"""Turns captures into rows of tables."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from inspector import __version__, rules
from inspector.analysis.analyzer import Analyzer
from inspector.capture import guard
from inspector.capture.identity import identity, sources_of
from inspector.capture.store import Capture
from inspector.columns import Count
from inspector.errors import CaptureError, InspectorError
from inspector.explain.master_log.measured import MasterTimes
from inspector.fleet.database import DatabaseError
from inspector.fleet.rows import Rows
from inspector.fleet.spools import Spools, message, micros
from inspector.fleet.tables import VERSION, CaptureRow
from inspector.formats import master_logs
from inspector.formats.master_logs import MasterLogs
from inspector.formats.share import together
from inspector.progress import named, unwatched, watched
from inspector.text import clean, plural, utc_day

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from inspector.fleet.directory import TableDirectory
    from inspector.progress import Watch

NO_LOGS = MasterLogs()
SHORTER = "A copy of this capture with more records is in the tables, and stays."
PART = "It is in the tables as a part of several that were read as one, and stays."
SHARED = "shared capture"
"""Stands for the name of a capture whose names do not leave."""


class Converted(msgspec.Struct, frozen=True):
    """The result of converting a capture."""

    capture: str
    """The identity of the capture; empty: it has no records."""
    records: Count
    """How many of its records are in the tables."""
    trouble: str = ""
    """Why parts of it could not be read; empty if all could."""
    unchanged: bool = False
    """The tables had it already."""
    notes: tuple[str, ...] = ()
    """Notes about the master's logs."""


NOTHING = Converted("", 0)
"""The result for a capture without records, and for one that could not be converted."""


class Result(NamedTuple):
    """The result for one of several captures."""

    path: Path
    converted: Converted
    error: InspectorError | None = None
    """Why it could not be converted."""


def today() -> str:
    """Return today's date (UTC), as partitions are named."""
    return utc_day(time.time())


def convert_all(
    captures: Sequence[Path],
    directory: TableDirectory,
    site: str,
    watch: Watch = unwatched,
    *,
    closed: bool = False,
    logs: MasterLogs = NO_LOGS,
) -> Iterator[Result]:
    """Convert captures, one after the other. One that cannot be read does not stop the others. ``closed`` turns copies
    of them that may leave into tables; ``logs`` are the master's. Raises InspectorError."""
    master_logs.check(logs)
    directory.check(closed=closed)
    known = _closed_before(captures, directory, site) if closed else None
    if any(logs):
        known = None
    with directory.working() as work:
        copies = _closed_copies(captures, work, watch) if closed and known is None else {}
        for path in captures:
            one = named(watch, clean(path.name)) if len(captures) > 1 else watch
            try:
                if not closed or path in copies:
                    yield Result(path, convert(path, directory, site, one, copy=copies.get(path), logs=logs))
                    continue
                with Capture.open(path):  # why there is no copy of it
                    yield Result(path, (known or {}).get(path, NOTHING))
            except (CaptureError, DatabaseError) as error:
                yield Result(path, NOTHING, error)


def _closed_before(captures: Sequence[Path], directory: TableDirectory, site: str) -> dict[Path, Converted] | None:
    """What became of captures if closed tables have all of them as they are now; None if they are all to be converted:
    pseudonyms are the same only for captures that are shared together. Raises InspectorError if the tables have others,
    too."""
    found: dict[Path, Converted | None] = {}
    names, parts = set(), set[str]()
    for path in captures:
        with contextlib.suppress(CaptureError), Capture.open(path) as capture:
            if name := identity(capture):
                names.add(name)
                parts |= sources_of(capture)
                found[path] = _known(directory, name, site, capture.last, closed=True)
    if others := directory.captures - names - parts - directory.merged_of(parts).keys():
        raise InspectorError(
            f"The tables have {plural(len(others), 'capture')} that {'is' if len(others) == 1 else 'are'} not named "
            "here: the pseudonyms of both would be mixed up.",
            "Name all captures again, or a new directory with -o.",
        )
    known = {path: one for path, one in found.items() if one is not None}
    return known if len(known) == len(found) else None


def _closed_copies(captures: Sequence[Path], work: Path, watch: Watch) -> dict[Path, Path]:
    """Copies that may leave, with the same pseudonyms. Those that cannot be read have none."""
    readable = []
    for capture in dict.fromkeys(captures):
        with contextlib.suppress(CaptureError), Capture.open(capture) as opened:
            if opened.last:
                readable.append(capture)
    copies = {capture: work / f"shared-{number}.sqlite" for number, capture in enumerate(readable, 1)}
    if copies:
        together(list(copies.items()), watch=watch)
    return copies


def convert(
    path: Path,
    directory: TableDirectory,
    site: str,
    watch: Watch = unwatched,
    *,
    copy: Path | None = None,
    logs: MasterLogs = NO_LOGS,
    now: float | None = None,
) -> Converted:
    """Put a capture into the tables of a directory, instead of what it contributed before. Raises InspectorError.

    Damaged parts of it are left out. A capture that is there as it is now is left as it is, unless ``logs`` of its
    master say more of it; or ``copy`` is given: one that may leave, from which the rows are made. ``now`` is the
    present (default: what the clock says).
    """
    now = time.time() if now is None else now
    with Capture.open(path) as capture:
        name, live, last, present = identity(capture), capture.live, capture.last, capture.present(now)
        sources = sources_of(capture)
    if not name:
        return NOTHING
    if not sources and directory.merged_of({name}):
        return Converted(name, 0, unchanged=True, notes=(PART,))
    if copy is None and not any(logs) and (known := _known(directory, name, site, last, closed=False)) is not None:
        return known
    times = _times(path, logs, watch)
    with Capture.open(copy or path) as capture, directory.working() as work:
        spools = Spools(work)
        rows = Rows(name, spools, directory.key, times, present, now)
        trouble = _read(capture, rows, watch)
        spools.add(
            CaptureRow(
                capture=name,
                time=micros(rows.begun),
                last=micros(rows.ended),
                name=clean(path.name) if copy is None else SHARED,
                records=rows.records,
                first_seq=rows.first,
                last_seq=rows.last,
                lost=rows.lost,
                unanalyzed=rows.unanalyzed,
                trouble=message(trouble) or None,
                complete=not live,
                closed=copy is not None,
                inspector=__version__,
                rules=rules.in_use().digest,
                until=micros(rows.until),
                sources=sorted(sources),
            )
        )
        spools.close()
        if not directory.put(name, site, spools, work, last=rows.last, sources=sources):
            return Converted(name, rows.records, trouble, unchanged=True, notes=(SHORTER,))
    return Converted(name, rows.records, trouble, notes=(*times.notes, *times.file_notes))


def _times(path: Path, logs: MasterLogs, watch: Watch) -> MasterTimes:
    """Return the times in the master's logs. A log need not be about each of several captures: then it is a note."""
    try:
        return master_logs.read(path, logs, watch)
    except CaptureError:
        raise
    except InspectorError as error:
        return MasterTimes(notes=(error.message,))


def _read(capture: Capture, rows: Rows, watch: Watch) -> str:
    """Make rows of a capture; return why parts of it could not be read."""
    troubles: list[str] = []
    records = capture.readable(0, lambda trouble, _: troubles.append(trouble))
    analyzer = Analyzer()
    for step in analyzer.steps(watched(records, watch, capture.count())):
        try:
            rows.add(step)
        except guard.DAMAGED as error:
            troubles.append(f"Record {step.record.seq} is not in the tables completely: {str(error) or repr(error)}.")
    for run in analyzer.finish():
        rows.end(run)
    for connection in capture.connections():
        rows.connection(connection)
    rows.finish()
    return "" if not troubles else troubles[0] if len(troubles) == 1 else f"{troubles[0]} And {len(troubles) - 1} more."


def _known(directory: TableDirectory, name: str, site: str, last: int, *, closed: bool) -> Converted | None:
    """Return the earlier result for a capture if converting it again would change nothing; else None."""
    found = directory.captured(name)
    if found is None:
        return None
    if (found["last_seq"] or 0) > last and not found.get("sources"):
        return Converted(name, int(found["records"]), unchanged=True, notes=(SHORTER,))
    now = {
        "site": site,
        "complete": True, "last_seq": last, "closed": closed, "inspector": __version__, "version": VERSION,
        "rules": rules.in_use().digest,
    }  # fmt: skip
    if any(found[column] != value for column, value in now.items()):
        return None
    return Converted(name, int(found["records"]), str(found["trouble"] or ""), unchanged=True)
