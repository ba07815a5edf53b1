"""The words of a record's tabs, looked for in lines that were shown."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from inspector.pages import plain
from inspector.pages.content import Content, dump, read
from inspector.pages.message import Body
from inspector.pages.model import Item, Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inspector.pages.tabs import Model, Tab


def words(model: Model) -> Iterator[tuple[str, ...]]:
    """What the first lines of a part say, each as the pieces that stand on it in this order."""
    match model:
        case Item():
            yield from itertools.islice(((item.text,) for item in opened(model.items)), plain.LINES)
        case Table():
            yield tuple(field.title for field in model.fields) if model.rows else (model.empty,)
            for row in range(min(plain.LINES, len(model.rows))):
                yield tuple(model.cell(row, column).plain.rstrip() for column in range(len(model.fields)))
        case Content(hexed=False):
            yield from ((read(line),) for line in model.data.split(b"\n")[: plain.LINES])
        case Content():
            places = range(0, min(len(model.data), plain.LINES * plain.PER), plain.PER)
            yield from ((dump(model, begin, plain.PER).plain,) for begin in places)
        case Body():
            content = model.content(model.mode)
            yield (content.title,)
            yield from words(content)


def opened(items: Sequence[Item]) -> Iterator[Item]:
    for item in items:
        if not item.group:
            yield item
        if item.branch:
            yield from opened(item.items)


def same_words(shown: Sequence[str], found: Sequence[Tab]) -> int:
    """How many of the tabs' words were looked for; they stand in these lines, in the same order."""
    waiting, number = iter(shown), 0
    for tab in found:
        for part in tab.parts if tab.name != "Explain" else ():
            head = tab.name if part.title == tab.name else f"{tab.name}: {part.title}"
            for pieces in [(head,), *words(part.make())]:
                assert any(stands(pieces, line) for line in waiting), (tab.name, part.title, pieces)
                number += len(pieces)
    return number


def stands(pieces: Sequence[str], line: str) -> bool:
    at = 0
    for piece in pieces:
        output = piece.replace("press x to show it", "show it with x in `puppet-inspector open`").rstrip()[
            : plain.LONGEST
        ]
        found = line.find(output, at)
        if found < 0:
            return False
        at = found + len(output)
    return True
