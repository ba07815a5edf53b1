"""The page of options that several commands have: up to date, and each with one meaning."""

from __future__ import annotations

from inspector.cli import commands
from tests.docs import commands_page


def test_it_is_what_the_parsers_say() -> None:
    assert commands_page.PLACE.read_text(encoding="utf-8") == commands_page.page(), "run `make docs`"


def test_each_option_of_several_commands_has_one_meaning() -> None:
    assert set(commands_page.shared()) == set(commands_page.MEANINGS)
    assert len(set(commands_page.MEANINGS.values())) == len(commands_page.MEANINGS)


def test_each_option_takes_the_same_wherever_it_is() -> None:
    """What is written depends on the command; `tap` takes several agents."""
    for option, names in commands_page.shared().items():
        actions = [commands.options(commands.parser_of(name))[option] for name in names]
        assert option == "--output" or len({action.metavar for action in actions if not action.choices}) < 2, option
        assert len({action.nargs for action in actions}) == 1, option


def test_each_command_that_reads_captures_takes_rules() -> None:
    readers = {name for names in commands_page.readers().values() for name in names}
    assert readers <= set(commands_page.shared()["--rules"]) == set(commands_page.shared()["--rules-dir"])


def test_each_command_that_may_end_with_1_says_when() -> None:
    found = commands_page.found()
    assert {"check", "doctor", "diff", "rehearse", "readiness", "auth", "replay", "fix", "rules"} <= set(found)
    for name in set(commands.COMMANDS) - set(found):
        assert "exit status is 1" not in " ".join((commands._module(name).execute.__doc__ or "").split()), name
