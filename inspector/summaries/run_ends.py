"""Which runs are over while a capture is followed, each reported once.

Most runs end with a report. One that does not is over when its agent's next run begins, which may never happen: so it
counts as over when it has been silent for as long as agents usually wait between two runs; in its bootstrap, when it
has not even asked for its certificate again.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Collection

    from inspector.runs.run import Run

LAPSE = 1800.0
"""Seconds of silence after which a run counts as over. It may apply its catalog meanwhile."""
BOOTSTRAP = 660.0
"""The same of one without a certificate: it has nothing to apply, and asks again every two minutes (``waitforcert``),
at some sites every ten."""


class RunEnds:
    """Reports the runs that are over."""

    def __init__(self, report: Callable[[Run], None]) -> None:
        """``report`` is called with each run that is over."""
        self._report = report
        self._waiting: dict[Run, float] = {}
        """The runs that may go on, and when their last record came; the longest silent first."""
        self._lapsed: set[Run] = set()
        """Those that were reported though they may go on."""

    def note(self, run: Run) -> None:
        """Note that a record of a run came."""
        if run not in self._lapsed:
            self._waiting.pop(run, None)
            self._waiting[run] = time.monotonic()

    def end(self, run: Run) -> None:
        """Note that a run is over."""
        self._lapsed.discard(run)
        if self._waiting.pop(run, None) is not None and run.real:
            self._report(run)

    def lapse(self, runs: Callable[[], Collection[Run]], judged: Callable[[Run], Run], *, ended: bool = False) -> None:
        """Report runs that have been silent for long; with ``ended`` all. ``runs`` returns those that are known: one
        that became part of another is not, and a judged one has the findings about the whole of it."""
        now = time.monotonic()
        due = [run for run, last in self._waiting.items() if ended or now - last >= _patience(run)]
        if not due:
            return
        known = set(runs())
        self._lapsed &= known
        for run in due:
            del self._waiting[run]
            if run in known:
                self._lapsed.add(run)
                self._report(judged(run))


def _patience(run: Run) -> float:
    """Return the seconds for which a run may be silent."""
    return BOOTSTRAP if run.bootstrapping else LAPSE
