"""The analysis process of a proxy: reads the capture that the proxy writes, and sends back the results.

Decoding and rules hold the interpreter's lock, for seconds if a catalog is large, and every agent would have to wait.
So the proxy only records; this process reads the capture, as `puppet-inspector follow` does. The proxy writes a line to
standard input when the capture has more records, and closes it when it ends. Each line of standard output is a JSON
value (``analysis_client.AnalysisResult``).
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from inspector.analysis import ruleset
from inspector.errors import InspectorError
from inspector.proxy.analysis_client import AnalysisResult
from inspector.summaries import filters
from inspector.summaries.follow import DO, Follower

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from inspector.summaries.follow import PrintedLine

POLL = 1.0
"""Seconds between looks for runs that are over because their agent sends nothing more."""
NICE = 5
"""The proxy, and with it the agents, have priority."""


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
    """Run with ``CAPTURE AFTER RULES``: a capture, the number of its last record that was analyzed before, and a rules
    file (empty: none)."""
    path, after, rules = Path(argv[0]), int(argv[1]), argv[2]
    # The proxy handles Ctrl-C: it ends in order and closes our input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        os.nice(NICE)
    chosen = ruleset.load(Path(rules), time.time()) if rules else None
    follower = Follower(path, filters.parse(""), after=after, ruleset=chosen)
    try:
        while _wait():
            _write(follower.look())
        _write(follower.look())
        _write(follower.sum_up(ended=True))
    except InspectorError as error:
        print(error, file=sys.stderr)
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _wait() -> bool:
    """Wait until the capture may have more records; False if the proxy has ended."""
    readable, _, _ = select.select([sys.stdin.fileno()], [], [], POLL)
    return not readable or os.read(sys.stdin.fileno(), 65536) != b""


def _write(lines: Iterable[PrintedLine]) -> None:
    for result in results(lines):
        sys.stdout.buffer.write(msgspec.json.encode(result) + b"\n")
    sys.stdout.buffer.flush()
