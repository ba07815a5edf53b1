"""The phases of runs as stretches of time, found while the records of a capture pass by."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inspector.model import Phase

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspector.summaries.summary import Brief, RunBrief


@dataclass(slots=True)
class Stretch:
    """A part of a run in which its phase did not change."""

    run: RunBrief
    phase: Phase
    place: int
    """Its place among the stretches of the run."""
    began: float
    ended: float
    records: int = 0


class Stretches:
    """The current stretch of each run."""

    def __init__(self) -> None:
        self._current: dict[int, Stretch] = {}

    def add(self, brief: Brief, run: RunBrief) -> tuple[Stretch, Stretch | None]:
        """Add the next record of a run; return the stretch that it is in, and the one that ended with it."""
        before = self._current.get(run.number)
        began = brief.time if math.isfinite(brief.time) else run.started
        ended = max(began, brief.ended) if math.isfinite(brief.ended) else began
        if before is None or brief.phase not in (before.phase, Phase.OTHER):
            place = before.place + 1 if before else 0
            # Two requests at once may be of different phases: no stretch begins before the previous one ended.
            began = max(began, before.ended) if before else began
            self._current[run.number] = current = Stretch(run, brief.phase, place, began, max(began, ended), 1)
            return current, before
        before.ended = max(before.ended, ended)
        before.records += 1
        return before, None

    def rest(self) -> Iterator[Stretch]:
        """Yield the stretches that have not ended yet."""
        yield from self._current.values()
