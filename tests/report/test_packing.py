"""Blocks of data in a page."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from inspector.report.packing import Block
from tests.support.pages import ATTACK

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(st.characters(exclude_categories=["Cs"])), inner),
)


@given(VALUES)
def test_a_block_is_unpacked_as_it_was(value: object) -> None:
    assert Block.of("a", value).unpacked() == value


def test_no_character_of_a_block_has_a_meaning_in_html() -> None:
    assert re.fullmatch(r"[A-Za-z0-9+/=]+", Block.of("a", [ATTACK, "\ud800"]).data)


def test_a_block_is_the_same_each_time() -> None:
    assert Block.of("a", [1]) == Block.of("a", [1])
