"""``help``: the same as ``--help``, and what is not there."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tests.conftest import Run


def test_a_usage_names_what_ends_the_command_line(run: Run) -> None:
    usage = run("help", "run")[1].partition("\n\n")[0]
    assert usage.endswith(" -- COMMAND")
    assert "..." not in usage


def test_help_of_a_command(run: Run) -> None:
    assert run("help", "captures", "merge") == run("captures", "merge", "--help") == run("merge", "--help")
    assert run("help", "chek") == (
        2, "", "puppet-inspector: There is no command 'chek'.\n  Did you mean `check`?\n"
    )  # fmt: skip
