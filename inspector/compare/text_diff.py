"""Texts line by line: what to take out of one and add to make the other, in the form of ``diff -u``.

Linear in the texts: two that have little in common are shown as taken out and added whole (Myers' algorithm, stopped).
"""

from __future__ import annotations

from typing import NamedTuple

MOST = 400
"""Lines taken out and added of texts of which the shortest difference is searched."""
WORK = 4_000_000
"""The product of lines and changes up to which it is searched."""
SHOWN = 300
"""Lines of a difference that are returned."""
CONTEXT = 3
WIDE = 300
"""Characters of a line that are returned."""
NO_END = "\\ No newline at end of file"


class _Edit(NamedTuple):
    mark: str
    """A space: in both; ``-``: only in the first; ``+``: only in the second."""
    before: int
    after: int
    """The number of the line in both texts, from 0."""


def unified(before: str, after: str) -> list[str]:
    """Return the difference of two texts as lines with a mark before them, in pieces with a line before each that says
    where they are. Of long differences, the first lines, and how many more there are."""
    old, new = _lines(before), _lines(after)
    edits = _edits(old, new)
    found: list[str] = []
    for begin, end in _pieces(edits):
        piece = edits[begin:end]
        removed, added = (sum(edit.mark != mark for edit in piece) for mark in "+-")
        found.append(f"@@ -{_span(piece[0].before, removed)} +{_span(piece[0].after, added)} @@")
        found += (_line(edit, old, new) for edit in piece)
    if len(found) > SHOWN:
        found[SHOWN:] = [f"... {len(found) - SHOWN:,} more lines"]
    return found


def _lines(text: str) -> list[str]:
    lines = text.split("\n")
    if lines[-1] == "":
        lines.pop()
    else:
        lines[-1] += f"\n{NO_END}"
    return lines


def _line(edit: _Edit, old: list[str], new: list[str]) -> str:
    text = new[edit.after] if edit.mark == "+" else old[edit.before]
    line, ended, note = text.partition(f"\n{NO_END}")
    if len(line) > WIDE:
        line = f"{line[:WIDE]}... ({len(line):,} characters)"
    return f"{edit.mark}{line}{f' {NO_END}' if ended else note}"


def _span(begin: int, count: int) -> str:
    return f"{begin + bool(count)}" if count == 1 else f"{begin + bool(count)},{count}"


def _pieces(edits: list[_Edit]) -> list[tuple[int, int]]:
    """Where the changes are with some lines around them, begin and end."""
    found: list[tuple[int, int]] = []
    for at, edit in enumerate(edits):
        if edit.mark == " ":
            continue
        begin, end = max(0, at - CONTEXT), min(len(edits), at + CONTEXT + 1)
        if found and begin <= found[-1][1]:
            found[-1] = found[-1][0], end
        else:
            found.append((begin, end))
    return found


def _edits(old: list[str], new: list[str]) -> list[_Edit]:
    """Return the edits that turn one list of lines into the other."""
    front = 0
    while front < min(len(old), len(new)) and old[front] == new[front]:
        front += 1
    back = 0
    while back < min(len(old), len(new)) - front and old[-1 - back] == new[-1 - back]:
        back += 1
    middle = _middle(old[front : len(old) - back], new[front : len(new) - back])
    edits = [_Edit(" ", at, at) for at in range(front)]
    edits += [_Edit(edit.mark, edit.before + front, edit.after + front) for edit in middle]
    edits += [_Edit(" ", len(old) - back + at, len(new) - back + at) for at in range(back)]
    return edits


def _middle(old: list[str], new: list[str]) -> list[_Edit]:
    steps = _steps(old, new)
    if steps is None:
        return [
            *(_Edit("-", at, 0) for at in range(len(old))),
            *(_Edit("+", len(old), at) for at in range(len(new))),
        ]
    edits: list[_Edit] = []
    x, y = len(old), len(new)
    for number in range(len(steps) - 1, -1, -1):
        reached = steps[number]
        line = _came_from(reached, x - y, number)
        begin_x = reached[line]
        begin_y = begin_x - line
        while x > begin_x and y > begin_y:
            x, y = x - 1, y - 1
            edits.append(_Edit(" ", x, y))
        if number:
            edits.append(_Edit("+", x, begin_y) if x == begin_x else _Edit("-", begin_x, y))
            x, y = begin_x, begin_y
    edits.reverse()
    return edits


def _came_from(reached: dict[int, int], line: int, number: int) -> int:
    """The diagonal from which a diagonal is reached with so many changes: by adding a line, or by taking one out."""
    adding = line == -number or (line != number and reached.get(line - 1, -1) < reached.get(line + 1, -1))
    return line + 1 if adding else line - 1


def _steps(old: list[str], new: list[str]) -> list[dict[int, int]] | None:
    """How far each diagonal leads with so many changes, before each number of changes; None if there are too many."""
    reached: dict[int, int] = {1: 0}
    steps: list[dict[int, int]] = []
    most = min(len(old) + len(new), MOST, WORK // (len(old) + len(new) + 1))
    for number in range(most + 1):
        steps.append(dict(reached))
        for line in range(-number, number + 1, 2):
            before = _came_from(reached, line, number)
            x = reached[before] + (before < line)
            y = x - line
            while x < len(old) and y < len(new) and old[x] == new[y]:
                x, y = x + 1, y + 1
            reached[line] = x
            if x >= len(old) and y >= len(new):
                return steps
    return None
