"""The commands and their parsers."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

import pytest

from inspector.cli import commands

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run


def test_no_option_hides_the_function_of_its_command() -> None:
    for name in commands.COMMANDS:
        parser = argparse.ArgumentParser()
        commands.fill(parser, name)
        assert "function" not in {action.dest for action in parser._actions}, name
        assert callable(parser.get_default("function")), name


def test_options_are_those_of_the_command() -> None:
    assert "--baseline" in commands.options(commands.parser_of("check"))
    assert commands.options(commands.parser_of("")).keys() == {"-h", "--help", "--version", "--verbose"}


@pytest.mark.parametrize(
    ("words", "name", "rest"),
    [
        ("check a --json", "check", ["a", "--json"]),
        ("captures merge a b", "captures merge", ["a", "b"]),
        ("merge a b", "captures merge", ["a", "b"]),
        ("vacuum a", "captures vacuum", ["a"]),
        ("captures", "captures", []),
        ("captures ./merge", "captures", ["./merge"]),
        ("rehearse a --certificate=b", "rehearse", ["a", "--cert=b"]),
        ("tables a --closed -o b", "tables", ["a", "--shared", "-o", "b"]),
        ("fleet analyse a b --compact -o c", "tables", ["a", "b", "-o", "c"]),
        ("fleet report a", "fleet", ["report", "a"]),
        ("a.sqlite --bell", "", ["a.sqlite", "--bell"]),
        ("", "", []),
    ],
)
def test_the_command_of_a_command_line(words: str, name: str, rest: list[str]) -> None:
    assert commands.name_of(words.split()) == (name, rest)


def test_the_help_has_every_command_in_its_group(run: Run) -> None:
    status, out, _ = run("--help")
    assert (status, run("help")) == (0, (0, out, ""))
    for title, group in commands.GROUPS.items():
        listed = out.partition(f"\n{title}:\n")[2].partition("\n\n")[0]
        assert [" ".join(line.split()) for line in listed.splitlines()] == [
            f"{name} {line}" for name, line in group.items()
        ]
    assert max(len(line) for line in out.splitlines()) <= 80


def test_a_capture_is_opened_without_a_command(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[argparse.Namespace] = []

    def execute(arguments: argparse.Namespace) -> int:
        """Do nothing."""
        opened.append(arguments)
        return 0

    monkeypatch.setattr("inspector.cli.open_.execute", execute)
    (tmp_path / "a.sqlite").touch()
    for word in (tmp_path / "a.sqlite", tmp_path):
        assert run(word, "--ascii")[0] == 0
        assert (opened[-1].capture, opened[-1].ascii) == (word, True)
    status, out, err = run(tmp_path / "b.sqlite")
    assert (status, out) == (2, "")
    assert err.splitlines() == [
        f"puppet-inspector: There is no capture '{tmp_path}/b.sqlite'.",
        "  `puppet-inspector captures` lists those in captures/, with a directory those in it.",
    ]


def test_a_parsers_error_is_a_sentence_and_a_hint(run: Run) -> None:
    status, out, err = run("import")
    assert (status, out) == (2, "")
    assert err.splitlines() == [
        "puppet-inspector: `puppet-inspector import`: the following arguments are required: FILE.",
        "  See `puppet-inspector import --help`.",
    ]
