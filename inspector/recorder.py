"""Keeping what the proxy sees, and thinking about it, on a thread of its own.

The proxy's event loop only puts records here. Writing, decoding and rules can be slow, fail or hang: the
agents' runs never wait for them. What could not be kept is itself recorded as a gap.
"""

from __future__ import annotations

import sqlite3
import threading
import time
from collections import deque
from typing import TYPE_CHECKING

from inspector import brief, present
from inspector.analyzer import Analyzer, merged
from inspector.model import Connection, Exchange, Gap, Handshake
from inspector.store import Capture

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from inspector.analyzer import Step
    from inspector.model import Record
    from inspector.ruleset import Ruleset
    from inspector.runs import Run

    type Then = Callable[[Step], None]

FLUSH = 0.2
"""Seconds between commits: a killed proxy loses less than a second."""
RETRY = 1.0
"""Seconds between attempts while the capture can't be written."""
MEMORY = 256 * 2**20
"""Bytes of bodies kept in memory while the capture can't be written; more is lost (and said to be)."""
QUEUE = 512 * 2**20
"""Bytes of bodies that wait to be recorded; what comes in beyond that is lost (and said to be)."""
QUIET = 5.0
"""Seconds of silence after which a run that did not end properly is summed up."""


class Recorder(threading.Thread):
    """Owns the capture and the analyzer of a running proxy."""

    def __init__(
        self,
        path: Path,
        say: Callable[[str], None],
        ruleset: Ruleset | None = None,
    ) -> None:
        """Open the capture. ``say`` gets each line to show, on this thread; ``ruleset`` says which rules to ask.

        Raises CaptureError.
        """
        super().__init__(name="puppet-inspector", daemon=True)
        self._capture = Capture.create(path)
        self._analyzer = Analyzer(ruleset.rules, ruleset.ignores) if ruleset else Analyzer()
        self._told: dict[Run, str] = {}
        self._say = say
        self._queue: deque[tuple[Record | Connection, Then | None] | None] = deque()
        self._wake = threading.Event()
        self._put = self._taken = 0
        self._overrun = 0
        self._held = 0
        self._lost = 0
        self._trouble: str | None = None
        self._active: dict[Run, float] = {}
        self._tried = 0.0

    def put(self, item: Record | Connection, then: Then | None = None) -> None:
        """Take a record or the state of a connection; never blocks, never raises. For the event loop.

        ``then`` gets the step that a record became, on this thread.
        """
        if self._put - self._taken > QUEUE:
            self._overrun += 1
            return
        self._put += _weight(item)
        self._queue.append((item, then))
        if not self._wake.is_set():
            self._wake.set()

    def finish(self, timeout: float = 10.0) -> None:
        """Write and say what is left."""
        self._queue.append(None)
        self._wake.set()
        self.join(timeout)

    def run(self) -> None:
        self._guard(self._catch_up)
        ended = False
        while not ended:
            self._wake.wait(FLUSH)
            self._wake.clear()
            while self._queue:
                item = self._queue.popleft()
                if item is None:
                    ended = True
                    break
                self._taken += _weight(item[0])
                self._guard(self._take, *item)
                if time.monotonic() - self._tried >= FLUSH:
                    # Also while ever more comes in: a killed proxy loses less than a second.
                    self._guard(self._flush, False)
            self._guard(self._flush, ended)
            self._guard(self._sum_up, ended)
        self._guard(self._close)

    def _catch_up(self) -> None:
        """An existing capture is continued: what it holds tells runs apart, and is told already."""
        with Capture.open(self._capture.path) as before:
            for record in before.records():
                for run in self._analyzer.feed(record).over:
                    self._analyzer.forget(run)
        self._told = {run: _state(run) for run in self._analyzer.runs}

    def _guard[*Args](self, act: Callable[[*Args], None], *args: *Args) -> None:
        try:
            act(*args)
        except BaseException as error:  # noqa: BLE001 - our own bug (or a library's panic) must not end this thread
            self._say(f"-- puppet-inspector stumbled: {error!r} (please report it)")
            self._capture.append(Gap(time.time(), f"puppet-inspector failed: {error!r}"))

    # -- keeping ------------------------------------------------------------------------------------

    def _take(self, item: Record | Connection, then: Then | None) -> None:
        if isinstance(item, Connection):
            self._capture.note(item)
            return
        held = _weight(item)
        if self._trouble and self._held + held > MEMORY:
            self._lost += 1
            return
        self._held += held
        if isinstance(item, Exchange):
            self._capture.note(Connection(item.agent))
            if item.master:
                self._capture.note(Connection(item.master))
        elif isinstance(item, Handshake):
            self._capture.note(Connection(item.leg))
        record = self._capture.append(item)
        step = self._analyzer.feed(record)
        if step.run:
            # By the monotonic clock: records carry the wall clock, which may jump.
            self._active[step.run] = time.monotonic()
        self._say(present.line(brief.of(step), step.run))
        for trouble in step.trouble:
            self._capture.append(Gap(time.time(), trouble))
            self._say(f"-- puppet-inspector stumbled over {record.seq}: {trouble}")
        if then:
            then(step)
        for run in step.over:
            if self._told.get(run) != _state(run):
                self._tell(run)
            self._forget(run)

    def _flush(self, ended: bool) -> None:
        now = time.monotonic()
        if self._overrun:
            lost, self._overrun = self._overrun, 0
            self._capture.append(Gap(time.time(), "more came in than could be recorded", lost))
            self._say(f"-- {lost} records were lost: more came in than could be recorded")
        if self._trouble and now - self._tried < RETRY and not ended:
            return
        self._tried = now
        try:
            if self._capture.lost():
                self._begin_anew()
            self._capture.flush()
        except Exception as error:  # noqa: BLE001 - whatever it is, it must not be tried five times a second
            reason = str(error).rstrip(".")
            if self._trouble is None:
                self._say(f"-- the capture can't be written ({reason}): kept in memory, trying again")
            self._trouble = f"the capture could not be written ({reason})"
            return
        if self._trouble:
            self._capture.append(Gap(time.time(), self._trouble, self._lost))
            self._say(f"-- the capture is written again, {self._lost} records were lost")
        self._trouble, self._lost, self._held = None, 0, 0

    def _begin_anew(self) -> None:
        fresh = Capture.create(self._capture.path)
        fresh.adopt(self._capture)
        self._capture.abandon()
        self._capture = fresh
        self._capture.append(Gap(time.time(), "the capture was deleted while it was written; this one begins anew"))
        self._say(f"-- the capture {self._capture.path} was deleted: begun anew")

    def _close(self) -> None:
        try:
            self._capture.close()
        except sqlite3.Error as error:
            self._say(f"-- the end of the capture could not be written: {error}")

    # -- telling ------------------------------------------------------------------------------------

    def _sum_up(self, ended: bool) -> None:
        """Tell the runs that fell silent without an end of their own."""
        now = time.monotonic()
        due = [run for run, last in self._active.items() if ended or now - last >= QUIET]
        for run in sorted(due, key=lambda run: run.place):
            if run.real and self._told.get(run) != _state(run):
                self._tell(run)
            del self._active[run]

    def _forget(self, run: Run) -> None:
        self._analyzer.forget(run)
        self._told.pop(run, None)
        self._active.pop(run, None)

    def _tell(self, run: Run) -> None:
        self._say(present.summary(run, merged(run.findings, () if run.closed else self._analyzer.judge(run))))
        self._told[run] = _state(run)


def _state(run: Run) -> str:
    return f"{run.outcome} {len(run.seqs)}"


def _weight(record: Record | Connection) -> int:
    if isinstance(record, Exchange):
        return 1000 + len(record.request.body) + (len(record.response.body) if record.response else 0)
    return 1000
