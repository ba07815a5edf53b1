"""docs/decisions.md has each decision once, in its room, and its list names them all."""

from __future__ import annotations

import re
from itertools import groupby

from tests.docs.markdown import anchor
from tests.support.places import DOCS, ROOT

TEXT = (DOCS / "decisions.md").read_text(encoding="utf-8")
ENTRIES = re.findall(r"^### (\d{4}) (.+)$", TEXT, re.MULTILINE)
MOST = 60
"""More would not be read."""


def test_numbers_are_given_once() -> None:
    numbers = [number for number, _ in ENTRIES]
    (following,) = re.findall(r"Numbers are given once, the next\s+one is (\d{4})", TEXT)
    assert len(set(numbers)) == len(numbers) == len(re.findall(r"^### ", TEXT, re.MULTILINE)) <= MOST
    assert max(numbers) < following


def test_the_list_is_of_the_entries() -> None:
    headings = re.findall(r"^(#{2,3}) (.+)$", TEXT, re.MULTILINE)
    rooms: dict[str, list[str]] = {}
    for is_room, found in groupby(headings, lambda heading: heading[0] == "##"):
        titles = [title for _, title in found]
        if is_room:
            (room,) = titles
        else:
            rooms[room] = titles
    made = [f"- **{room}**: " + "; ".join(map(_linked, titles)) for room, titles in rooms.items()]
    assert [line for line in TEXT.splitlines() if line.startswith("- **")] == made


def _linked(title: str) -> str:
    number, _, name = title.partition(" ")
    return f"[{number}](#{anchor(title)}) {name}"


def test_what_is_named_elsewhere_is_there() -> None:
    known = {number for number, _ in ENTRIES}
    for path in [*DOCS.rglob("*.md"), *ROOT.glob("*.md"), ROOT / "pyproject.toml"]:
        named = re.findall(r"[Dd]ecision (\d{4})|decisions\.md#(\d{4})", path.read_text(encoding="utf-8"))
        assert {one or other for one, other in named} <= known, path
