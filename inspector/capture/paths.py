"""Paths of captures: the default ones, the names that a proxy gives them, and the files beside them."""

from __future__ import annotations

import itertools
import time
from pathlib import Path
from typing import TYPE_CHECKING

from inspector import inputs, regex
from inspector.errors import InspectorError
from inspector.text import utc_in_name

if TYPE_CHECKING:
    from collections.abc import Sequence

FOLDER = Path("captures")
"""Where a proxy records by default."""

DERIVED = ("-shm", ".index", ".index-journal", ".index.lock")
"""Name endings of files beside a capture that can be rebuilt from it. Notes cannot."""

_STAMP = regex.compile(r"(\d{8}T\d{6}Z)(?:-(\d{1,6}))?\.sqlite")


def newest() -> Path:
    """Return the most recently written capture in ``FOLDER``. Raises InspectorError."""
    found = newest_in(FOLDER)
    if found is None:
        raise none_in(FOLDER)
    return found


def none_in(folder: Path) -> InspectorError:
    """Return what every command prints of a directory without captures."""
    where = f"{folder}".rstrip("/")
    usual = "Name a capture, or start the proxy or `puppet-inspector demo` here."
    hint = usual if folder == FOLDER else "Captures are the files that end in .sqlite."
    return InspectorError(f"There is no capture in {where}/.", hint)


def one(given: Path | None) -> Path:
    """Return the capture that a command is about: the newest if none is given, or in the directory that is. Raises
    InspectorError."""
    if given is None:
        return newest()
    return chosen([given])[-1]


def newest_in(folder: Path) -> Path | None:
    """Return the most recently written capture in a directory, which need not exist; None if there is none."""
    return max(folder.glob("*.sqlite"), key=written, default=None)


def chosen(given: Sequence[Path]) -> list[Path]:
    """Return the captures that a command reads: the newest if none is given, of a directory all that are in it, the
    oldest first. Raises InspectorError."""
    if not given:
        return [newest()]
    found: list[Path] = []
    for path in given:
        if not inputs.is_directory(path):
            found.append(path)
            continue
        within = sorted(path.glob("*.sqlite"), key=written)
        if not within:
            raise none_in(path)
        found += within
    return found


def written(path: Path) -> float:
    """Return when a capture was last written to, also if a proxy is writing it now."""
    times = []
    for file in (path, companion(path, "-wal")):
        try:
            times.append(file.stat().st_mtime)
        except OSError:
            continue
    return max(times, default=0.0)


def size(path: Path) -> int:
    """Return the size of a capture in bytes, with data not yet merged into the file; 0 if it does not exist."""
    taken = 0
    for file in (path, companion(path, "-wal")):
        try:
            taken += file.stat().st_size
        except OSError:
            continue
    return taken


def make_folder(folder: Path) -> None:
    """Make a directory, and those above it that are missing, with mode 0700. Raises OSError."""
    for each in (*reversed(folder.parents), folder):  # ``parents`` would apply this mode to the last one only
        each.mkdir(mode=0o700, exist_ok=True)


def companion(path: Path, ending: str) -> Path:
    """Return a file that belongs to a capture: the capture's name with a suffix. Any path has one, also ``.``."""
    return path.parent / f"{path.name}{ending}"


def made_from(path: Path, ending: str) -> Path:
    """Return the default name of a file that is made from a capture: in the working directory, never beside it."""
    return Path(f"{path.stem}{ending}")


def fresh(folder: Path) -> Path:
    """Return a name for a new capture: the time in UTC, and a number if there is already one of this second."""
    stamp = utc_in_name(time.time())
    names = itertools.chain([f"{stamp}.sqlite"], (f"{stamp}-{number}.sqlite" for number in itertools.count(2)))
    return next(folder / name for name in names if not (folder / name).exists())


def age_key(path: Path) -> tuple[str, int] | None:
    """Return the sort key, by age, of a capture that a proxy named; None for any other name."""
    found = _STAMP.fullmatch(path.name)
    return (found[1], int(found[2] or 1)) if found else None
