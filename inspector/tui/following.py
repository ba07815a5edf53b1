"""Follow what is recorded: the newest run stays selected, in the next capture too, and a failed run can ring."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from inspector.capture import paths

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from inspector.summaries.summary import RunBrief


class Following:
    """Whether the newest run stays selected, and which runs have rung."""

    def __init__(self, *, bell: bool = False) -> None:
        self.on = False
        self.bell = bell
        self._since = time.time()
        self._rung: set[tuple[str, float]] = set()

    def rings(self, runs: Iterable[RunBrief]) -> bool:
        """Whether a run failed since the last call: one that ended after the inspector was started."""
        if not self.bell:
            return False
        failed = {(run.name, run.started) for run in runs if run.ended > self._since and _failed(run)}
        new = not failed <= self._rung
        self._rung |= failed
        return new


def _failed(run: RunBrief) -> bool:
    # One that is unfinished may be in progress, and one that waits is as it should be.
    return run.result in ("failed", "refused")


def newer(capture: Path) -> Path | None:
    """Return a capture in the same directory that was written after this one; None if there is none."""
    found = paths.newest_in(capture.parent)
    return found if found and not found.samefile(capture) and paths.written(found) > paths.written(capture) else None
