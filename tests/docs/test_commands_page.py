"""The page of options that several commands have: up to date, and each with one meaning."""

from __future__ import annotations

from tests.docs import commands_page


def test_it_is_what_the_parsers_say() -> None:
    assert commands_page.PLACE.read_text(encoding="utf-8") == commands_page.page(), "run `make docs`"


def test_each_option_of_several_commands_has_one_meaning() -> None:
    assert set(commands_page.shared()) == set(commands_page.MEANINGS)
    assert len(set(commands_page.MEANINGS.values())) == len(commands_page.MEANINGS)
