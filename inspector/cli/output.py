"""How commands print: JSON, tables, verdicts, progress."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.table import Table
from rich.text import Text

from inspector.summaries import wording

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from inspector.runs.run import Run


def print_json(value: Any) -> None:
    print(wording.as_json(value))


def print_rows(columns: Sequence[str], rows: Sequence[Sequence[str]], below: str = "") -> None:
    """A table: drawn on a terminal, tab-separated in a pipe. The long column ``below`` gets lines of its own."""
    if not sys.stdout.isatty():
        print("\t".join(columns))
        for row in rows:
            print("\t".join(row))
        return

    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    shown = [at for at, column in enumerate(columns) if column != below]
    for at in shown:
        table.add_column(columns[at], no_wrap=at != shown[-1], overflow="ellipsis" if at != shown[-1] else "fold")
    for row in rows:
        table.add_row(*(Text(row[at]) for at in shown))
    console = Console()
    console.print(table)
    for row in rows if below else ():
        console.print(Text(f"run {row[0]}: {row[columns.index(below)]}", style="dim"), soft_wrap=False)


def print_verdicts(runs: Iterable[Run]) -> int:
    """Returns how many there are."""

    told = 0
    for run in runs:
        if (verdict := wording.verdict(run)) is not None:
            told += 1
            print(f"run {run.number}: {verdict[0]}")
            print(f"  do: {verdict[1]}")
    return told


def progress(line: str) -> None:
    """Say on a terminal why it takes a while; what is printed is not mixed with it."""
    if sys.stderr.isatty():
        print(line, file=sys.stderr)
