"""Show how far the reading of a capture is, and read the whole messages behind findings."""

from __future__ import annotations

import contextlib
import time
from typing import TYPE_CHECKING

from rich.console import Console

from inspector.capture.store import Capture
from inspector.summaries import whole_messages

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from rich.progress import Progress

    from inspector.model import Finding

STRIDE = 100
"""Records between two looks at the clock."""


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
