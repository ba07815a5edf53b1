"""Where captures are when nobody names one, what a proxy calls those that it names itself, and what is beside them."""

from __future__ import annotations

import datetime
import itertools
import re
from pathlib import Path

from inspector.errors import InspectorError

FOLDER = Path("captures")
"""Where a proxy records unless it is told otherwise."""

DERIVED = ("-shm", ".index", ".index-journal", ".index.lock")
"""How the names of files end that stand beside a capture and can be made anew from it. Notes can't."""

_STAMP = re.compile(r"(\d{8}T\d{6}Z)(?:-(\d{1,6}))?\.sqlite", re.ASCII)


def newest() -> Path:
    """The capture in ``FOLDER`` that was written last. Raises InspectorError."""
    found = max(FOLDER.glob("*.sqlite"), key=written, default=None)
    if found is None:
        raise InspectorError(
            f"There is no capture in {FOLDER}/.", "Start the proxy here or `puppet-inspector demo`, or name a capture."
        )
    return found


def written(path: Path) -> float:
    """When a capture was last written to, also by a proxy that still does."""
    times = []
    for each in (path, beside(path, "-wal")):
        try:
            times.append(each.stat().st_mtime)
        except OSError:
            continue
    return max(times, default=0.0)


def size(path: Path) -> int:
    """How many bytes a capture takes, with what is being written; 0 if it is gone."""
    taken = 0
    for each in (path, beside(path, "-wal")):
        try:
            taken += each.stat().st_size
        except OSError:
            continue
    return taken


def beside(path: Path, ending: str) -> Path:
    """A file that belongs to a capture: its name with something after it."""
    return path.with_name(path.name + ending)


def fresh(folder: Path) -> Path:
    """The name of a new capture: the moment in UTC, and a number where there is one of this second already."""
    stamp = datetime.datetime.now(datetime.UTC).strftime("%Y%m%dT%H%M%SZ")
    names = itertools.chain([f"{stamp}.sqlite"], (f"{stamp}-{number}.sqlite" for number in itertools.count(2)))
    return next(folder / name for name in names if not (folder / name).exists())


def stamped(path: Path) -> tuple[str, int] | None:
    """What sorts the captures that the proxy named itself by their age; None for any other name."""
    found = _STAMP.fullmatch(path.name)
    return (found[1], int(found[2] or 1)) if found else None
