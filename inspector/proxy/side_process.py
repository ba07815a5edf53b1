"""What the processes beside a proxy have in common: they end with it, spend a limited time on a record, and are started
again whenever they end.

A record that takes such a process too long, or at which it ends twice, is left out; all others are processed.
"""

from __future__ import annotations

import contextlib
import math
import os
import signal
import subprocess
import tempfile
import threading
import time
from typing import IO, TYPE_CHECKING

from inspector import installation, processes

if TYPE_CHECKING:
    from collections.abc import Sequence

NICE = 5
"""The proxy, and with it the agents, have priority."""
PAUSES = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 60.0)
"""Seconds until the process is started again, if it ends soon once more; the last one from then on."""
BRIEF = 0.2
"""Seconds until it is started again while the proxy ends."""
LONG = 60.0
"""Seconds after which a process that ends counts as the first one."""


class SideProcess:
    """A process beside a proxy, and the thread that serves it and starts it again whenever it ends.

    A subclass says how the process is started (``_launch``), what the proxy does while it runs (``_serve``), and what
    is reported when it has ended (``_report_end``).
    """

    def __init__(self, name: str) -> None:
        """``name`` is the thread's."""
        self._restarts = Restarts()
        self._process: subprocess.Popen[bytes] | None = None
        self._began = 0.0
        """When the process was started."""
        self._closing = threading.Event()
        """Set when the proxy ends."""
        self._until = math.inf
        """When the process is not started again any more."""
        self._status: int | None = None
        """The exit status of the latest process that has ended."""
        self._errors: IO[bytes] | None = None
        """What the process prints as errors, if that is kept."""
        self._lock = threading.Lock()
        """Held while the process is started."""
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def start(self) -> None:
        """Start the process, and the thread."""
        self._start()
        self._thread.start()

    def _launch(self) -> subprocess.Popen[bytes]:
        """Start the process. Raises OSError."""
        raise NotImplementedError

    def _popen(
        self, module: str, *arguments: str, descriptors: Sequence[int] = (), stdin: int = subprocess.DEVNULL,
        stdout: int = subprocess.DEVNULL, errors: bool = True,
    ) -> subprocess.Popen[bytes]:  # fmt: skip
        """Start a module of this package, with the number of this process and these arguments. ``errors``: keep what it
        prints as errors. Raises OSError."""
        if errors:
            self._errors = self._errors or tempfile.TemporaryFile()  # noqa: SIM115 - closed by the thread
            self._errors.seek(0)
            self._errors.truncate()
        return subprocess.Popen(
            installation.command(module, str(os.getpid()), *arguments), stdin=stdin, stdout=stdout,
            stderr=self._errors or subprocess.DEVNULL, start_new_session=True, pass_fds=descriptors,
        )  # fmt: skip

    def _last_error(self) -> str:
        """Return the last line that the process has printed as an error."""
        assert self._errors  # noqa: S101 - they are kept
        self._errors.seek(0)
        return self._errors.read().decode(errors="replace").strip().rpartition("\n")[2]

    def _serve(self, process: subprocess.Popen[bytes]) -> None:
        """Work with the process; return when it has ended, or is to be ended."""
        raise NotImplementedError

    def _report_end(self, status: int) -> None:
        """Report that the process has ended by itself."""
        raise NotImplementedError

    def _report_failure(self, error: OSError) -> None:
        """Report that the process cannot be started."""
        raise NotImplementedError

    def _pause(self) -> float:
        """Return how many seconds to wait for the next start."""
        return self._restarts.pause

    @property
    def _finished(self) -> bool:
        """Whether the process is not needed any more."""
        return self._closing.is_set()

    def _end(self, patience: float = 0.0) -> None:
        """Note that the proxy ends: the process is started again for some seconds only, and without a long pause."""
        self._until = time.monotonic() + patience
        self._closing.set()

    def _run(self) -> None:
        while True:
            if self._process is not None:
                self._serve(self._process)
                self._status = self._stop(self._process)
                if self._finished:
                    break
                self._restarts.note(time.monotonic() - self._began)
                self._report_end(self._status)
            if not self._await_start():
                break
            self._start()
        if self._errors:
            self._errors.close()

    def _start(self) -> None:
        with self._lock:
            if time.monotonic() >= self._until:
                return
            self._began = time.monotonic()
            try:
                self._process = self._launch()
            except OSError as error:  # no process or no descriptor is left
                self._restarts.note(0.0)
                self._report_failure(error)

    def _await_start(self) -> bool:
        """Wait for the next start; return whether there is one."""
        if self._closing.wait(self._pause()):
            time.sleep(max(0.0, min(BRIEF, self._until - time.monotonic())))
        return time.monotonic() < self._until

    def _stop(self, process: subprocess.Popen[bytes]) -> int:
        """End the process, unless it has ended; return its exit status."""
        self._process = None
        with process:
            process.kill()
        return process.returncode

    def _kill(self) -> None:
        """End the process from another thread; no other one is started after ``_end``."""
        with self._lock:
            if process := self._process:
                process.kill()


class Restarts:
    """Decides when a process is started again, and which record it leaves out then."""

    def __init__(self) -> None:
        self.deaths = 0
        """Number of processes that ended, one soon after the other."""
        self._suspect = 0
        """The record at which the process ended the last time."""

    @property
    def pause(self) -> float:
        """Seconds to wait before the next start."""
        return PAUSES[min(self.deaths, len(PAUSES)) - 1]

    def note(self, lived: float) -> None:
        """Note that a process ended after some seconds."""
        self.deaths = 1 if lived > LONG else self.deaths + 1

    def gives_up(self, record: int, status: int) -> bool:
        """Whether to leave out the record at which the process ended (0: it was at none), given its exit status."""
        hopeless = bool(record) and (took_too_long(status) or record == self._suspect)
        self._suspect = record
        return hopeless


def took_too_long(status: int) -> bool:
    """Whether a process was ended because of the time that a record took."""
    return status == -signal.SIGPROF


def attend(proxy: int) -> None:
    """Make this process one beside a proxy, whose process number is given: end it when the proxy ends, whatever it is
    doing then."""
    processes.end_with(proxy, signal.SIGKILL)
    # The proxy handles Ctrl-C, and the SIGTERM that systemd sends to all processes of a service: it ends in order and
    # closes our input.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        os.nice(NICE)


def limit(seconds: float) -> None:
    """Let the kernel end this process after some seconds of CPU time: call it before each record.

    All work is linear in the size of a record, so this is the last net.
    """
    # Its default action ends the process, also while the interpreter is in a library.
    signal.setitimer(signal.ITIMER_PROF, seconds)
