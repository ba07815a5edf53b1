"""Read and analyze captures from beginning to end."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import time
from typing import TYPE_CHECKING

from rich.console import Console

from inspector.analysis.analyzer import Analyzer
from inspector.capture.store import Capture
from inspector.runs.history import Ledger
from inspector.summaries import whole_messages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from pathlib import Path

    from rich.progress import Progress

    from inspector.analysis.analyzer import Step
    from inspector.analysis.ruleset import Ruleset
    from inspector.model import Finding
    from inspector.runs.run import Run

STRIDE = 100
"""Records between two looks at the clock."""


def analyze(capture: Path, on_step: Callable[[Step], None]) -> Analyzer:
    """Analyze a capture, and call ``on_step`` with every step. Raises CaptureError."""
    analyzer = Analyzer()
    with Capture.open(capture) as records:
        for record in shown(records.records(), records.count()):
            on_step(analyzer.feed(record))
    analyzer.finish()
    return analyzer


def shown[T](items: Iterable[T], total: int, console: Console | None = None, *, after: float = 1) -> Iterator[T]:
    """Yield items, with a bar and the time left on the terminal (standard error, or ``console``) if that takes more
    than ``after`` seconds. The bar is gone at the end."""
    console = console or Console(stderr=True)
    if not console.is_terminal:
        yield from items
        return
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        bar: Progress | None = None
        for at, item in enumerate(items):
            if at % STRIDE == 0:
                if bar is None and time.monotonic() - began >= after:
                    from rich.progress import Progress, TimeRemainingColumn

                    bar = stack.enter_context(
                        Progress(
                            "reading record {task.completed:,} of {task.total:,}",
                            *Progress.get_default_columns()[1:3],
                            TimeRemainingColumn(),
                            console=console,
                            transient=True,
                        )
                    )
                    task = bar.add_task("", total=total)
                if bar is not None:
                    bar.update(task, completed=at)
            yield item


def whole_message(capture: Path, finding: Finding | None) -> str | None:
    """Return the whole message behind a finding; None if its evidence contains none. Raises CaptureError."""
    with Capture.open(capture) as records:
        return whole_messages.of_finding(finding, records)


def analyze_together(
    captures: Sequence[Path], ruleset: Ruleset
) -> tuple[list[tuple[Path, Run]], list[tuple[Path, int, str]]]:
    """Return the runs of several captures, and the records that were not analyzed, each with the reason. They are
    analyzed with one ledger: some findings need records of several captures.

    Raises CaptureError.
    """
    ledger = Ledger()
    analyzers = [Analyzer(ruleset.rules, ruleset.ignores, ledger) for _ in captures]
    with contextlib.ExitStack() as stack:
        opened = [stack.enter_context(Capture.open(path)) for path in captures]
        streams = [
            zip(itertools.repeat(analyzer), capture.records())
            for analyzer, capture in zip(analyzers, opened, strict=True)
        ]
        merged = heapq.merge(*streams, key=lambda pair: pair[1].ended)
        for analyzer, record in shown(merged, sum(capture.count() for capture in opened)):
            analyzer.feed(record)
    pairs = list(zip(captures, analyzers, strict=True))
    runs = [(path, run) for path, analyzer in pairs for run in analyzer.finish()]
    return runs, [(path, seq, reason) for path, analyzer in pairs for seq, reason in analyzer.unanalyzed.items()]
