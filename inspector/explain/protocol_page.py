"""Sections of docs/protocol.md, the page that rules and endpoints cite, as plain text."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, NamedTuple

from inspector import regex
from inspector.errors import InspectorError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_CITATION = regex.compile(r"(?:(?:docs/)?protocol\.md)?#([\w-]+)|(?:docs/)?protocol\.md")
_HEADING = regex.compile(r"(#+) (.+)")
_ENTRY = regex.compile(r'- <a id="([^"]+)"></a>\*\*(.+?)\*\*: ')
"""A list entry with an anchor of its own: an endpoint."""
_LINK = regex.compile(r"\[([^\]]+)\]\(([^)]+)\)")


class Section(NamedTuple):
    """A section of the page, or a list entry with an anchor."""

    anchor: str
    title: str
    text: str


def cited_anchor(what: str) -> str | None:
    """Return the anchor of a citation (``docs/protocol.md#crls`` or ``#crls``), "contents" for the page alone.

    None for anything else.
    """
    found = _CITATION.fullmatch(what.strip())
    return (found[1] or "contents") if found else None


def section(page: str, anchor: str) -> Section:
    """Return the section at an anchor, up to the next heading of its level or above.

    Raises InspectorError if the page has no such anchor.
    """
    lines = page.splitlines()
    places = list(_places(lines))
    for index, (found, title, line, level) in enumerate(places):
        if found and found == anchor.lower():
            end = next((place.line for place in places[index + 1 :] if place.level <= level), len(lines))
            return Section(found, title, _plain(lines[line:end]))
    near = difflib.get_close_matches(anchor.lower(), [place.anchor for place in places if place.anchor], 3)
    raise InspectorError(
        f"docs/protocol.md has no section {anchor!r}.",
        f"Did you mean {' or '.join(f"'#{name}'" for name in near)}?" if near else "`explain '#contents'` lists them.",
    )


class _Start(NamedTuple):
    """Where a section or an entry starts; a blank line, which ends an entry, has no anchor."""

    anchor: str
    title: str
    line: int
    level: int


_ENTRY_LEVEL = 7
"""Below every heading."""


def _places(lines: list[str]) -> Iterator[_Start]:
    for number, line in enumerate(lines):
        if heading := _HEADING.fullmatch(line):
            yield _Start(_slug(heading[2]), heading[2], number, len(heading[1]))
        elif entry := _ENTRY.match(line):
            yield _Start(entry[1], entry[2], number, _ENTRY_LEVEL)
        elif not line:
            yield _Start("", "", number, _ENTRY_LEVEL)


def _slug(heading: str) -> str:
    """Return the anchor of a heading, as Git hosts make it."""
    return regex.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def _plain(lines: list[str]) -> str:
    """Return what follows a section's heading or an entry's name, without marks of Markdown."""
    if entry := _ENTRY.match(lines[0]):
        return _unmarked([lines[0][entry.end() :], *(line.removeprefix("  ") for line in lines[1:])])
    return _unmarked(_HEADING.sub(r"\2", line) for line in lines[1:])


def _unmarked(lines: Iterable[str]) -> str:
    text = regex.sub(r'<a id="[^"]+"></a>', "", "\n".join(lines))
    text = regex.sub(r"\*\*(.+?)\*\*", r"\1", text)
    return _LINK.sub(r"\1 (\2)", text).strip()
