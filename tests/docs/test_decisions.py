"""docs/decisions.md is numbered, newest last, and its index says of each what its entry says."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import NamedTuple

from tests.docs.markdown import anchor
from tests.support.places import DOCS


class Decision(NamedTuple):
    number: str
    title: str
    date: str
    status: str


TEXT = (DOCS / "decisions.md").read_text(encoding="utf-8")
ENTRIES = [
    Decision(*found.groups())
    for found in re.finditer(r"^## (\d{4}) (.+)\n\n\*(\d{4}-\d\d-\d\d), (.+)\*$", TEXT, re.MULTILINE)
]


def test_entries_are_numbered_and_the_newest_is_last() -> None:
    assert [int(entry.number) for entry in ENTRIES] == list(range(1, len(ENTRIES) + 1))
    assert len(ENTRIES) == len(re.findall(r"^## ", TEXT, re.MULTILINE))
    assert all(before.date <= after.date for before, after in pairwise(ENTRIES))


def test_a_decision_holds_or_names_a_later_one() -> None:
    for entry in ENTRIES:
        found = re.fullmatch(r"holds|superseded by (\d{4})", entry.status)
        assert found, entry
        if later := found[1]:
            assert entry.number < later <= ENTRIES[-1].number


def test_the_index_is_of_the_entries() -> None:
    rows = [line for line in TEXT.splitlines() if line.startswith("| [")]
    made = [
        f"| [{entry.number}](#{anchor(f'{entry.number} {entry.title}')}) | {entry.title} | {entry.status} |"
        for entry in ENTRIES
    ]
    assert rows == made
