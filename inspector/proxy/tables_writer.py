"""Tables of what a proxy records, written every hour by a process beside it (``tables_worker``).

Captures are converted as ``puppet-inspector tables`` does it, so both make the same tables; those that did not change
are left as they are. The process ends with the proxy and has a low priority.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from inspector.proxy.side_process import SideProcess
from inspector.text import beginning, clean

if TYPE_CHECKING:
    import subprocess
    from collections.abc import Callable, Sequence
    from pathlib import Path

INTERVAL = 3600.0
"""Seconds between two conversions."""
SHARE = 10
"""A conversion that takes long is followed by a pause of so many times that: a growing capture is converted anew."""
LINE = 400
"""Characters of a line about what went wrong."""


class TablesWriter(SideProcess):
    """Converts the captures of a proxy: at its start those of earlier ones, and every hour."""

    def __init__(
        self,
        directory: Path,
        current: Callable[[], Path],
        rules: Sequence[str],
        write_line: Callable[[str], None],
        interval: float = INTERVAL,
    ) -> None:
        """``current`` returns the capture that is being written: those in its directory are converted."""
        super().__init__("tables")
        self._directory = directory
        self._current = current
        self._rules = rules
        self._write_line = write_line
        self._interval = interval
        self._reported = ""
        self.start()

    def close(self) -> None:
        """Stop at once: what is not written is written when a proxy starts again."""
        self._end()
        self._kill()
        self._thread.join()

    def _launch(self) -> subprocess.Popen[bytes]:
        return self._popen("inspector.proxy.tables_worker", str(self._directory), str(self._current()), *self._rules)

    def _serve(self, process: subprocess.Popen[bytes]) -> None:
        process.wait()

    def _pause(self) -> float:
        return max(self._interval, SHARE * (time.monotonic() - self._began))

    def _report_end(self, status: int) -> None:
        if status:
            self._report(self._last_error())

    def _report_failure(self, error: OSError) -> None:
        self._report(str(error))

    def _report(self, reason: str) -> None:
        """Print why a conversion failed, once for each reason."""
        if reason != self._reported:
            self._reported = reason
            line = beginning(clean(reason), LINE)
            self._write_line(f"-- the tables in {self._directory} could not be written: {line}")
