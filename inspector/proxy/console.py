"""Lines on standard output, written by a separate thread.

A console that is not read (Ctrl-S, a pager, a full pipe) blocks its writer: that must be neither the proxy's event loop
nor the recorder. Lines that are not read in time are dropped and counted.
"""

from __future__ import annotations

import contextlib
import io
import os
import queue
import shutil
import sys
import textwrap
import threading
import time

from inspector import regex
from inspector.proxy.faults import ALARM
from inspector.text import WIDTH, ends

STDOUT = 1
RED, PLAIN = "\x1b[1;31m", "\x1b[0m"
WAITING = 10_000
"""Lines that wait for a slow reader; further ones are dropped."""
BATCH = 200
"""Lines that are written at once."""
BATCH_DELAY = 0.05
"""Seconds for which lines are collected."""
_RECORD = regex.compile(r"\d\d:\d\d:\d\d\.\d{3} ")
"""The beginning of a line that may be broken: in others may be a command, to be copied."""
_HEAD = regex.compile(r"\d\d:\d\d:\d\d\.\d{3}  \S+ +[a-z]+ +[A-Z]+ +")
"""An exchange up to its path, which has a column of ``WIDTH``."""
_FIGURES, _SHORTEST = 24, 30
"""Columns of status, size and duration, and those that a path has at least beside them."""


class Console:
    """Writes lines to standard output, in order. Never blocks its callers."""

    def __init__(self) -> None:
        self._lines: queue.Queue[str | None] = queue.Queue(WAITING)
        self._dropped = 0
        self._coloured = sys.stdout.isatty()
        if isinstance(sys.stdout, io.TextIOWrapper):
            # mitmproxy's own lines go through it; buffered, they would come after ours, or never.
            sys.stdout.reconfigure(line_buffering=True)
        self._thread = threading.Thread(target=self._run, name="console", daemon=True)
        self._thread.start()

    def write_line(self, text: str) -> None:
        """Print a line, from any thread; on a terminal one about an injected fault in red."""
        if self._coloured and text.startswith(ALARM):
            text = coloured(text)
        try:
            if self._dropped:
                self._lines.put_nowait(f"-- {self._dropped} lines dropped here: the output was not read")
                self._dropped = 0
            self._lines.put_nowait(text)
        except queue.Full:
            self._dropped += 1

    def close(self, timeout: float = 1.0) -> None:
        """Wait a moment for the lines that are not written yet."""
        with contextlib.suppress(queue.Full):
            self._lines.put_nowait(None)
        self._thread.join(timeout)
        if self._thread.is_alive():
            # The output is not read: Python would wait for ever to write its buffers.
            os.dup2(os.open(os.devnull, os.O_WRONLY), STDOUT)

    def _run(self) -> None:
        ended = False
        while not ended:
            lines = [self._lines.get()]
            if lines[0] is not None:
                # One write for several lines: every switch of the interpreter's lock costs more than a line.
                time.sleep(BATCH_DELAY)
            with contextlib.suppress(queue.Empty):
                while lines[-1] is not None and len(lines) < BATCH:
                    lines.append(self._lines.get_nowait())
            ended = lines[-1] is None
            width = shutil.get_terminal_size().columns if self._coloured else None
            rest = "".join(f"{fitted(line, width)}\n" for line in lines if line is not None).encode(errors="replace")
            with contextlib.suppress(OSError):
                while rest:
                    # Not through sys.stdout: a thread that is stuck in it holds its lock; at exit Python waits for
                    # that lock, and then aborts.
                    rest = rest[os.write(STDOUT, rest) :]


def fitted(text: str, width: int | None) -> str:
    """Return lines for a terminal of some width: those of records are broken between words."""
    if width is None or len(text) <= width:
        return text
    return "\n".join(
        _broken(line, width) if len(line) > width and _RECORD.match(line) else line for line in text.split("\n")
    )


def _broken(line: str, width: int) -> str:
    parts = [line]
    if found := _HEAD.match(line):
        head, path, rest = found[0], line[found.end() :][:WIDTH], line[found.end() + WIDTH :]
        room = min(width - len(head) - _FIGURES, WIDTH)
        # In both forms the columns behind the path are below each other.
        if room < _SHORTEST:
            parts = [head.rstrip(), f"  {path}{rest}"]
        else:
            parts = [f"{head}{ends(path.rstrip(), room):<{room}}{rest}"]
    return "\n".join(
        textwrap.fill(part, width, subsequent_indent="  ", break_long_words=False, break_on_hyphens=False)
        for part in parts
    )


def coloured(text: str) -> str:
    """Return a line for a terminal in red, unless the user wants no colours."""
    return text if os.environ.get("NO_COLOR") else f"{RED}{text}{PLAIN}"
