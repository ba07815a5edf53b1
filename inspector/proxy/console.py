"""Lines for whoever watches, written by a thread of their own.

A console that nobody reads (Ctrl-S, a pager, a full pipe) blocks its writer: that must be neither the
proxy's event loop nor the recorder. Lines that nobody took in time are dropped and counted.
"""

from __future__ import annotations

import contextlib
import io
import os
import queue
import sys
import threading
import time

STDOUT = 1
WAITING = 10_000
"""Lines that wait for a slow reader before further ones are dropped."""
TOGETHER = 200
"""Lines that are written at once."""
GATHER = 0.05
"""Seconds in which they gather."""


class Console:
    """Writes lines to standard output, in order, without ever making anybody wait."""

    def __init__(self) -> None:
        self._lines: queue.Queue[str | None] = queue.Queue(WAITING)
        self._dropped = 0
        if isinstance(sys.stdout, io.TextIOWrapper):
            # mitmproxy's own lines go through it; held back, they would come after ours, or never.
            sys.stdout.reconfigure(line_buffering=True)
        self._thread = threading.Thread(target=self._run, name="console", daemon=True)
        self._thread.start()

    def say(self, text: str) -> None:
        """Show a line, from any thread."""
        try:
            if self._dropped:
                self._lines.put_nowait(f"-- {self._dropped} lines were dropped here: nobody read them")
                self._dropped = 0
            self._lines.put_nowait(text)
        except queue.Full:
            self._dropped += 1

    def close(self, timeout: float = 1.0) -> None:
        """Wait a moment for what is not written yet."""
        with contextlib.suppress(queue.Full):
            self._lines.put_nowait(None)
        self._thread.join(timeout)
        if self._thread.is_alive():
            # Nobody reads: Python would wait for ever to write what it still holds.
            os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)

    def _run(self) -> None:
        ended = False
        while not ended:
            lines = [self._lines.get()]
            if lines[0] is not None:
                # What comes with it goes out with it: every hand-over of the interpreter's lock costs more than a line.
                time.sleep(GATHER)
            with contextlib.suppress(queue.Empty):
                while lines[-1] is not None and len(lines) < TOGETHER:
                    lines.append(self._lines.get_nowait())
            ended = lines[-1] is None
            rest = "".join(f"{line}\n" for line in lines if line is not None).encode(errors="replace")
            with contextlib.suppress(OSError):
                while rest:
                    # Not through sys.stdout: a thread that is stuck in it holds its lock, for which Python
                    # waits when it ends, and then aborts.
                    rest = rest[os.write(STDOUT, rest) :]
