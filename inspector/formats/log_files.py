"""Logs of other programs, read line by line: they may be large, compressed, damaged, or of another pattern."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inspector import inputs
from inspector.errors import InspectorError
from inspector.text import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from inspector.explain.master_log.matching import Logged
    from inspector.progress import Watch

TRIED = 1000
"""Lines of which at least one must be in a known pattern."""
STEP = 2**12
"""Lines between two reports of progress."""


@dataclass(slots=True)
class LogFile:
    """A log, and what is found out about it."""

    path: Path
    parse: Callable[[str], tuple[float, Logged[object] | None] | None]
    """Returns when a line was written, and it if it may be about a request; None if it is in no known pattern."""
    pattern: str
    where: str
    lines: int = 0
    unknown: int = 0
    """Lines in no known pattern."""
    first_unknown: int = 0
    first: float = math.inf
    last: float = -math.inf
    difference: float | None = None
    within: int = 0
    """Lines about requests in the time of the capture."""

    def logged(self, watch: Watch) -> Iterator[tuple[float, Logged[object] | None]]:
        """Yield what its lines say, and count them anew. Raises InspectorError."""
        self.lines = self.unknown = self.first_unknown = 0
        try:
            size = self.path.stat().st_size
            for line, at in inputs.lines(self.path):
                self.lines += 1
                if self.lines % STEP == 0:
                    watch(min(at, size), size, f"reading {clean(self.path.name)}, byte")
                entry = self.parse(line.decode("latin-1"))
                if entry is not None:
                    yield entry
                    continue
                self.unknown += 1
                self.first_unknown = self.first_unknown or self.lines
                if self.unknown == self.lines == TRIED:
                    break
        except OSError as error:
            raise _unreadable(self.path, error) from error
        if self.lines and self.unknown == self.lines:
            raise InspectorError(
                f"{self.path} is in no known pattern: line {self.first_unknown}"
                f"{f', and {self.lines - 1} more' if self.lines > 1 else ''}.",
                f"Known is {self.pattern} (and older ones, docs/times.md). {self.where}",
            )


def check(path: Path) -> None:
    """Raise InspectorError if a log cannot be opened."""
    try:
        with inputs.opened(path):
            pass
    except OSError as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path, error: OSError) -> InspectorError:
    return InspectorError(
        f"Cannot read {path}: {error.strerror or error}.", "Give a log of puppetserver, compressed or not."
    )
