"""Print tables: aligned where there is room for them, otherwise with wrapped cells or as paragraphs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from inspector.cli.output import SEVERITIES, columns, print_text
from inspector.summaries import wording

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from inspector.summaries.summary import RunBrief

    type Cell = str | Text
    type Line = Sequence[Text]

LAST = 10
"""Columns that the last column needs at least, if its cells are wrapped."""
GAP = 2
"""Spaces between two columns."""
INDENT = 4
OUTCOMES = {
    "complete": "green", "failed": "bold red", "refused": "bold red", "waiting": "yellow", "unfinished": "yellow"
}  # fmt: skip


def run_row(run: RunBrief) -> list[Cell]:
    """Return a run's cells for ``wording.RUN_COLUMNS``, in colour: its outcome, and the rules of its findings."""
    cells: dict[str, Cell] = {}
    cells.update(zip(wording.RUN_COLUMNS, wording.run_row(run), strict=True))
    severities = {
        found.rule: found.severity for found in sorted(run.findings, key=lambda found: found.severity.rank)
    }  # of several, the worst
    rules = [Text(rule, SEVERITIES[severities[rule]]) for rule in str(cells["findings"]).split()]
    cells["findings"] = Text(" ").join(rules)
    cells["outcome"] = Text(run.ending, OUTCOMES.get(run.ending, ""))
    return list(cells.values())


def print_rows(
    heads: Sequence[str], rows: Iterable[Sequence[Cell]], below: str = "", spare: Sequence[str] = ()
) -> None:
    """Print an aligned table. Nothing is cut: where a terminal has no room for it, the long column ``below`` is printed
    below each line, then the last column is wrapped, then columns that are to ``spare`` are left out, and at last each
    line becomes a paragraph."""
    lines = [[Text(cell) if isinstance(cell, str) else cell for cell in row] for row in rows]
    head = [Text(name, "bold") for name in heads]
    width = columns()
    if width is None or _width([head, *lines]) <= width:
        _print_table([head, *lines])
        return
    at = heads.index(below) if below else len(heads)
    within = [[*line[:at], *line[at + 1 :]] for line in (head, *lines)]
    last = min(LAST, max(line[-1].cell_len for line in within))
    for name in ("", *spare):
        place = [cell.plain for cell in within[0]].index(name) if name else len(within[0])
        within = [[*line[:place], *line[place + 1 :]] for line in within]
        room = width - _width([line[:-1] for line in within]) - GAP
        if room >= last:
            _print_table(within, room, [line[at] for line in lines] if below else ())
            return
    for line in lines:
        _print_paragraph(heads, line, width)


def _widths(lines: Sequence[Line]) -> list[int]:
    return [max(cell.cell_len for cell in column) for column in zip(*lines, strict=True)]


def _width(lines: Sequence[Line]) -> int:
    return sum(_widths(lines)) + GAP * (len(lines[0]) - 1)


def _print_table(lines: Sequence[Line], room: int | None = None, below: Sequence[Text] = ()) -> None:
    """Print lines with aligned cells, the last one wrapped if it has only some ``room``; ``below`` has what is printed
    below each line but the first."""
    widths = _widths(lines)
    before = _width([line[:-1] for line in lines]) + GAP
    for number, line in enumerate(lines):
        text = Text()
        for cell, width in zip(line[:-1], widths, strict=False):
            text.append_text(cell).append(" " * (width - cell.cell_len + GAP))
        parts = _wrapped(line[-1], room) if room else [line[-1]]
        text.append_text(Text(f"\n{' ' * before}").join(parts))
        text.rstrip()
        if below and number and room and below[number - 1].plain:
            for part in _wrapped(below[number - 1], before + room - INDENT):
                text.append(f"\n{' ' * INDENT}{part.plain}", "dim")
        print_text(text)


def _wrapped(cell: Text, width: int) -> list[Text]:
    parts = list(cell.wrap(Console(), width)) if cell.cell_len > width else [cell]
    for part in parts:
        part.rstrip()
    return parts


def _print_paragraph(heads: Sequence[str], line: Line, width: int) -> None:
    """Print a line as a paragraph: each cell with the name of its column."""
    found: list[Text] = []
    for name, cell in zip(heads, line, strict=True):
        item = Text().append(f"{name} ", "dim").append_text(cell)
        if cell.plain in ("", "-"):
            continue
        if found and found[-1].cell_len + GAP + item.cell_len <= width:
            found[-1].append(" " * GAP).append_text(item)
        else:
            margin = " " * (INDENT if found else 0)
            found += [Text(margin).append_text(part) for part in _wrapped(item, width - INDENT)]
    print_text(Text("\n").join(found))
