"""The manual page, from the parsers of the command line: in roff, as man(7) describes it."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

from inspector import __version__
from inspector.cli import commands
from tests.support.places import DOCS

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

PLACE = DOCS / "puppet-inspector.1"


def page() -> str:
    """The page's text."""
    return "\n".join(_lines()) + "\n"


def _lines() -> Iterator[str]:
    yield f'.TH PUPPET-INSPECTOR 1 "" "puppet-inspector {__version__}" "User Commands"'
    yield ".SH NAME"
    yield f"puppet\\-inspector \\- {_text(commands.DESCRIPTION[0].lower() + commands.DESCRIPTION[1:].rstrip('.'))}"
    yield ".SH SYNOPSIS"
    yield ".B puppet\\-inspector"
    yield "[\\fICOMMAND\\fR] [\\fIOPTION\\fR]..."
    yield ".SH DESCRIPTION"
    yield _text(commands.DESCRIPTION)
    yield ".SH OPTIONS"
    yield from (".TP", "\\fB\\-h, \\-\\-help\\fR", "Print the help; after a command, that of the command.")
    yield from (".TP", "\\fB\\-\\-version\\fR", "Print the version.")
    yield ".SH COMMANDS"
    for name in commands.COMMANDS:
        yield from _command(name)
    yield ".SH EXIT STATUS"
    for status, meaning in (
        ("0", "Success."),
        ("1", "There are findings at or above --fail-on, or what a command reports as a failure."),
        ("2", "The command line is wrong, or an input cannot be used: the message says what to do."),
        ("130", "It was ended with Ctrl-C; what was half written is removed."),
    ):
        yield from (".TP", f".B {status}", _text(meaning))
    yield ".SH ENVIRONMENT"
    for variable, meaning in (
        ("COLUMNS", "The width of the terminal, instead of its own."),
        ("NO_COLOR", "If it is not empty, nothing is coloured."),
    ):
        yield from (".TP", f".B {variable}", _text(meaning))
    yield ".SH FILES"
    yield from (
        ".TP",
        ".I captures/",
        "Where a proxy records by default, and where commands look for the newest capture.",
    )
    yield from (".TP", ".I CAPTURE.index", "Made from a capture by the terminal inspector; can be deleted at any time.")
    yield from (".TP", ".I CAPTURE.notes.json", "Marks and notes.")
    yield ".SH SEE ALSO"
    yield ".BR mitmdump (1),"
    yield ".BR puppet\\-agent (8)"


def _command(name: str) -> Iterator[str]:
    parser = commands.parser_of(name)
    actions = [action for action in parser._actions if action.dest != "help"]
    given = [action for action in actions if not action.option_strings]
    yield f'.SS "puppet\\-inspector {name}{"".join(f" {_text(_named(action))}" for action in given)}"'
    yield _text(" ".join((parser.description or "").split()))
    for action in actions:
        names = action.option_strings or [_named(action)]
        value = "" if action.nargs == 0 or not action.option_strings else f" {_named(action)}"
        yield ".TP"
        yield f"\\fB{_text(', '.join(names))}\\fR{f' \\fI{_text(value.strip())}\\fR' if value else ''}"
        yield _text((action.help or f"one of {', '.join(map(str, action.choices or ()))}").replace("%%", "%"))
    yield ".PP"
    yield "Example:"
    yield ".nf"
    yield f".RS\n{_text((parser.epilog or '').removeprefix('example: '))}\n.RE"
    yield ".fi"


def _named(action: argparse.Action) -> str:
    if action.choices and not action.metavar:
        return "|".join(map(str, action.choices))
    name = action.metavar or action.dest.upper()
    return name if isinstance(name, str) else " ".join(name)


def _text(text: str) -> str:
    """Text in which roff finds nothing to do."""
    escaped = text.replace("\\", "\\e").replace("-", "\\-").replace("`", "\\(ga").replace("'", "\\(aq")
    escaped = escaped.replace('"', "\\(dq")
    lines = textwrap.wrap(escaped, 110, break_long_words=False, break_on_hyphens=False) or [""]
    return "\n".join(f"\\&{line}" if line.startswith(".") else line for line in lines)
