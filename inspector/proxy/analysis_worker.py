"""The analysis process of a proxy: reads the capture that the proxy writes, and sends back the results.

Decoding and rules hold the interpreter's lock, for seconds if a catalog is large, and every agent would have to wait.
So the proxy only records; this process reads the capture, as `puppet-inspector follow` does. The proxy writes a line to
standard input when the capture has more records, and closes it when it ends. Each line of standard output is a JSON
value (``analysis_client.AnalysisResult``).
"""

from __future__ import annotations

import mmap
import os
import select
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from inspector.analysis import limits, ruleset
from inspector.errors import InspectorError
from inspector.proxy import side_process
from inspector.proxy.analysis_client import PROGRESS, AnalysisResult
from inspector.summaries import filters
from inspector.summaries.follow import DO, Follower

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from inspector.summaries.follow import PrintedLine

CPU = limits.SECONDS + 10.0
"""Seconds of CPU time for a record after which the kernel ends the process. The analysis itself gives up before."""
POLL = 1.0
"""Seconds between looks for runs that are over because their agent sends nothing more."""


def results(lines: Iterable[PrintedLine]) -> Iterator[AnalysisResult]:
    """Yield what the proxy needs to know of these lines."""
    for line in lines:
        if line.step is None:
            # The proxy itself reports what happens to the capture. Fixes are long: `check` and `doctor` print them.
            if line.run is not None and not line.text.startswith(DO):
                yield AnalysisResult(line.text, errors=list(line.trouble))
            continue
        step = line.step
        findings = [(finding.rule, str(finding.severity), finding.message) for finding in step.findings]
        yield AnalysisResult(line.text, step.record.seq, findings, list(step.trouble))


def main(argv: list[str]) -> int:
    """Run with ``CAPTURE AFTER RULES PROXY PROGRESS SKIPPED``: a capture, the number of its last record that was
    analyzed before, a rules file (empty: none), the process number of the proxy, the descriptor of the file that holds
    the number of the record that is being analyzed, and the numbers of the records to leave out."""
    path, after, rules, proxy, progress = Path(argv[0]), int(argv[1]), argv[2], int(argv[3]), int(argv[4])
    skipped = frozenset(int(seq) for seq in argv[5].split(",") if seq)
    side_process.attend(proxy)
    limits.arm()
    chosen = ruleset.load(Path(rules), time.time()) if rules else None
    begin_record = _limit(mmap.mmap(progress, PROGRESS.size))
    follower = Follower(
        path, filters.parse(""), after=after, ruleset=chosen, skipped=skipped, begin_record=begin_record
    )
    try:
        while _wait():
            begin_record(0)
            _write(follower.look())
        _write(follower.look())
        _write(follower.sum_up(ended=True))
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


def _write(lines: Iterable[PrintedLine]) -> None:
    for result in results(lines):
        sys.stdout.buffer.write(msgspec.json.encode(result) + b"\n")
    sys.stdout.buffer.flush()
