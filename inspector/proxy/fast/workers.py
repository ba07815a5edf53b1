"""The processes of `puppet-inspector proxy`: one, or several on one port that record into one capture.

Each serves whole agents: the system gives each of them its share of the addresses (``affinity``). The one that started
them finds out what their records mean, and starts another one in the place of one that dies.
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
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from inspector import installation
from inspector.capture.store import Capture
from inspector.errors import CaptureError, InspectorError
from inspector.model import Gap
from inspector.proxy import options
from inspector.proxy.analysis_client import Commentary
from inspector.proxy.console import Console
from inspector.proxy.recorder import BEGINS, DELETED

if TYPE_CHECKING:
    from collections.abc import Mapping

    from inspector.proxy.analysis_client import Told

LISTENS = "listening"
"""What a worker says when agents can come."""
START = 60.0
"""Seconds that workers have to start."""
STOP = 45.0
"""Seconds that they have to end."""
LOOK = 0.2
"""Seconds between two looks for what they recorded, and at whether they live."""
AGAIN = 1.0
"""Seconds between two starts of a worker."""


def run(given: Mapping[str, Any], number: int) -> int:
    """Serve until a signal comes; the exit status. ``given`` are the addon's options. Raises InspectorError."""
    if number < 1:
        raise InspectorError(f"--workers {number} would serve nobody.", "Give the number of processes, 1 or more.")
    try:
        if number == 1:
            alone = _command(given, 1)
            os.execv(alone[0], alone)  # noqa: S606 - no shell is wanted
        return Workers(given, number).serve()
    except PermissionError as error:
        if error.filename != sys.executable:
            raise
        raise InspectorError(
            f"{sys.executable} can't be executed: {error.strerror}.",
            "The user that --user names must be able to get at it: install puppet-inspector where all users can.",
        ) from error


def _command(given: Mapping[str, Any], number: int) -> list[str]:
    """What starts a server, without the assertions (-O) with which mitmproxy checks its own types all the time."""
    return installation.command("inspector.proxy.fast.server", json.dumps(dict(given)), str(number), optimized=True)


def _reserved(settings: options.Settings) -> tuple[options.Settings, socket.socket]:
    """A port that only the workers can listen on from now on. Raises InspectorError."""
    while True:
        family = socket.getaddrinfo(*settings.listen, type=socket.SOCK_STREAM)[0][0]
        held = socket.socket(family, socket.SOCK_STREAM)
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)  # what a proxy before left behind is no hindrance
        held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        try:
            held.bind(settings.listen)
        except OSError:  # somebody took it just now
            held.close()
            settings = options.listen_again(settings)
            continue
        return settings, held


def _last(path: Path) -> int:
    """The last record of a capture that goes on in another one."""
    try:
        with Capture.open(path) as capture:
            return capture.last
    except CaptureError:
        return 0  # somebody else deleted it


class Workers:
    """Several servers on one port."""

    def __init__(self, given: Mapping[str, Any], number: int) -> None:
        """Check the options once for all of them. Raises InspectorError."""
        self._settings, self._reserved = _reserved(options.settle(options.given(**given), own_mode=False))
        settings = self._settings
        self._given = {**given, "puppet_listen": settings.listen_address}
        self._console = Console()
        self._running: list[subprocess.Popen[str]] = []
        self._number = number
        self._ready = threading.Semaphore(0)
        self._captures: dict[Path, None] = {settings.capture: None}
        """In the order in which they were begun."""
        self._ended: int | None = None
        """The last record of the capture before the current one: when a later one was told, old captures may go."""
        self._lock = threading.Lock()
        self._stopped = threading.Event()

    def serve(self) -> int:
        """Until a signal comes."""
        for each in (signal.SIGINT, signal.SIGTERM):
            signal.signal(each, lambda *_: self._stopped.set())
        say = self._console.say
        with Capture.create(self._settings.capture) as capture:
            after = capture.last
        commentary = Commentary(self._settings.capture, after, self._settings.rules, self._heard)
        try:
            if not self._start():
                return 1
            for line in options.introduction(self._settings, [self._settings.listen_address]):
                say(line)
            say(f"  workers     {self._number}")
            while not self._stopped.wait(LOOK):
                commentary.more()
                self._retire(commentary.at)
                self._revive()
        finally:
            self._stop()
            self._reserved.close()
            commentary.end()
            say(f"The capture is {self._current}")
            self._console.close()
        return 0

    def _heard(self, told: Told) -> None:
        self._console.say(told.text)
        for line in told.complaints():
            self._console.say(line)
        if told.trouble:
            # What can't be recorded has been said.
            with contextlib.suppress(CaptureError, sqlite3.Error), Capture.create(self._current) as capture:
                for trouble in told.trouble:
                    capture.append(Gap(time.time(), trouble))

    def _start(self) -> bool:
        """Whether all of them serve."""
        for _ in range(self._number):
            self._running.append(self._worker())
        until = time.monotonic() + START
        waiting = self._number
        while waiting and not self._stopped.is_set() and time.monotonic() < until:
            waiting -= self._ready.acquire(timeout=LOOK)
            if any(each.poll() is not None for each in self._running):
                break
        return not waiting

    def _worker(self) -> subprocess.Popen[str]:
        # All of them write to the same capture: one that comes later, to the one that the others have gone on to.
        command = _command({**self._given, "puppet_capture": str(self._current)}, self._number)
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, errors="replace",
            start_new_session=True,  # Ctrl-C is for us, who end them in order
        )  # fmt: skip
        threading.Thread(target=self._hear, args=(process,), daemon=True).start()
        return process

    def _hear(self, process: subprocess.Popen[str]) -> None:
        assert process.stdout  # noqa: S101 - a pipe was asked for
        with process.stdout:
            for line in process.stdout:
                said = line.rstrip("\n")
                if said == LISTENS:
                    self._ready.release()
                elif not said.startswith(BEGINS) or self._goes_on(Path(said.removeprefix(BEGINS))):
                    self._console.say(said)

    @property
    def _current(self) -> Path:
        with self._lock:
            return list(self._captures)[-1]

    def _goes_on(self, path: Path) -> bool:
        """In which capture; whether that is news: each worker says it, some of them late."""
        before = self._current
        with self._lock:
            news = path not in self._captures
            self._captures[path] = None
        if news:
            self._ended = _last(before)
        return news

    def _retire(self, told: float) -> None:
        """Delete old captures, once something of the one that is written now was told: where it goes on, who tells
        learns from the one before. ``told``: the number of the last record."""
        if self._ended is not None and told > self._ended:
            self._ended = None
            for each in self._settings.rotation.retire(self._current):
                self._console.say(DELETED.format(each))

    def _revive(self) -> None:
        for place, process in enumerate(self._running):
            if process.poll() is not None:
                self._console.say(f"-- a worker ended ({process.returncode}); another one takes its place")
                self._stopped.wait(AGAIN)
                if not self._stopped.is_set():
                    self._end(process)
                    self._running[place] = self._worker()

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
