"""The inspector on a terminal of its own (a pty), as a user starts it: keys go in, what is drawn comes out."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import struct
import sys
import termios
import time
from typing import TYPE_CHECKING, NamedTuple, Self

if TYPE_CHECKING:
    from pathlib import Path

_ESCAPES = re.compile(
    rb"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[PX^_][^\x1b]*\x1b\\|[()][0-9A-Z]|[=>78cDEHMNOZ])"
)
PATIENCE = 300.0
"""Seconds after which what was awaited will not come."""
QUIET = 0.03
"""Seconds without output after which a picture is whole."""


class Answer(NamedTuple):
    """What a key was answered with, in seconds after it was pressed."""

    first: float
    """The first text that was drawn."""
    whole: float
    """The last byte of the picture."""


class Terminal:
    """A process on a pty. Use it as a context manager: it ends the process."""

    def __init__(
        self,
        *argv: str,
        size: tuple[int, int] = (80, 24),
        cwd: Path | None = None,
        environment: dict[str, str] | None = None,
    ) -> None:
        self.drawn = bytearray()
        """All that was written to the terminal."""
        self.began = time.monotonic()
        columns, lines = size
        self.pid, self._fd = pty.fork()
        if self.pid == 0:  # pragma: no cover - the child
            # Here, so that the program never sees another size.
            fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", lines, columns, 0, 0))
            if cwd:
                os.chdir(cwd)
            # The size is the terminal's, not what whoever runs the tests has set.
            inherited = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
            env = {**inherited, "TERM": "xterm-256color", "COLORTERM": "truecolor", **(environment or {})}
            os.execve(sys.executable, [sys.executable, *argv], env)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(self.pid, 9)
        with contextlib.suppress(ChildProcessError):
            os.waitpid(self.pid, 0)
        os.close(self._fd)

    def _read(self, timeout: float) -> bool:
        """Take what was drawn; False if nothing was, or the process has ended."""
        if not select.select([self._fd], [], [], timeout)[0]:
            return False
        try:
            data = os.read(self._fd, 65536)
        except OSError:
            return False
        self.drawn += data
        return bool(data)

    def text(self, since: int = 0) -> str:
        """What was drawn from there on, without colours and positions."""
        return _ESCAPES.sub(b" ", bytes(self.drawn[since:])).decode(errors="replace")

    def wait_for(self, text: str, since: int = 0) -> float:
        """Seconds from the start to when a text was drawn."""
        limit = time.monotonic() + PATIENCE
        while text not in self.text(since):
            if time.monotonic() > limit or (not self._read(1.0) and self._ended()):
                raise AssertionError(f"{text!r} was never drawn, but: {self.text()[-3000:]}")
        return time.monotonic() - self.began

    def _ended(self) -> bool:
        try:
            return os.waitpid(self.pid, os.WNOHANG)[0] != 0
        except ChildProcessError:
            return True

    def press(self, keys: str, quiet: float = QUIET) -> Answer:
        """How long a key took to be answered. The picture is whole when nothing came for ``quiet`` seconds."""
        while self._read(quiet):
            pass
        at = len(self.drawn)
        first = 0.0
        start = last = time.monotonic()
        os.write(self._fd, keys.encode())
        while self._read(quiet if last != start else 1.0):
            last = time.monotonic()
            if not first and _ESCAPES.sub(b"", bytes(self.drawn[at:])).strip():
                first = last
        return Answer((first or last) - start, last - start)

    def exit_status(self) -> int:
        """Wait for the process to end by itself."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            while self._read(0.05):
                pass
            pid, status = os.waitpid(self.pid, os.WNOHANG)
            if pid:
                return os.waitstatus_to_exitcode(status)
        raise AssertionError("it did not end")
