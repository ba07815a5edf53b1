"""Rotation: when a proxy starts another capture, which old ones it deletes, and when it must stop for lack of disk
space.

The recorder asks after each flush. Only closed captures in the same folder are deleted, with a name given by the proxy
and without notes, and none in which an open one is continued: a process that is late goes through all of them.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import stat
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inspector import clocks, regex, text
from inspector.capture import guard, paths
from inspector.capture.schema import marked
from inspector.errors import InspectorError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

OPTIONS: tuple[tuple[str, str], ...] = (
    (
        "puppet_rotate_size",
        "Start another capture when this one reaches this size (500M). Default: one capture of any size.",
    ),
    (
        "puppet_rotate_age",
        "Start another capture when this one reaches this age (12h, 1d). Default: one capture while the proxy runs.",
    ),
    (
        "puppet_keep",
        (
            "Old captures to keep: a number (30), a total size (20G) or an age (14d), several separated by commas "
            "(30,20G). Only closed captures without notes, named by the proxy, are deleted. Default: keep all."
        ),
    ),
    (
        "puppet_keep_free",
        "Stop recording while less than this is free on the disk (1G; 0: never); agents continue. Default: 500M.",
    ),
)
"""Name and help of the proxy's options; empty means the default."""

FREE = 500_000_000
"""Default for the bytes that must stay free on the disk."""
PATIENCE = 2
"""How many times its limits a capture may reach before a run is split."""

_AGES = clocks.UNITS
_SIZES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_UNITS = "Units are k, M, G, T (bytes) and s, m, h, d, w (time)."
_NUMBER = regex.compile(r"(\d{1,15}(?:\.\d{1,9})?)([a-zA-Z]?)")


@dataclass(frozen=True, slots=True)
class Rotation:
    """The limits of captures and of their folder; None: no limit."""

    size: int | None = None
    """Size of a capture in bytes."""
    age: float | None = None
    """Seconds for which one capture is written."""
    keep: int | None = None
    """Number of captures in the folder, including the current one."""
    keep_size: int | None = None
    """Size of all captures in bytes, including the current one."""
    keep_age: float | None = None
    """Seconds since an old capture was last written."""
    free: int = FREE
    """Bytes that must stay free on the disk."""

    def due(self, path: Path, began: float, now: float, *, under_way: bool = False) -> bool:
        """Whether to start another capture: at a limit, or with a run in progress at ``PATIENCE`` times the limit.

        ``began`` and ``now`` are seconds of the same clock.
        """
        factor = PATIENCE if under_way else 1
        return (self.size is not None and paths.size(path) >= self.size * factor) or (
            self.age is not None and now - began >= self.age * factor
        )

    def next(self, path: Path) -> Path:
        """Return the path of the next capture."""
        return paths.fresh(path.parent)

    def retire(self, current: Path) -> list[Path]:
        """Delete the oldest captures beside this one that exceed the limits; return them. Never raises."""
        taken, now = paths.size(current), time.time()
        old = [path for _, path in sorted(_closed(current), reverse=True)]
        retained = 0
        for number, path in enumerate(old, 2):
            taken += paths.size(path)
            if (
                (self.keep is not None and number > self.keep)
                or (self.keep_size is not None and taken > self.keep_size)
                or (self.keep_age is not None and now - paths.written(path) > self.keep_age)
            ):
                break
            retained += 1
        return [path for path in reversed(old[retained:]) if _deleted(path)]

    def room(self, path: Path) -> str | None:
        """Return why recording must stop for now; None if there is enough space on the disk, or that is not known."""
        try:
            left = shutil.disk_usage(path.parent).free
        except OSError:
            return None
        if left >= self.free:
            return None
        return f"only {text.size(left)} free on the disk of {path.parent} (puppet_keep_free is {text.size(self.free)})"


def of(size: str, age: str, keep: str, free: str) -> Rotation:
    """Return the rotation that the proxy's options describe; an empty one is its default. Raises InspectorError."""
    limits: dict[str, float] = {}
    for part in keep.split(",") if keep else ():
        unit = part.strip()[-1:]
        kind, units = ("age", _AGES) if unit in _AGES else ("size", _SIZES) if unit in _SIZES else ("", {"": 1.0})
        limits[kind] = _amount("puppet_keep", part, units, "a number, a size or an age (30, 20G, 14d)")
        if kind == "" and not limits[kind].is_integer():
            raise _refused("puppet_keep", part, "a whole number of captures (30)")
    return Rotation(
        size=int(_amount("puppet_rotate_size", size, _SIZES, "a size (500M)")) if size else None,
        age=_amount("puppet_rotate_age", age, _AGES, "an age (12h, 1d)") if age else None,
        keep=int(limits[""]) if "" in limits else None,
        keep_size=int(limits["size"]) if "size" in limits else None,
        keep_age=limits.get("age"),
        free=int(_amount("puppet_keep_free", free, _SIZES, "a size (1G)", least=0)) if free else FREE,
    )


def bytes_of(option: str, value: str, default: int) -> int:
    """Parse an option that is a size. Raises InspectorError."""
    return int(_amount(option, value, _SIZES, "a size (500M)")) if value else default


def _amount(option: str, value: str, units: Mapping[str, float], wanted: str, least: float = 1) -> float:
    found = _NUMBER.fullmatch(value.strip())
    amount = float(found[1]) * units[found[2]] if found and found[2] in units else -1.0
    if amount < least:
        raise _refused(option, value, wanted)
    return amount


def _refused(option: str, value: str, wanted: str) -> InspectorError:
    return InspectorError(
        f"{option} is {value!r}, which is not {wanted}.", f"{_UNITS} Omit the option for its default."
    )


def _closed(current: Path) -> Iterator[tuple[tuple[str, int], Path]]:
    """Return the captures in a folder that may be deleted, each with its sort key."""
    old: dict[Path, tuple[str, int]] = {}
    with contextlib.suppress(OSError):
        for path in current.parent.iterdir():
            stamp = paths.age_key(path)
            if stamp is not None and path.name != current.name and _is_file(path):
                old[path] = stamp
    needed = {path for path in old if not _left(path)}
    for path in list(needed):
        following = _continued_in(path)
        while following is not None and following in old and following not in needed:
            needed.add(following)
            following = _continued_in(following)
    for path, stamp in old.items():
        if path not in needed and marked(path) and not os.path.lexists(paths.companion(path, ".notes.json")):
            yield stamp, path


def _continued_in(path: Path) -> Path | None:
    """Return the capture that continues one; None if none does, or that cannot be read."""
    with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(path, timeout=0)) as db:
        guard.distrust(db)
        row = db.execute("SELECT value FROM meta WHERE key = 'continued_in'").fetchone()
        return path.parent / row[0] if row and isinstance(row[0], str) and "\0" not in row[0] else None
    return None


def _left(path: Path) -> bool:
    """Whether no process has the capture open."""
    log = paths.companion(path, "-wal")
    if os.path.lexists(log):
        # The file may be left by a reader, who cannot remove it, or by a killed proxy: the last process that closes a
        # capture after writing removes it.
        with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(path, timeout=0)) as db:
            guard.distrust(db)
            db.execute("SELECT count(*) FROM meta").fetchone()
    return not os.path.lexists(log)


def _is_file(path: Path) -> bool:
    """Whether a path is a regular file, not a link. Of a new capture even the header may still be in its log."""
    try:
        return stat.S_ISREG(path.lstat().st_mode)
    except OSError:
        return False


def _deleted(path: Path) -> bool:
    """Delete a capture; first the files derived from it."""
    try:
        for ending in paths.DERIVED:
            paths.companion(path, ending).unlink(missing_ok=True)
        path.unlink()
    except OSError:
        return False
    return True
