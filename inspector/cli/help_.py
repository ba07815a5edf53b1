"""``puppet-inspector help``: print the help of the program or of a command."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.cli import commands
from inspector.errors import InspectorError

if TYPE_CHECKING:
    import argparse

EXAMPLE = "puppet-inspector help check"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("command", nargs="*", help="the command (default: all commands, in groups)")


def execute(arguments: argparse.Namespace) -> int:
    """Print the help of a command, or the commands in groups."""
    name, rest = commands.name_of(arguments.command)
    if rest:
        raise InspectorError(f"There is no command {' '.join(rest)!r}.", commands.near(rest[0]))
    commands.parser_of(name).print_help()
    return 0
