"""Understands what a proxy records, and tells it: a process of the proxy's own.

Decoding and rules would hold the interpreter's lock, for seconds where a catalog is large, and every agent would wait.
So the proxy only records; this process reads the capture, as `puppet-inspector follow` does. The proxy writes a line to
our standard input when there is more to read, and closes it when it ends. We write a JSON value a line
(``commentary.Told``).
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
from inspector.proxy.analysis_client import Told
from inspector.summaries import filters
from inspector.summaries.follow import DO, Follower

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from inspector.summaries.follow import Line

PATIENCE = 1.0
"""Seconds after which a run may have fallen silent, though nothing more was recorded."""
NICE = 5
"""Agents come first."""


def tell(lines: Iterable[Line]) -> Iterator[Told]:
    """What the proxy has to know of these lines."""
    for line in lines:
        if line.step is None:
            # What became of the capture the proxy knows, and says itself. What to do is long: `doctor` says it.
            if line.run is not None and not line.text.startswith(DO):
                yield Told(line.text, trouble=list(line.trouble))
            continue
        step = line.step
        findings = [(each.rule, str(each.severity), each.message) for each in step.findings]
        yield Told(line.text, step.record.seq, findings, list(step.trouble))


def main(argv: list[str]) -> int:
    """``CAPTURE AFTER RULES``: a capture, the number of its last record that is known already, and a file with rules
    (empty: none)."""
    path, after, rules = Path(argv[0]), int(argv[1]), argv[2]
    # Ctrl-C is for the proxy, which ends in order and closes our input.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    with contextlib.suppress(OSError):
        os.nice(NICE)
    chosen = ruleset.load(Path(rules), time.time()) if rules else None
    follower = Follower(path, filters.parse(""), after=after, ruleset=chosen)
    try:
        while _more():
            _say(follower.look())
        _say(follower.look())
        _say(follower.sum_up(ended=True))
    except InspectorError as error:
        print(error, file=sys.stderr)
        return 2
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def _more() -> bool:
    """Wait until there may be more to say; False if the proxy has ended."""
    heard, _, _ = select.select([sys.stdin.fileno()], [], [], PATIENCE)
    return not heard or os.read(sys.stdin.fileno(), 65536) != b""


def _say(lines: Iterable[Line]) -> None:
    for each in tell(lines):
        sys.stdout.buffer.write(msgspec.json.encode(each) + b"\n")
    sys.stdout.buffer.flush()
