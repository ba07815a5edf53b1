"""When a proxy begins another capture, which old ones it deletes, and when it must stop for want of room.

Whoever records asks after each flush. What is deleted is only ever a closed capture with a name that the proxy gave
it, in the very folder, which nobody noted anything about.
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import sqlite3
import stat
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inspector import clocks, text
from inspector.capture import paths
from inspector.capture.store import marked
from inspector.errors import InspectorError

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

OPTIONS: tuple[tuple[str, str], ...] = (
    (
        "puppet_rotate_size",
        "Begin another capture when this one has so many bytes (500M). Default: one capture, however large.",
    ),
    (
        "puppet_rotate_age",
        "Begin another capture when this one is so old (12h, 1d). Default: one capture as long as the proxy runs.",
    ),
    (
        "puppet_keep",
        (
            "Delete the oldest captures beyond so many (30), so many bytes of them (20G) or such an age (14d); several "
            "with commas (30,20G). Only closed ones that the proxy named itself, none with notes. Default: delete none."
        ),
    ),
    (
        "puppet_keep_free",
        "Stop recording, not the agents, while less than this is left on the disk (1G; 0: never). Default: 500M.",
    ),
)
"""Name and help of the proxy's options; empty means the default."""

FREE = 500_000_000
"""Bytes that are left on the disk unless it is said otherwise."""
PATIENCE = 2
"""How many times its limits a capture may reach before a run is cut in two."""

_AGES = clocks.UNITS
_SIZES = {"": 1.0, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12}
_UNITS = "Units are k, M, G, T (bytes) and s, m, h, d, w (time)."
_NUMBER = re.compile(r"(\d{1,15}(?:\.\d{1,9})?)([a-zA-Z]?)", re.ASCII)


@dataclass(frozen=True, slots=True)
class Rotation:
    """The limits of captures and of their folder; None: there is none."""

    size: int | None = None
    """Bytes of a capture."""
    age: float | None = None
    """Seconds that one capture is written."""
    keep: int | None = None
    """Captures in the folder, with the one that is being written."""
    keep_size: int | None = None
    """Bytes of all of them, with the one that is being written."""
    keep_age: float | None = None
    """Seconds since an old one was written last."""
    free: int = FREE
    """Bytes that are left on the disk."""

    def due(self, path: Path, began: float, now: float, *, under_way: bool = False) -> bool:
        """Whether to begin another capture: at a limit, or with a run under way at ``PATIENCE`` times the limit.

        ``began`` and ``now`` are seconds of one and the same clock.
        """
        factor = PATIENCE if under_way else 1
        return (self.size is not None and paths.size(path) >= self.size * factor) or (
            self.age is not None and now - began >= self.age * factor
        )

    def next(self, path: Path) -> Path:
        """What the capture after this one is called."""
        return paths.fresh(path.parent)

    def retire(self, current: Path) -> list[Path]:
        """Delete the oldest captures beside this one that are beyond the limits; returns which. Never raises."""
        taken, now = paths.size(current), time.time()
        old = [path for _, path in sorted(_closed(current), reverse=True)]
        kept = 0
        for number, path in enumerate(old, 2):
            taken += paths.size(path)
            if (
                (self.keep is not None and number > self.keep)
                or (self.keep_size is not None and taken > self.keep_size)
                or (self.keep_age is not None and now - paths.written(path) > self.keep_age)
            ):
                break
            kept += 1
        return [path for path in reversed(old[kept:]) if _deleted(path)]

    def room(self, path: Path) -> str | None:
        """Why recording must stop for now; None if there is room on the disk, or that can't be known."""
        try:
            left = shutil.disk_usage(path.parent).free
        except OSError:
            return None
        if left >= self.free:
            return None
        return (
            f"only {text.size(left)} are left on the disk of {path.parent} (puppet_keep_free is {text.size(self.free)})"
        )


def of(size: str, age: str, keep: str, free: str) -> Rotation:
    """What the proxy's options come to; an empty one is its default. Raises InspectorError."""
    kept: dict[str, float] = {}
    for part in keep.split(",") if keep else ():
        unit = part.strip()[-1:]
        kind, units = ("age", _AGES) if unit in _AGES else ("size", _SIZES) if unit in _SIZES else ("", {"": 1.0})
        kept[kind] = _amount("puppet_keep", part, units, "a number, a size or an age (30, 20G, 14d)")
        if kind == "" and not kept[kind].is_integer():
            raise _refused("puppet_keep", part, "a whole number of captures (30)")
    return Rotation(
        size=int(_amount("puppet_rotate_size", size, _SIZES, "a size (500M)")) if size else None,
        age=_amount("puppet_rotate_age", age, _AGES, "an age (12h, 1d)") if age else None,
        keep=int(kept[""]) if "" in kept else None,
        keep_size=int(kept["size"]) if "size" in kept else None,
        keep_age=kept.get("age"),
        free=int(_amount("puppet_keep_free", free, _SIZES, "a size (1G)", least=0)) if free else FREE,
    )


def bytes_of(option: str, given: str, default: int) -> int:
    """What an option that is a size comes to. Raises InspectorError."""
    return int(_amount(option, given, _SIZES, "a size (500M)")) if given else default


def _amount(option: str, given: str, units: Mapping[str, float], wanted: str, least: float = 1) -> float:
    found = _NUMBER.fullmatch(given.strip())
    amount = float(found[1]) * units[found[2]] if found and found[2] in units else -1.0
    if amount < least:
        raise _refused(option, given, wanted)
    return amount


def _refused(option: str, given: str, wanted: str) -> InspectorError:
    return InspectorError(f"{option} is {given!r}, which is not {wanted}.", f"{_UNITS} Leave it out for its default.")


def _closed(current: Path) -> Iterator[tuple[tuple[str, int], Path]]:
    """What may be deleted beside a capture, each with what it is sorted by."""
    with contextlib.suppress(OSError):
        for path in current.parent.iterdir():
            stamp = paths.stamped(path)
            if (
                stamp is not None
                and path.name != current.name
                and not os.path.lexists(paths.beside(path, ".notes.json"))
                and _is_capture(path)
                and _left(path)
            ):
                yield stamp, path


def _left(path: Path) -> bool:
    """Whether nobody has it open."""
    log = paths.beside(path, "-wal")
    if os.path.lexists(log):
        # It may be left by a reader, who must not take it away, or by a proxy that was killed: who opens a capture to
        # write and closes it last does that.
        with contextlib.suppress(sqlite3.Error), contextlib.closing(sqlite3.connect(path, timeout=0)) as db:
            db.execute("SELECT count(*) FROM meta").fetchone()
    return not os.path.lexists(log)


def _is_capture(path: Path) -> bool:
    """Whether it is a regular file, no link, that says in its head that it is a capture."""
    try:
        return stat.S_ISREG(path.lstat().st_mode) and marked(path)
    except OSError:
        return False


def _deleted(path: Path) -> bool:
    """Delete a capture, and first what was derived from it."""
    try:
        for ending in paths.DERIVED:
            paths.beside(path, ending).unlink(missing_ok=True)
        path.unlink()
    except OSError:
        return False
    return True
