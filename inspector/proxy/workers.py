"""The processes of `puppet-inspector proxy`: one, or several on one port that record into one capture.

An agent always meets the same worker: connections are distributed by the agent's address (``engine.handover``). The
process that started the workers analyzes their records, and restarts a worker that dies.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspector import installation
from inspector.capture.store import Capture
from inspector.errors import CaptureError, InspectorError
from inspector.model import Gap
from inspector.proxy import masking_channel, options
from inspector.proxy.analysis_client import AnalysisClient
from inspector.proxy.console import Console
from inspector.proxy.engine.server import LISTENS, STOPPING
from inspector.proxy.recorder import CONTINUES, DELETED
from inspector.proxy.telemetry import metrics
from inspector.proxy.telemetry.metrics import Waiting

if TYPE_CHECKING:
    from collections.abc import Mapping

    from inspector.proxy.analysis_client import AnalysisResult

START = 60.0
"""Seconds that the workers have to start."""
STOP = 45.0
"""Seconds that a worker has to end."""
POLL = 0.2
"""Seconds between checks for new records and dead workers."""
RESTART_DELAY = 1.0
"""Seconds before a worker is started again."""


def run(option_values: Mapping[str, Any], number: int) -> int:
    """Serve until a signal arrives; return the exit status. ``option_values`` are the addon's options.

    Raises InspectorError.
    """
    if number < 1:
        raise InspectorError(f"--workers must be 1 or more, not {number}.", "Give the number of processes.")
    try:
        # A signal that arrives while the server starts waits until the server handles it: an import may swallow the
        # exception that a signal raises, and a new program forgets what its predecessor did not handle yet.
        signal.pthread_sigmask(signal.SIG_BLOCK, STOPPING)
        if number == 1:
            command = _command(option_values)
            os.execv(command[0], command)  # noqa: S606 - no shell is wanted
        return Workers(option_values, number).serve()
    except PermissionError as error:
        if error.filename != sys.executable:
            raise
        raise InspectorError(
            f"Cannot execute {sys.executable}: {error.strerror}.",
            "The user given with --user must be able to read it: install puppet-inspector where all users can read.",
        ) from error


def _command(option_values: Mapping[str, Any], *worker: str) -> list[str]:
    """Return the command of a server; ``worker``: as one of several."""
    return installation.command("inspector.proxy.engine.server", json.dumps(dict(option_values)), *worker)


def _reserved(settings: options.Settings) -> tuple[options.Settings, socket.socket]:
    """Reserve a port for the workers; return the settings with it, and its socket. Raises InspectorError."""
    while True:
        # With SO_REUSEADDR on both sides, another program could listen before the workers do. So that comes second,
        # for a port with closed connections of an earlier proxy.
        for reuse in (0, 1):
            family = socket.getaddrinfo(*settings.listen, type=socket.SOCK_STREAM)[0][0]
            reserved = socket.socket(family, socket.SOCK_STREAM)
            reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuse)
            reserved.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
            try:
                reserved.bind(settings.listen)
            except OSError:
                reserved.close()
            else:
                return settings, reserved
        settings = options.listen_again(settings)  # another process took it since it was found free


def _last(path: Path) -> int:
    """Return the last record number of a capture that is continued in another one."""
    try:
        with Capture.open(path) as capture:
            return capture.last
    except CaptureError:
        return 0  # another process deleted it


def _meeting_place() -> tempfile.TemporaryDirectory[str]:
    """Return a directory of our own. Raises InspectorError."""
    try:
        return tempfile.TemporaryDirectory(prefix="puppet-inspector-")
    except OSError as error:
        raise InspectorError(
            f"Cannot make a temporary directory for the workers: {error.strerror}.",
            "With puppet_proxy_protocol they pass connections on to each other: set TMPDIR to a writable directory.",
        ) from error


class Workers:
    """Several servers on one port."""

    def __init__(self, option_values: Mapping[str, Any], number: int) -> None:
        """Check the options once for all workers. Raises InspectorError."""
        self._settings, self._reserved = _reserved(
            options.resolve(options.with_defaults(**option_values), own_mode=False)
        )
        settings = self._settings
        if settings.redact == "closed":
            masking_channel.make_key()
        self._option_values = {**option_values, "puppet_listen": settings.listen_address}
        self._console = Console()
        self._running: list[subprocess.Popen[str]] = []
        self._readers: dict[int, threading.Thread] = {}
        """By process: what reads its output."""
        self._number = number
        self._folder = _meeting_place() if settings.balancers else None
        """Where the workers reach each other; nobody else does."""
        self._waiting = Waiting(number)
        self._metrics = metrics.served(settings.telemetry)
        if self._metrics:
            self._metrics.watch(lambda: self._current, self._waiting.total)
        self._ready = threading.Semaphore(0)
        self._starting: set[int] = set()
        """The processes that may not have opened their capture yet."""
        self._captures: dict[Path, None] = {settings.capture: None}
        """In the order in which they were started."""
        self._previous_last: int | None = None
        """The last record of the previous capture: once a later one was analyzed, old captures may be deleted."""
        self._lock = threading.Lock()
        self._stopped = False
        """Whether a signal has arrived. No Event: a handler that interrupts a wait for it would wait for ever."""

    def serve(self) -> int:
        """Serve until a signal arrives; return the exit status."""
        for number in STOPPING:
            signal.signal(number, self._stop_soon)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
        write_line = self._console.write_line
        with Capture.create(self._settings.capture) as capture:
            after = capture.last
        analysis = AnalysisClient(
            lambda: self._current, after, self._settings.rules, self._on_result, self._settings.telemetry
        )
        try:
            if not self._start():
                return 0 if self._stopped else 1
            for line in options.startup_lines(self._settings, [self._settings.listen_address]):
                write_line(line)
            write_line(f"  workers     {self._number}")
            while not self._wait(POLL):
                analysis.wake()
                self._delete_old(analysis.analyzed)
                self._restart_dead()
        finally:
            self._stop()
            self._reserved.close()
            if self._folder:
                self._folder.cleanup()
            analysis.close()
            if self._metrics:
                self._metrics.close()
            self._waiting.close()
            self._delete_old(analysis.analyzed)
            write_line(f"The capture is {self._current}")
            self._console.close()
        return 0

    def _stop_soon(self, *_: object) -> None:
        self._stopped = True

    def _wait(self, seconds: float) -> bool:
        """Wait, or until a signal arrives; return whether one has arrived."""
        until = time.monotonic() + seconds
        while not self._stopped and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, POLL))
        return self._stopped

    def _on_result(self, result: AnalysisResult) -> None:
        if result.text:
            self._console.write_line(result.text)
        if self._metrics:
            self._metrics.observe(result.samples)
        for line in result.error_lines():
            self._console.write_line(line)
        if result.errors:
            # Errors that cannot be recorded were at least printed.
            with contextlib.suppress(CaptureError, sqlite3.Error), Capture.create(self._current) as capture:
                for error in result.errors:
                    capture.append(Gap(time.time(), error))

    def _start(self) -> bool:
        """Start the workers; return whether all of them serve."""
        for number in range(self._number):
            self._running.append(self._start_worker(number))
        until = time.monotonic() + START
        waiting = self._number
        while waiting and not self._stopped and time.monotonic() < until:
            waiting -= self._ready.acquire(timeout=POLL)
            if any(process.poll() is not None for process in self._running):
                break
        return not waiting

    def _start_worker(self, number: int) -> subprocess.Popen[str]:
        # All workers write to the same capture; one that is restarted, to the capture that is current by then.
        option_values = {**self._option_values, "puppet_capture": str(self._current)}
        command = _command(option_values, str(self._number), str(number), self._folder.name if self._folder else "",
                           str(self._waiting.descriptor))  # fmt: skip
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, errors="replace",
            pass_fds=[self._waiting.descriptor],
            start_new_session=True,  # this process handles Ctrl-C, and ends the workers in order
        )  # fmt: skip
        self._starting.add(process.pid)
        self._readers[process.pid] = threading.Thread(target=self._read_output, args=(process,), daemon=True)
        self._readers[process.pid].start()
        return process

    def _read_output(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout  # noqa: S101 - a pipe was requested
        with process.stdout:
            for text in process.stdout:
                line = text.rstrip("\n")
                if line == LISTENS:
                    self._starting.discard(process.pid)
                    self._ready.release()
                elif not line.startswith(CONTINUES) or self._continues_in(Path(line.removeprefix(CONTINUES))):
                    self._console.write_line(line)
        self._starting.discard(process.pid)

    @property
    def _current(self) -> Path:
        with self._lock:
            return list(self._captures)[-1]

    def _continues_in(self, path: Path) -> bool:
        """Note the next capture; return whether it is new: every worker reports it, some of them late."""
        previous = self._current
        with self._lock:
            is_new = path not in self._captures
            self._captures[path] = None
        if is_new:
            self._previous_last = _last(previous)
        return is_new

    def _delete_old(self, analyzed: float) -> None:
        """Delete old captures once a record of the current one was analyzed: the analysis finds the current capture in
        the previous one. Not while a worker starts: it would make the capture that it was given anew, for no reader.
        ``analyzed`` is the last record number that was analyzed."""
        if self._previous_last is not None and analyzed > self._previous_last and not self._starting:
            self._previous_last = None
            for deleted in self._settings.rotation.retire(self._current):
                self._console.write_line(DELETED.format(deleted))

    def _restart_dead(self) -> None:
        for index, process in enumerate(self._running):
            if process.poll() is not None:
                self._console.write_line(f"-- a worker exited (status {process.returncode}); starting another one")
                if not self._wait(RESTART_DELAY):
                    self._end(process)
                    self._running[index] = self._start_worker(index)

    def _stop(self) -> None:
        for process in self._running:
            process.terminate()
        for process in self._running:
            self._end(process)

    def _end(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin  # noqa: S101
        process.stdin.close()
        try:
            process.wait(STOP)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        # The last thing that it reports may be in which capture it went on.
        self._readers.pop(process.pid).join(STOP)
