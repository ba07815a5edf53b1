"""Print JSON, tables and verdicts."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from inspector.summaries import wording
from inspector.text import as_json

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from inspector.summaries.summary import RunBrief
    from inspector.summaries.whole_messages import Whole
    from inspector.summaries.wording import FixLines


def print_json(value: Any) -> None:
    print(as_json(value))


def print_rows(columns: Sequence[str], rows: Sequence[Sequence[str]], below: str = "") -> None:
    """Print an aligned table. On a terminal what does not fit is cut, and the long column ``below`` is printed as
    separate lines after the table; in a pipe every line is whole."""
    if not sys.stdout.isatty():
        lines = [columns, *rows]
        widths = [max(cell_len(line[at]) for line in lines) for at in range(len(columns))]
        for line in lines:
            print(
                "  ".join(
                    f"{cell}{' ' * (width - cell_len(cell))}" for cell, width in zip(line, widths, strict=True)
                ).rstrip()
            )
        return
    table = Table(box=None, pad_edge=False, header_style="bold", padding=(0, 2, 0, 0))
    in_table = [at for at, column in enumerate(columns) if column != below]
    for at in in_table:
        table.add_column(columns[at], no_wrap=at != in_table[-1], overflow="ellipsis" if at != in_table[-1] else "fold")
    for row in rows:
        table.add_row(*(Text(row[at]) for at in in_table))
    console = Console()
    console.print(table)
    for row in rows if below else ():
        name = f"run {row[columns.index('run')]}"
        console.print(Text(f"{name}: {row[columns.index(below)]}", style="dim"), soft_wrap=False)


def print_verdicts(
    runs: Iterable[RunBrief], printed_fixes: FixLines, whole: Whole | None = None, where: str = ""
) -> int:
    """Print the verdicts of runs, with the whole messages of their causes if ``whole`` reads them; return how many
    there are. ``where`` names the capture."""
    printed = 0
    for run in runs:
        if run.verdict is not None:
            printed += 1
            print(f"{where}run {run.number}: {run.verdict.message}")
            for line in wording.quoted(whole(run.cause_found)) if whole else ():
                print(line)
            print(*printed_fixes.of(run.steps, f"{where}run {run.number}"), sep="\n")
    return printed


def print_unanalyzed(records: Iterable[tuple[int, str]], where: str = "", *, aside: bool = False) -> None:
    """Print which records were not analyzed, and why; ``aside`` from the output."""
    for seq, reason in records:
        print(f"{where}{wording.unanalyzed(seq, reason)}", file=sys.stderr if aside else sys.stdout)
