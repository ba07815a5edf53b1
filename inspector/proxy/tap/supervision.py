"""Supervises a tap: connections are handed over only as long as the proxy answers, until the tap ends."""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from inspector import regex
from inspector.capture import rotation
from inspector.errors import InspectorError
from inspector.proxy.tap.access_log import Share
from inspector.proxy.tap.plan import DIRECT
from inspector.proxy.tap.watch import Beat

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable
    from pathlib import Path

    from inspector.proxy.tap.preparing import Prepared
    from inspector.proxy.tap.table import Table
    from inspector.proxy.tap.watch import Watch

PERIOD = 1.0
"""Seconds between two looks."""
MISSED = 2
"""Looks that a proxy may miss before it is ended: agents would hang in it."""
FREE = 0.1
"""The part of the disk that stays free, if that is more than what a proxy leaves free anyway."""
LARGEST = 2**31
"""Bytes of a capture."""
MOST = 1000
"""Addresses that cannot be served: with more of them it is of no use, and anybody could be many."""
_RUN = regex.compile(r"== run \S+ of (\S+)")


@dataclass(slots=True)
class Goal:
    """When a tap ends by itself."""

    seconds: float
    runs: int = 0
    """After so many runs; 0: does not matter."""
    until: str = ""
    """After a run of this node; empty: does not matter."""


class End(NamedTuple):
    """Why a tap ended."""

    reason: str
    expected: bool = True
    """Whether it ended as the user wanted."""


@dataclass(slots=True)
class Supervisor:
    """Hands connections over to the proxy of a tap as long as it answers, until the tap ends."""

    table: Table
    process: subprocess.Popen[str]
    """The proxy's."""
    watch: Watch
    found: Prepared
    capture: Path
    goal: Goal
    report: Callable[[str], None]
    """Prints a line."""
    stopped: threading.Event = field(default_factory=threading.Event)
    """Set by a signal."""
    finished: list[str] = field(default_factory=list)
    """Nodes whose runs are over."""
    direct: dict[str, str] = field(default_factory=dict)
    """Addresses that are not handed over any more, and why."""
    _now: Share = field(default_factory=Share)
    _missed: int = 0
    _away: bool = False

    def read(self, line: str) -> None:
        """Take a line of the proxy."""
        if line.startswith(DIRECT):
            address, _, reason = line.removeprefix(DIRECT).partition(": ")
            if address not in self.direct and len(self.direct) < MOST:
                self.direct[address] = reason
                with contextlib.suppress(InspectorError):  # without the table it is direct already
                    self.table.exempt(address)
                self.report(line)
        elif found := _RUN.match(line):
            self.finished.append(found[1].rstrip(":;"))

    def run(self) -> End:
        """Hand connections over until an end; return why it ended."""
        began = time.monotonic()
        while True:
            if end := self._end(time.monotonic() - began):
                self._withdraw()
                return end
            started = time.monotonic()
            try:
                self._look()
            except InspectorError as error:
                return End(f"the host's rules were changed by another program: {error.message}", expected=False)
            self.stopped.wait(max(0.05, PERIOD - (time.monotonic() - started)))

    def _look(self) -> None:
        """Ask the proxy, and hand connections over for the next seconds if it answers."""
        match self.watch.ask():
            case Beat.ANSWERED:
                self._missed = 0
                self.table.renew()
                if self._away:
                    self.report("-- the master answers again")
                self._away = False
            case Beat.MASTER_AWAY:
                self._missed = 0
                self.table.withdraw()
                if not self._away:
                    self.report("-- the master does not answer: connections are direct until it does")
                self._away = True
            case Beat.SILENT:
                self._missed += 1

    def _withdraw(self) -> None:
        with contextlib.suppress(InspectorError):  # then the table is gone, or the element is in a moment
            self.table.withdraw()

    def _end(self, seconds: float) -> End | None:
        """Return why it ends now; None: it goes on."""
        if reason := self._trouble():
            return End(reason, expected=False)
        if self.stopped.is_set():
            return End("asked to")
        if seconds > self.goal.seconds:
            return End("the time is over")
        if self.goal.runs and len(self.finished) >= self.goal.runs:
            return End(f"{len(self.finished)} runs are over")
        if self.goal.until and self.goal.until in self.finished:
            return End(f"{self.goal.until} has run")
        return None

    def _trouble(self) -> str:
        """Return why it cannot go on; empty: it can."""
        if self.process.poll() is not None:
            return "the proxy has ended"
        if self._missed >= MISSED:
            self._withdraw()
            self.process.kill()  # else who is connected would hang
            return f"the proxy did not answer {MISSED} times"
        if len(self.direct) >= MOST:
            return f"{MOST} addresses could not be served"
        trust = self.found.trust
        trust.refresh()
        if problems := [trust.error] if trust.error else trust.problems(time.time()):
            return f"agents cannot be verified: {problems[0]}"
        self._now.count(self.found.log.new())
        if self._now.exceeds(self.found.before):
            return f"{self._now.failed} of {self._now.requests} requests failed, clearly more than before it began"
        usage = shutil.disk_usage(self.capture.parent)
        if usage.free < max(usage.total * FREE, rotation.FREE):
            return f"{self.capture.parent} is nearly full"
        if _size(self.capture) > LARGEST:
            return f"{self.capture} is as large as it may become"
        return ""


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
