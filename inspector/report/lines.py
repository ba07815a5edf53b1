"""The lines of a comparison as a page: what ``diff`` and ``rehearse`` print."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from inspector.report.page import rendered

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inspector.compare.diff_lines import Line, Sort

_TEXT: frozenset[Sort] = frozenset({"hunk", "old", "new", "same"})
"""Lines of a text."""


class Group(NamedTuple):
    """Lines below a heading, which may be empty."""

    title: str
    blocks: list[tuple[bool, list[Line]]]
    """In turn, lines and those of texts."""


def html(lines: Iterable[Line], title: str, note: str) -> str:
    """Return a page with these lines; ``note`` says what was withheld."""
    return rendered("lines.html.j2", title=title, groups=groups(lines), note=note)


def groups(lines: Iterable[Line]) -> list[Group]:
    """Return lines by their headings."""
    made: list[tuple[str, list[Line]]] = []
    for line in lines:
        if line.sort == "head":
            made.append((line.text.strip(), []))
        elif line.text.strip():
            if not made:
                made.append(("", []))
            made[-1][1].append(line)
    return [
        Group(head, [(text, list(block)) for text, block in groupby(found, lambda line: line.sort in _TEXT)])
        for head, found in made
    ]
