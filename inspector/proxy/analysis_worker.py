"""The analysis process of a proxy: reads the capture that the proxy writes, and sends back the results.

Decoding and rules hold the interpreter's lock, for seconds if a catalog is large, and every agent would have to wait.
So the proxy only records; this process reads the capture, as `puppet-inspector follow` does. The proxy writes a line to
standard input when the capture has more records, and closes it when it ends. Each line of standard output is a JSON
value (``analysis_client.AnalysisResult``).
"""

from __future__ import annotations

import math
import mmap
import os
import select
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from inspector import rules
from inspector.analysis import limits
from inspector.errors import InspectorError
from inspector.proxy import side_process
from inspector.proxy.analysis_client import PROGRESS, AnalysisResult
from inspector.proxy.telemetry.samples import Sampler, under_way
from inspector.proxy.telemetry.spans import Spans
from inspector.summaries import filters, ruleset
from inspector.summaries.follow import DO, Follower
from inspector.text import beginning, clean

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from inspector.runs.run import Run
    from inspector.summaries.follow import PrintedLine
    from inspector.summaries.summary import RunBrief

CPU = limits.SECONDS + 10.0
"""Seconds of CPU time for a record after which the kernel ends the process. The analysis itself gives up before."""
WARNING = 400
"""Characters of a warning about the site's rules."""
UNDER_WAY = 5.0
"""Seconds between looks for what is under way."""
POLL = 1.0
"""Seconds between looks for runs that are over because their agent sends nothing more."""


class Results:
    """Makes of lines what the proxy needs to know of them."""

    def __init__(self, *, samples: bool = False, collector: str = "", begin: Callable[[], None] = lambda: None) -> None:
        """``samples``: measure records and runs too; ``collector``: send runs there, as spans. ``begin`` is called
        before what may take long."""
        self._sampler = Sampler() if samples else None
        self._spans = Spans(collector, begin) if collector else None
        self._ended: list[tuple[Run, RunBrief]] = []
        self._looked = -math.inf
        """When it looked for what is under way."""

    @property
    def end_run(self) -> Callable[[Run, RunBrief], None] | None:
        """What to call with each run that is over."""
        return (lambda run, brief: self._ended.append((run, brief))) if self._sampler or self._spans else None

    def of(self, lines: Iterable[PrintedLine]) -> Iterator[AnalysisResult]:
        """Yield the results of these lines, and of the runs that ended meanwhile."""
        for line in lines:
            if line.step is None:
                # The proxy itself reports what happens to the capture. Fixes are long: `check` and `doctor` print them.
                if (line.run or line.under_way) and not line.text.startswith(DO):
                    yield AnalysisResult(line.text, errors=list(line.trouble))
                continue
            step = line.step
            findings = [(finding.rule, str(finding.severity), finding.message) for finding in step.findings]
            samples = self._sampler.step(step) if self._sampler else []
            if self._spans:
                self._spans.step(step)
            yield AnalysisResult(line.text, step.record.seq, findings, list(step.trouble), samples)
            yield from self._ends()
        yield from self._ends()
        yield from self._exported()

    def under_way(self, follower: Follower) -> Iterator[AnalysisResult]:
        """Yield what is under way, if that is measured, every few seconds."""
        if self._sampler is None or time.monotonic() - self._looked < UNDER_WAY:
            return
        self._looked = time.monotonic()
        yield AnalysisResult("", samples=[under_way(follower.under_way, follower.present)])

    def close(self) -> Iterator[AnalysisResult]:
        """Yield what is known at last: wait a moment until the rest of the spans is sent."""
        if self._spans:
            self._spans.sender.close()
        yield from self._exported()

    def _ends(self) -> Iterator[AnalysisResult]:
        while self._ended:
            run, brief = self._ended.pop(0)
            if self._spans:
                self._spans.ended(run, brief)
            if self._sampler:
                yield AnalysisResult("", samples=self._sampler.ended(run, brief))

    def _exported(self) -> Iterator[AnalysisResult]:
        if self._spans is None:
            return
        samples, lines = self._spans.sender.report()
        for line in lines:
            yield AnalysisResult(line)
        if samples and self._sampler:
            yield AnalysisResult("", samples=[*samples])


def main(argv: list[str]) -> int:
    """Run with ``PROXY CAPTURE AFTER PROGRESS SKIPPED SAMPLES COLLECTOR RULES...``: the process number of the proxy, a
    capture, the number of its last record that was analyzed before, the descriptor of the file that holds the number of
    the record that is being analyzed, the numbers of the records to leave out, whether to measure (empty: no), where to
    send spans (empty: nowhere), and the options with the site's rules."""
    side_process.attend(int(argv[0]))
    path, after, progress = Path(argv[1]), int(argv[2]), int(argv[3])
    skipped = frozenset(int(seq) for seq in argv[4].split(",") if seq)
    limits.arm()
    begin_record = _limit(mmap.mmap(progress, PROGRESS.size))
    try:
        applied = ruleset.load_options(argv[7:], time.time())
        rules.use(applied)
        _send(AnalysisResult(f"-- {beginning(clean(warning), WARNING)}") for warning in applied.warnings)
        results = Results(samples=bool(argv[5]), collector=argv[6], begin=lambda: begin_record(0))
        follower = Follower(
            path, filters.parse(""), after=after, skipped=skipped, begin_record=begin_record, end_run=results.end_run
        )
        while _wait():
            begin_record(0)
            _send(results.of(follower.look()))
            _send(results.under_way(follower))
        _send(results.of(follower.look()))
        _send(results.of(follower.sum_up()))
        _send(results.close())
    except InspectorError as error:
        print(error, file=sys.stderr)
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _limit(progress: mmap.mmap) -> Callable[[int], None]:
    """Return the function to call with the number of each record before it is analyzed, and with 0 after the last."""

    def begin_record(seq: int) -> None:
        PROGRESS.pack_into(progress, 0, seq)
        side_process.limit(CPU)

    return begin_record


def _wait() -> bool:
    """Wait until the capture may have more records; False if the proxy has ended."""
    readable, _, _ = select.select([sys.stdin.fileno()], [], [], POLL)
    return not readable or os.read(sys.stdin.fileno(), 65536) != b""


def _send(found: Iterable[AnalysisResult]) -> None:
    for result in found:
        sys.stdout.buffer.write(msgspec.json.encode(result) + b"\n")
    sys.stdout.buffer.flush()
