"""The analysis process (``analysis_worker``) as its proxy sees it."""

from __future__ import annotations

import contextlib
import math
import os
import struct
import subprocess
import tempfile
import threading
import time
from typing import IO, TYPE_CHECKING

import msgspec

from inspector import installation
from inspector.proxy import side_process
from inspector.proxy.telemetry.samples import Sample
from inspector.proxy.telemetry.settings import NOTHING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from inspector.proxy.telemetry.settings import Telemetry

CLOSE_TIMEOUT = 10.0
"""Seconds that the process has to analyze the rest when the proxy ends."""
CHECK = 0.5
"""Seconds between looks whether the process has ended by itself."""
HOPELESS = 3
"""Number of processes that ended, one soon after the other, after which old captures do not wait for the analysis."""
PROGRESS = struct.Struct("<q")
"""What the process shares with the proxy: the number of the record that it is analyzing; 0 if it is at none."""


class AnalysisResult(msgspec.Struct, array_like=True):
    """A line for the console, and what else the proxy needs to know about the record that it describes."""

    text: str
    """Empty for none."""
    seq: int | None = None
    findings: list[tuple[str, str, str]] = []
    """Rule, severity and message of each finding."""
    errors: list[str] = []
    """Internal errors during the analysis."""
    samples: list[Sample] = []
    """What it adds to metrics, if those are wanted."""

    def error_lines(self) -> list[str]:
        """Return the internal errors as lines for the console."""
        analyzed = "a run" if self.seq is None else f"record {self.seq}"
        return [f"-- internal error while analyzing {analyzed}: {error}" for error in self.errors]


class AnalysisClient:
    """The analysis process, which is started again whenever it ends. Its results arrive on a separate thread.

    A record that takes it too long (``analysis_worker.CPU``), or at which it ends twice, is not analyzed; all others
    are. Recording never waits for it.
    """

    def __init__(
        self,
        current: Callable[[], Path],
        after: int,
        rules: Sequence[str],
        on_result: Callable[[AnalysisResult], None],
        telemetry: Telemetry = NOTHING,
    ) -> None:
        """Analyze what is added to a capture after the record number ``after``; ``on_result`` gets each result.
        ``current`` returns the capture that is being written, ``rules`` are the options with the site's rules.
        ``telemetry`` says what is measured, and where spans are sent."""
        self._current = current
        self._rules = rules
        self._telemetry = telemetry
        self._on_result = on_result
        self._last = after
        self._skipped: list[int] = []
        self._restarts = side_process.Restarts()
        self._closing = threading.Event()
        self._progress = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as this object
        self._process, self._stderr = self._start()
        self._complete = True
        self._thread = threading.Thread(target=self._run, name="analysis client", daemon=True)
        self._thread.start()

    @property
    def analyzed(self) -> float:
        """The number of the record that was analyzed last; infinite while no more results will come."""
        return math.inf if self._restarts.deaths >= HOPELESS or not self._thread.is_alive() else self._last

    def _start(self) -> tuple[subprocess.Popen[bytes], IO[bytes]]:
        os.ftruncate(self._progress.fileno(), 0)
        os.ftruncate(self._progress.fileno(), PROGRESS.size)
        stderr = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as the process
        # Not from the current directory (-P): it may contain modules of anybody.
        command = installation.command(
            "inspector.proxy.analysis_worker", str(self._current()), str(self._last), str(os.getpid()),
            str(self._progress.fileno()), ",".join(map(str, self._skipped)),
            "samples" if self._telemetry.metrics else "", self._telemetry.collector, *self._rules,
        )  # fmt: skip
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=stderr, start_new_session=True,
            pass_fds=[self._progress.fileno()],
        )  # fmt: skip
        assert process.stdin  # noqa: S101 - a pipe was requested
        # A process that hangs must not block the proxy.
        os.set_blocking(process.stdin.fileno(), False)
        return process, stderr

    def wake(self) -> None:
        """Tell the process that the capture has more records."""
        assert self._process.stdin  # noqa: S101
        with contextlib.suppress(OSError, ValueError):
            os.write(self._process.stdin.fileno(), b"\n")

    def close(self) -> bool:
        """Wait for the rest of the results; False if they are not complete: the process took too long, or had ended."""
        self._closing.set()
        self._thread.join(CLOSE_TIMEOUT)
        if self._thread.is_alive():
            self._process.kill()
            self._thread.join(CLOSE_TIMEOUT)
            self._complete = False
        return self._complete

    def _run(self) -> None:
        with self._progress:
            while True:
                began = time.monotonic()
                status = self._serve()
                if self._closing.is_set():
                    self._complete = status == 0
                    return
                self._restarts.note(time.monotonic() - began)
                if not self._restart():
                    self._complete = False
                    return

    def _restart(self) -> bool:
        """Start another process after a pause; False if the proxy ends first."""
        while not self._closing.wait(self._restarts.pause):
            try:
                self._process, self._stderr = self._start()
            except OSError as error:  # no process or no descriptor is left
                self._restarts.deaths += 1
                self._write(f"-- the analysis cannot be started ({error.strerror}); recording continues")
            else:
                return True
        return False

    def _serve(self) -> int:
        """Read the results of a process to its end; return its status."""
        process = self._process
        threading.Thread(target=self._close_input, args=(process,), daemon=True).start()
        with process, self._stderr:
            self._read()
            status = process.wait()
            if not self._closing.is_set():
                self._report_end(status, *PROGRESS.unpack(os.pread(self._progress.fileno(), PROGRESS.size, 0)))
        return status

    def _close_input(self, process: subprocess.Popen[bytes]) -> None:
        """Tell a process that the proxy ends, when it does."""
        assert process.stdin  # noqa: S101
        while process.poll() is None:
            if self._closing.wait(CHECK):
                with contextlib.suppress(OSError):
                    process.stdin.close()
                return

    def _read(self) -> None:
        assert self._process.stdout  # noqa: S101
        for line in self._process.stdout:
            try:
                result = msgspec.json.decode(line, type=AnalysisResult)
            except msgspec.DecodeError:
                return  # cut off: the process was killed
            self._on_result(result)
            self._last = result.seq or self._last

    def _report_end(self, status: int, seq: int) -> None:
        """Print why the process ended, and decide whether to leave out the record at which it did."""
        self._stderr.seek(0)
        reason = self._stderr.read().decode(errors="replace").strip().rpartition("\n")[2]
        if side_process.took_too_long(status):
            reason = "a record took too long"
        place = f" at record {seq}" if seq else ""
        self._write(f"-- the analysis has stopped{place}{f' ({reason})' if reason else ''}; recording continues, and "
                    "the analysis is started again")  # fmt: skip
        if self._restarts.gives_up(seq, status):
            self._skipped.append(seq)
            self._write(f"-- record {seq} is not analyzed: `puppet-inspector show` shows it")

    def _write(self, text: str) -> None:
        self._on_result(AnalysisResult(text))
