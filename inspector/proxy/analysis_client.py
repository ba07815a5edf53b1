"""The analysis process (``analysis_worker``) as its proxy sees it."""

from __future__ import annotations

import contextlib
import math
import os
import struct
import subprocess
import tempfile
from typing import TYPE_CHECKING

import msgspec

from inspector.proxy import side_process
from inspector.proxy.side_process import SideProcess
from inspector.proxy.telemetry.samples import Sample
from inspector.proxy.telemetry.settings import NOTHING

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from inspector.proxy.telemetry.settings import Telemetry

CLOSE_TIMEOUT = 10.0
"""Seconds that the process has to analyze the rest when the proxy ends."""
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


class AnalysisClient(SideProcess):
    """The analysis process. Its results arrive on a separate thread; recording never waits for it.

    A record that takes it too long (``analysis_worker.CPU``), or at which it ends twice, is not analyzed.
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
        super().__init__("analysis client")
        self._current = current
        self._rules = rules
        self._telemetry = telemetry
        self._on_result = on_result
        self._last = after
        self._skipped: list[int] = []
        self._progress = tempfile.TemporaryFile()  # noqa: SIM115 - it lives as long as this object
        self.start()

    @property
    def analyzed(self) -> float:
        """The number of the record that was analyzed last; infinite while no more results will come."""
        return math.inf if self._restarts.deaths >= HOPELESS or not self._thread.is_alive() else self._last

    def wake(self) -> None:
        """Tell the process that the capture has more records."""
        if (process := self._process) and process.stdin:
            with contextlib.suppress(OSError, ValueError):
                os.write(process.stdin.fileno(), b"\n")

    def close(self) -> bool:
        """Wait for the rest of the results; False if they are not complete: the process took too long, or had ended."""
        self._end()
        with self._lock, contextlib.suppress(OSError):
            if (process := self._process) and process.stdin:
                process.stdin.close()  # the process analyzes the rest, and ends
        self._thread.join(CLOSE_TIMEOUT)
        if self._thread.is_alive():
            self._kill()
            self._thread.join(CLOSE_TIMEOUT)
        self._progress.close()
        return self._status == 0

    def _launch(self) -> subprocess.Popen[bytes]:
        os.ftruncate(self._progress.fileno(), 0)
        os.ftruncate(self._progress.fileno(), PROGRESS.size)
        process = self._popen(
            "inspector.proxy.analysis_worker", str(self._current()), str(self._last), str(self._progress.fileno()),
            ",".join(map(str, self._skipped)), "samples" if self._telemetry.metrics else "", self._telemetry.collector,
            *self._rules, descriptors=[self._progress.fileno()], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
        )  # fmt: skip
        assert process.stdin  # noqa: S101 - a pipe was requested
        # A process that hangs must not block the proxy.
        os.set_blocking(process.stdin.fileno(), False)
        return process

    def _serve(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout  # noqa: S101
        for line in process.stdout:
            try:
                result = msgspec.json.decode(line, type=AnalysisResult)
            except msgspec.DecodeError:
                break  # cut off: the process was killed
            self._on_result(result)
            self._last = result.seq or self._last
        process.wait()

    def _report_failure(self, error: OSError) -> None:
        self._write(f"-- the analysis cannot be started ({error.strerror}); recording continues")

    def _report_end(self, status: int) -> None:
        """Print why the process has ended, and decide whether to leave out the record at which it did."""
        (seq,) = PROGRESS.unpack(os.pread(self._progress.fileno(), PROGRESS.size, 0))
        reason = "a record took too long" if side_process.took_too_long(status) else self._last_error()
        place = f" at record {seq}" if seq else ""
        self._write(f"-- the analysis has stopped{place}{f' ({reason})' if reason else ''}; recording continues, and "
                    "the analysis is started again")  # fmt: skip
        if self._restarts.gives_up(seq, status):
            self._skipped.append(seq)
            self._write(f"-- record {seq} is not analyzed: `puppet-inspector show` shows it")

    def _write(self, text: str) -> None:
        self._on_result(AnalysisResult(text))
