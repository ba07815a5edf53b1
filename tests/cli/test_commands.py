"""The commands and their parsers."""

from __future__ import annotations

import argparse

from inspector.cli import commands


def test_no_option_hides_the_function_of_its_command() -> None:
    for name in commands.COMMANDS:
        parser = argparse.ArgumentParser()
        commands.fill(parser, name)
        assert "function" not in {action.dest for action in parser._actions}, name
        assert callable(parser.get_default("function")), name


def test_only_the_module_of_the_command_is_read() -> None:
    parser, command = commands.parser_of("check")
    assert "--baseline" in commands.options(command)
    assert commands.options(parser).keys() == {"-h", "--help", "--version", "--verbose"}
    other, default = commands.parser_of("")
    assert other is default
