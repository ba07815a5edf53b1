"""The process that understands what is recorded (``teller``), as its proxy sees it."""

from __future__ import annotations

import contextlib
import math
import os
import subprocess
import tempfile
import threading
from typing import TYPE_CHECKING

import msgspec

from inspector import installation

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

END = 10.0
"""Seconds that it has to say what is left when the proxy ends."""


class Told(msgspec.Struct, array_like=True):
    """A line of the console, and what else the proxy has to know of the record that it tells."""

    text: str
    seq: int | None = None
    findings: list[tuple[str, str, str]] = []
    """Rule, severity and message of each."""
    trouble: list[str] = []
    """Mistakes of our own while understanding it."""

    def complaints(self) -> list[str]:
        """Those in words."""
        about = "a run" if self.seq is None else self.seq
        return [f"-- puppet-inspector stumbled over {about}: {each}" for each in self.trouble]


class Commentary:
    """A running process. What it says comes on a thread of its own; if it dies, recording goes on without it."""

    def __init__(self, path: Path, after: int, rules: Path | None, hear: Callable[[Told], None]) -> None:
        """Tell what is added to a capture after a record; ``hear`` gets each line."""
        self._hear = hear
        # Not from the directory that we are in (-P): anybody may have put something there.
        command = installation.command("inspector.proxy.analysis_worker", str(path), str(after), str(rules or ""))
        self._complaint = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._complaint, start_new_session=True
        )
        assert self._process.stdin  # noqa: S101 - a pipe was asked for
        # A process that hangs must not make us wait.
        os.set_blocking(self._process.stdin.fileno(), False)
        self._ending = False
        self.at: float = after
        """The number of the record that was told last; without end, if nothing more will be told."""
        self._thread = threading.Thread(target=self._run, name="commentary", daemon=True)
        self._thread.start()

    def more(self) -> None:
        """There is more to read."""
        assert self._process.stdin  # noqa: S101
        with contextlib.suppress(OSError):
            os.write(self._process.stdin.fileno(), b"\n")

    def end(self) -> bool:
        """Wait for what is left to be said; False if it took too long and was given up."""
        self._ending = True
        assert self._process.stdin  # noqa: S101
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(END)
            whole = True
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            whole = False
        self._thread.join(END)
        return whole

    def _run(self) -> None:
        assert self._process.stdout  # noqa: S101
        with self._process.stdout, self._complaint:
            for line in self._process.stdout:
                told = msgspec.json.decode(line, type=Told)
                self._hear(told)
                self.at = told.seq or self.at
            self.at = math.inf
            self._complaint.seek(0)
            said = self._complaint.read().decode(errors="replace").strip().rpartition("\n")[2]
        if not self._ending:
            why = f": {said}" if said else ""
            self._hear(Told(f"-- nothing more is told here, though all is recorded{why} (`puppet-inspector follow`)"))
