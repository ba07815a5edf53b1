"""Tables of what a proxy records, written every hour by a process beside it (``tables_worker``).

Captures are converted as ``puppet-inspector tables`` does it, so both make the same tables; those that did not change
are left as they are. The process ends with the proxy and has a low priority.
"""

from __future__ import annotations

import os
import subprocess
import threading
import time
from typing import TYPE_CHECKING

from inspector import installation
from inspector.text import beginning, clean

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

INTERVAL = 3600.0
"""Seconds between two conversions."""
SHARE = 10
"""A conversion that takes long is followed by a pause of so many times that: a growing capture is converted anew."""
LINE = 400
"""Characters of a line about what went wrong."""


class TablesWriter:
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
        self._directory = directory
        self._current = current
        self._rules = rules
        self._write_line = write_line
        self._interval = interval
        self._closing = threading.Event()
        self._process: subprocess.Popen[str] | None = None
        self._lock = threading.Lock()
        self._reported = ""
        self._thread = threading.Thread(target=self._run, name="tables", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop at once: what is not written is written when a proxy starts again."""
        self._closing.set()
        with self._lock:
            if self._process is not None:
                self._process.kill()
        self._thread.join()

    def _run(self) -> None:
        while not self._closing.is_set():
            began = time.monotonic()
            self._convert()
            self._closing.wait(max(self._interval, SHARE * (time.monotonic() - began)))

    def _convert(self) -> None:
        command = installation.command(
            "inspector.proxy.tables_worker", str(os.getpid()), str(self._directory), str(self._current()), *self._rules
        )
        try:
            with self._lock:
                if self._closing.is_set():
                    return
                self._process = subprocess.Popen(
                    command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                    errors="replace", start_new_session=True,
                )  # fmt: skip
            with self._process as process:
                assert process.stderr  # noqa: S101 - a pipe was requested
                self._report(process.stderr.read().strip().rpartition("\n")[2], process.wait())
        except OSError as error:
            self._report(str(error), 1)

    def _report(self, reason: str, status: int) -> None:
        """Print why a conversion failed, once for each reason."""
        if status == 0 or self._closing.is_set() or reason == self._reported:
            return
        self._reported = reason
        self._write_line(f"-- the tables in {self._directory} could not be written: {beginning(clean(reason), LINE)}")
