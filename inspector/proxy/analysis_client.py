"""The analysis process (``analysis_worker``) as its proxy sees it."""

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

CLOSE_TIMEOUT = 10.0
"""Seconds that the process has to analyze the rest when the proxy ends."""


class AnalysisResult(msgspec.Struct, array_like=True):
    """A line for the console, and what else the proxy needs to know about the record that it describes."""

    text: str
    seq: int | None = None
    findings: list[tuple[str, str, str]] = []
    """Rule, severity and message of each finding."""
    errors: list[str] = []
    """Internal errors during the analysis."""

    def error_lines(self) -> list[str]:
        """Return the internal errors as lines for the console."""
        analyzed = "a run" if self.seq is None else f"record {self.seq}"
        return [f"-- internal error while analyzing {analyzed}: {error}" for error in self.errors]


class AnalysisClient:
    """A running analysis process. Its results arrive on a separate thread; if it dies, recording continues."""

    def __init__(self, path: Path, after: int, rules: Path | None, on_result: Callable[[AnalysisResult], None]) -> None:
        """Analyze what is added to a capture after the record number ``after``; ``on_result`` gets each result."""
        self._on_result = on_result
        # Not from the current directory (-P): it may contain modules of anybody.
        command = installation.command("inspector.proxy.analysis_worker", str(path), str(after), str(rules or ""))
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        self._process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._stderr, start_new_session=True
        )
        assert self._process.stdin  # noqa: S101 - a pipe was requested
        # A process that hangs must not block the proxy.
        os.set_blocking(self._process.stdin.fileno(), False)
        self._closing = False
        self.analyzed: float = after
        """The number of the record that was analyzed last; infinite if no more results will come."""
        self._thread = threading.Thread(target=self._run, name="analysis client", daemon=True)
        self._thread.start()

    def wake(self) -> None:
        """Tell the process that the capture has more records."""
        assert self._process.stdin  # noqa: S101
        with contextlib.suppress(OSError):
            os.write(self._process.stdin.fileno(), b"\n")

    def close(self) -> bool:
        """Wait for the rest of the results; False if the process took too long and was killed."""
        self._closing = True
        assert self._process.stdin  # noqa: S101
        with contextlib.suppress(OSError):
            self._process.stdin.close()
        try:
            self._process.wait(CLOSE_TIMEOUT)
            complete = True
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
            complete = False
        self._thread.join(CLOSE_TIMEOUT)
        return complete

    def _run(self) -> None:
        assert self._process.stdout  # noqa: S101
        with self._process.stdout, self._stderr:
            for line in self._process.stdout:
                result = msgspec.json.decode(line, type=AnalysisResult)
                self._on_result(result)
                self.analyzed = result.seq or self.analyzed
            self.analyzed = math.inf
            self._stderr.seek(0)
            last_line = self._stderr.read().decode(errors="replace").strip().rpartition("\n")[2]
        if not self._closing:
            reason = f" ({last_line})" if last_line else ""
            self._on_result(
                AnalysisResult(
                    f"-- the analysis has stopped{reason}; recording continues, "
                    "`puppet-inspector follow` shows the analysis"
                )
            )
