"""Pass on what a command prints, byte for byte, and keep the beginning and the end of it; take the signals meanwhile.

What goes to a terminal still does: the command gets a terminal of its own in its place, so that it colours its lines,
and sends them, as ever.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import signal
import termios
import threading
import time
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

FIRST = LAST = 8 * 1024
"""Bytes of each stream that are kept: a mistake in the settings is reported first, why a run failed last."""
PIECE = 64 * 1024
QUIET = 0.5
"""Seconds without output after which nobody waits for more, once the command has ended: a process that it left behind
may keep the stream open for ever."""


class _Stream:
    """One stream of a command, on its way to one of ours."""

    def __init__(self, target: int) -> None:
        """Raises OSError."""
        self._target = target
        self._source, self.given = _terminal_like(target) if os.isatty(target) else os.pipe()
        self._first, self._last = bytearray(), bytearray()
        self._heard = 0.0
        self._writing = False
        self._thread = threading.Thread(target=self._run, name="agent output", daemon=True)

    @property
    def text(self) -> str:
        """The beginning and the end of what was printed."""
        return bytes(self._first + self._last).decode("utf-8", "replace")

    def start(self) -> None:
        """Begin to pass on; the command has its end of the stream."""
        self._thread.start()
        os.close(self.given)

    def _run(self) -> None:
        # EIO: the last user of a terminal has closed it. If our own output is closed, so is the command's.
        with contextlib.suppress(OSError):
            while data := os.read(self._source, PIECE):
                self._heard, self._writing = time.monotonic(), True
                room = FIRST - len(self._first)
                self._first += data[:room]
                self._last += data[room:]
                del self._last[:-LAST]
                while data:
                    data = data[os.write(self._target, data) :]
                self._writing = False
        with contextlib.suppress(OSError):
            os.close(self._source)

    def finish(self) -> None:
        """Wait for the rest, once the command has ended."""
        if self._thread.ident is None:  # there was no command
            os.close(self.given)
            os.close(self._source)
        self._heard = time.monotonic()
        while self._thread.is_alive() and (self._writing or time.monotonic() - self._heard < QUIET):
            self._thread.join(QUIET / 10)


class Relay:
    """The output of a command: ``with Relay() as relay: Popen(..., stdout=relay.stdout, ...); relay.start()``."""

    def __init__(self) -> None:
        self._streams: list[_Stream] = []
        self.stdout: int | None = None
        self.stderr: int | None = None
        """For ``Popen``; None: the command must write to our own output itself."""

    def __enter__(self) -> Self:
        with contextlib.suppress(OSError):  # no terminal is left, or an output is closed
            out = _Stream(1)
            self._streams.append(out)
            # Lines of two streams to one place would lose their order.
            error = out if same(1, 2) else _Stream(2)
            self._streams += [error] if error is not out else []
            self.stdout, self.stderr = out.given, error.given
        return self

    def __exit__(self, *_: object) -> None:
        for stream in self._streams:
            stream.finish()

    def start(self) -> None:
        """Begin to pass on; the command runs."""
        for stream in self._streams if self.stdout is not None else ():
            stream.start()

    @property
    def text(self) -> str:
        """The beginning and the end of what the command printed."""
        return "\n".join(stream.text for stream in self._streams)


@contextlib.contextmanager
def signals(take: Callable[[int, FrameType | None], None]) -> Iterator[None]:
    """Let ``take`` have Ctrl-C, SIGTERM and SIGHUP, unless they are ignored already (nohup)."""
    is_main = threading.current_thread() is threading.main_thread()
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP) if is_main else ()
    handlers = {number: signal.getsignal(number) for number in numbers}
    for number, handler in handlers.items():
        if handler is not signal.SIG_IGN:
            signal.signal(number, take)
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def same(one: int, other: int) -> bool:
    """Whether two outputs go to one place."""
    first, second = os.fstat(one), os.fstat(other)
    return (first.st_dev, first.st_ino) == (second.st_dev, second.st_ino)


def _terminal_like(target: int) -> tuple[int, int]:
    """Return both ends of a terminal with the size of another one, which changes no byte. Raises OSError."""
    source, given = pty.openpty()
    with contextlib.suppress(OSError, termios.error):
        attributes = termios.tcgetattr(given)
        attributes[1] &= ~termios.OPOST
        termios.tcsetattr(given, termios.TCSANOW, attributes)
        fcntl.ioctl(given, termios.TIOCSWINSZ, fcntl.ioctl(target, termios.TIOCGWINSZ, bytes(8)))
    return source, given
