"""What a record's pages say, line by line as they are searched: for whoever looks for a proof in them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from inspector.pages.content import Content
from inspector.pages.model import Item, Table
from inspector.proof import Page

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inspector.pages.tabs import Tab, TabPart


def pages(tabs: Sequence[Tab]) -> list[Page]:
    """What a record means, and its TLS."""
    return [
        Page("meaning" if tab.name == "Meaning" else "tls", part.title.lower(), partial(_lines, part))
        for tab in tabs
        if tab.name in ("Meaning", "TLS")
        for part in tab.parts
    ]


def _lines(part: TabPart) -> Iterator[str]:
    match part.made():
        case Item() as root:
            waiting = [root]
            while waiting:
                item = waiting.pop()
                if item is not root and not item.group:
                    yield item.text
                if item.branch:
                    waiting += reversed(item.items)
        case Table() as table:
            for row in range(len(table.rows)):
                yield "  ".join(table.cell(row, column).plain for column in range(len(table.fields)))
        case Content() as content:
            yield from content.data.decode("utf-8", "replace").split("\n")
