"""Show how far long work is: one bar with the time left, for all commands."""

from __future__ import annotations

import contextlib
import sys
import time
from typing import TYPE_CHECKING

from inspector import progress

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console
    from rich.progress import Progress, TaskID

    from inspector.progress import Watch

AFTER = 1.0
"""Seconds for which nothing is shown."""
INTERVAL = 0.1
"""Seconds between two pictures."""
NARROW = 70
"""Columns of a terminal on which there is no room for a bar beside the words."""


@contextlib.contextmanager
def shown(console: Console | None = None, *, after: float = AFTER) -> Iterator[Watch]:
    """Show how far the work within is, if it takes more than ``after`` seconds: on the terminal (standard error, or
    ``console``), and nowhere else. The bar is gone at the end, whatever the end is."""
    if console is None:
        if not sys.stderr.isatty():
            yield progress.unwatched
            return
        from rich.console import Console

        console = Console(stderr=True, force_terminal=True)
    if not console.is_terminal:
        yield progress.unwatched
        return
    bar = _Bar(console, after)
    try:
        yield bar
    finally:
        bar.erase()


def beside_output(watch: Watch) -> Watch:
    """Return the watch for work whose output is printed meanwhile: none, on a terminal that shows the output."""
    return progress.unwatched if sys.stdout.isatty() else watch


class _Bar:
    """A watch that draws. It has no thread: what is drawn is drawn when the work reports."""

    def __init__(self, console: Console, after: float) -> None:
        self._console = console
        self._due = time.monotonic() + after
        self._what = ""
        self._drawn: Progress | None = None
        self._task: TaskID | None = None

    def __call__(
        self,
        done: int,
        total: int,
        what: str = progress.READING,
        written: Callable[[int], str] = progress.number,
        /,
    ) -> None:
        now = time.monotonic()
        if done >= total:
            self.erase()
        if done >= total or now < self._due:
            return
        self._due = now + INTERVAL
        text = f"{what} {written(done)} of {written(total)}"
        drawn = self._drawn or self._begun()
        if self._task is not None and what == self._what:
            drawn.update(self._task, completed=done, total=total, description=text)
        else:  # each step takes its own time
            if self._task is not None:
                drawn.remove_task(self._task)
            self._what, self._task = what, drawn.add_task(text, completed=done, total=total)
        drawn.refresh()

    def _begun(self) -> Progress:
        from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn
        from rich.table import Column

        words = TextColumn("{task.description}", markup=False, table_column=Column(no_wrap=True))
        left = TimeRemainingColumn(compact=True, table_column=Column(no_wrap=True, min_width=5))
        wide = self._console.width >= NARROW
        picture = [BarColumn(), TaskProgressColumn()] if wide else []
        unit = [TextColumn("left")] if wide else []
        self._drawn = Progress(
            words, *picture, left, *unit,
            console=self._console, transient=True, auto_refresh=False, redirect_stdout=False,
        )  # fmt: skip
        self._drawn.start()
        return self._drawn

    def erase(self) -> None:
        """Erase it; further work draws it again."""
        if self._drawn is not None:
            self._drawn.stop()
            self._drawn = self._task = None
