"""Where in a record's tabs the evidence of a finding is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from inspector import regex
from inspector.pages.content import Content
from inspector.pages.message import Body
from inspector.pages.model import Item, Table, find

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from inspector.model import Place
    from inspector.pages.tabs import Tab, TabPart


def locate(places: Iterable[Place], tabs: Sequence[Tab]) -> Place | None:
    """Return the first place that exists in these tabs, with the title of its part.

    If no needle is found, the first place whose tab exists. None if no tab exists.
    """
    found: Place | None = None
    for place in places:
        for tab in tabs:
            if tab.name.lower() != place.tab:
                continue
            parts = [part for part in tab.parts if place.part in ("", part.title.lower())]
            for part in parts:
                if needle := next((text for text in (place.needle, place.fallback) if contains(part, text)), ""):
                    return replace(place, part=part.title.lower(), needle=needle)
            if found is None:
                found = replace(place, part=parts[0].title.lower() if parts else "", needle="", fallback="")
    return found


def contains(part: TabPart, text: str) -> bool:
    """Whether a part shows a text, as its search would find it; False for the empty text."""
    if not text:
        return False
    model = part.made()
    if isinstance(model, Body):
        model = model.content(model.mode)
    match model:
        case Item():
            return find(model, text) is not None
        case Table():
            columns = range(len(model.fields))
            rows = ("  ".join(model.cell(row, column).plain for column in columns) for row in range(len(model.rows)))
            return any(text.casefold() in row.casefold() for row in rows)
        case Content():
            return bool(regex.search(regex.escape(text.encode("utf-8", "replace")), model.data, regex.IGNORECASE))
