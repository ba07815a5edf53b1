"""Trees, tables and texts of ``pages`` as plain values that a template draws, bounded."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING

from inspector.pages.content import Content
from inspector.pages.message import Body
from inspector.pages.model import ASK, Item, Table
from inspector.pages.plain import part_lines
from inspector.privacy.secrets import MASK
from inspector.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspector.pages.tabs import TabPart

MOST = 1500
"""Lines of a tree, and rows of a table."""
DEEPEST = 24
"""Levels of a tree."""
_MORE = "… {} more in the capture"


@dataclass(frozen=True, slots=True)
class Node:
    """A line of a tree."""

    text: str
    note: str = ""
    inner: tuple[Node, ...] = ()


@dataclass(frozen=True, slots=True)
class Drawing:
    """A part of a page: a tree, a table or a text, whichever is not empty."""

    title: str
    nodes: tuple[Node, ...] = ()
    heads: tuple[str, ...] = ()
    rows: tuple[tuple[str, ...], ...] = ()
    lines: tuple[str, ...] = ()
    note: str = ""
    """What is not in it."""

    @property
    def empty(self) -> bool:
        return not (self.nodes or self.rows or self.lines)


def drawing(part: TabPart) -> Drawing:
    """Return a part of a tab as plain values."""
    model = part.made()
    match model:
        case Item():
            return tree(part.title, model)
        case Table():
            return table(part.title, model)
        case Content() | Body():
            return Drawing(part.title, lines=tuple(map(clean, part_lines(part))))


def tree(title: str, root: Item) -> Drawing:
    """Return the branches of an item."""
    budget = _Budget(MOST)
    nodes = tuple(_nodes(root, budget, 0))
    return Drawing(title, nodes, note=_MORE.format("lines") if budget.left <= 0 else "")


def table(title: str, model: Table) -> Drawing:
    """Return a table's rows."""
    places = range(len(model.fields))
    rows = tuple(
        tuple(_masked(model.cell(row, at).plain) for at in places) for row in range(min(MOST, len(model.rows)))
    )
    heads = tuple(field.title for field in model.fields)
    more = len(model.rows) - len(rows)
    return Drawing(title, heads=heads, rows=rows, note=_MORE.format(f"{more:,} rows") if more else "")


@dataclass(slots=True)
class _Budget:
    """How many lines may still be drawn."""

    left: int


def _nodes(item: Item, budget: _Budget, depth: int) -> Iterator[Node]:
    for child in islice(item.items, MOST):
        if budget.left <= 0 or depth > DEEPEST:
            return
        if child.group:
            yield from _nodes(child, budget, depth)
            continue
        budget.left -= 1
        if child.branch:
            yield Node(clean(child.name), clean(child.note), tuple(_nodes(child, budget, depth + 1)))
        else:
            yield Node(_masked(child.text))


def _masked(text: str) -> str:
    return text.replace(ASK, MASK)
