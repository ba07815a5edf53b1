"""The commands and their parsers.

To add a command, add a module with ``EXAMPLE``, ``add_arguments`` and ``execute`` to this package, and a line to
``GROUPS``. Only the module of the command that is called is imported, and it imports what only some of its calls need
where that is used: a start is what people wait for most often (tests/cli/test_start.py counts).
"""

from __future__ import annotations

import argparse
import importlib
from typing import TYPE_CHECKING, NoReturn, Protocol, cast

from inspector.errors import InspectorError

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

GROUPS = {
    "record": {
        "run": "run this host's agent once through the proxy",
        "proxy": "run the proxy between agents and their master",
        "tap": "record what all agents of this host's master do, for a while",
        "demo": "play a node that gets no certificate, and its fix, in a lab",
        "follow": "print the lines of a capture while a proxy writes it",
        "provision": "get a certificate for the proxy that agents trust",
        "addon": "print the path of the mitmproxy addon",
    },
    "look": {
        "open": "browse a capture in the terminal: `puppet-inspector CAPTURE`",
        "runs": "list the runs of a capture",
        "list": "list the exchanges of a capture, one line each",
        "show": "show one record in full",
        "bootstrap": "explain how an agent got its certificate, step by step",
        "puppetdb": "show what masters asked of PuppetDB, and for which runs",
        "why": "show why a resource changed, failed or stayed as it was",
    },
    "diagnose": {
        "check": "report what deviates from the protocol, why, and how to fix it",
        "doctor": "diagnose a capture, a directory or a live master",
        "explain": "explain an error message, a rule or an endpoint",
        "auth": "show which rule of an auth.conf allows or denies requests",
        "certificates": "list what ends when, or who breaks if a certificate is revoked",
        "fix": "repair a CA's CRLs: show what would be written, or write it",
    },
    "compare and rehearse": {
        "diff": "show what is different between two runs",
        "readiness": "list what a newer version removed or changed that was recorded",
        "rehearse": "ask another master for recorded agents' catalogs, and compare",
        "replay": "answer a real agent like the master of a recorded run",
    },
    "pass on": {
        "report": "write one HTML file: what failed, why, and what to do",
        "share": "copy a capture without secrets and names; findings stay",
        "reduce": "make the smallest capture that still shows a finding",
        "export": "export a capture for other tools: mitmproxy flows, HAR, jsonl",
        "import": "create a capture from mitmproxy flows, HAR or jsonl",
    },
    "fleet": {
        "tables": "turn captures of many proxies into tables, and compare them",
        "fleet": "write one HTML file of what a fleet's tables show",
        "sql": "ask tables or captures in SQL, or a named query",
    },
    "maintain": {
        "captures": "list the captures in a directory: time, size, agents, findings",
        "captures merge": "merge several captures into one",
        "captures vacuum": "make a capture as small as possible",
        "rules": "test a site's own rules",
        "completion": "print what makes a shell complete commands and options",
        "help": "print this help, or that of a command",
    },
}
"""The commands by what they are for, in the order of the help, each with its line there. A command of two words belongs
to that of the first one."""
COMMANDS = {name: line for commands in GROUPS.values() for name, line in commands.items()}
FORMER = {"merge": "captures merge", "vacuum": "captures vacuum", "fleet analyse": "tables"}
"""Names that commands had before, and still answer to."""
FORMER_OPTIONS = {
    "rehearse": {"--certificate": "--cert"}, "tables": {"--closed": "--shared", "--compact": ""},
    "tap": {"--for": "--during"},
}  # fmt: skip
"""The same of options, by command; empty: it is what the command does without."""
LISTED = 8
"""Commands that a hint names."""
DEFAULT = "open"
"""The command that runs if none is named."""
DESCRIPTION = "Record and explain what Puppet or OpenVox agents and their master exchange."
STEPS = """\
first steps:
  puppet-inspector demo                    a failing node and its fix, in a lab
  puppet-inspector run -- puppet agent -t  run this host's agent once, recorded
  mitmdump -s "$(puppet-inspector addon)"  proxy between agents and their master
  puppet-inspector explain 'A RED LINE'    explain an error message
  puppet-inspector CAPTURE                 look at what was recorded
  puppet-inspector check CAPTURE           what was wrong, and how to fix it
"""
STATUS = """\
exit status: 0 all is well, 1 the command found what is not in order (a finding,
a difference, a refusal: see its help), 2 wrong usage or unusable input (see the
message), 130 ended with Ctrl-C. `run` ends with that of the agent.
"""


class _Formatter(argparse.HelpFormatter):
    """A formatter that names what ends a command line: argparse writes ``...``."""

    def _format_args(self, action: argparse.Action, default_metavar: str) -> str:
        if action.nargs == argparse.REMAINDER and isinstance(action.metavar, str):
            return action.metavar
        return super()._format_args(action, default_metavar)


class Parser(argparse.ArgumentParser):
    """A parser whose errors are a sentence and a hint, as all others are."""

    def error(self, message: str) -> NoReturn:
        raise InspectorError(f"`{self.prog}`: {message}.", f"See `{self.prog} --help`.")


class Command(Protocol):
    """What a module of this package provides for the command of its name."""

    EXAMPLE: str
    """A short command line, for the end of the command's help."""

    def add_arguments(self, parser: argparse.ArgumentParser, /) -> None:
        """Add the command's options and arguments."""

    def execute(self, arguments: argparse.Namespace, /) -> int:
        """Run the command; return the exit status. The docstring is the command's description in its help."""


def name_of(command_line: Sequence[str]) -> tuple[str, list[str]]:
    """Return the command that a command line begins with, empty for none, and its words."""
    first, rest = next(iter(command_line), ""), list(command_line[1:])
    if rest and f"{first} {rest[0]}" in FORMER:
        first, rest = f"{first} {rest[0]}", rest[1:]
    name = FORMER.get(first, first)
    if rest and f"{name} {rest[0]}" in COMMANDS:
        name, rest = f"{name} {rest[0]}", rest[1:]
    if name not in COMMANDS:
        return "", list(command_line)
    former = FORMER_OPTIONS.get(name, {})
    words = [former.get(option, option) + equals + value for option, equals, value in map(_parts, rest)]
    return name, [word for word, given in zip(words, rest, strict=True) if word or not given]


def _parts(word: str) -> tuple[str, str, str]:
    return word.partition("=")


def parser_of(name: str) -> argparse.ArgumentParser:
    """Return the parser of a command's words, or of a command line without a command: only the command's module is
    imported."""
    if name:
        parser = Parser(f"puppet-inspector {name}", formatter_class=_Formatter)
        fill(parser, name)
        return parser
    parser = Parser(
        "puppet-inspector",
        usage="puppet-inspector COMMAND ...\n       puppet-inspector CAPTURE",
        description=f"{DESCRIPTION}\n\n{STEPS}",
        epilog=f"{_list()}\n{STATUS}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    parser.add_argument("--verbose", action="store_true", help="with --version: also what a bug report needs")
    parser.set_defaults(function=importlib.import_module("inspector.cli.version").execute)
    return parser


def _list() -> str:
    """The commands in their groups, each with its line."""
    lines = []
    for title, commands in GROUPS.items():
        lines += [f"{title}:", *(f"  {name:<15} {line}" for name, line in commands.items()), ""]
    return "\n".join(lines)


def fill(parser: argparse.ArgumentParser, name: str) -> None:
    """Give a command's parser its arguments and its help."""
    module = _module(name)
    parser.description = (module.execute.__doc__ or COMMANDS[name]).split("\n\n")[0]
    parser.epilog = f"example: {module.EXAMPLE}"
    parser.set_defaults(function=module.execute)
    module.add_arguments(parser)


def _module(name: str) -> Command:
    # A keyword of Python, or the name of a builtin, gets an underscore.
    file = name.rpartition(" ")[2]
    file = f"{file}_" if file in ("help", "import", "list", "open") else file
    return cast("Command", importlib.import_module(f"inspector.cli.{file}"))


def options(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """Return the options of a parser by each of their names."""
    return {name: action for action in parser._actions for name in action.option_strings}


def near(word: str) -> str:
    """A hint for a command that does not exist."""
    return nearest(word, [*COMMANDS, *FORMER]) or "`puppet-inspector --help` lists the commands."


def nearest(word: str, known: Iterable[str]) -> str:
    """A hint with the names most like a word; empty if none is."""
    import difflib

    names = {name.lstrip("-"): name for name in known}  # all options are alike in their dashes
    word = word.lstrip("-")
    found = difflib.get_close_matches(word, names, 2)
    ratios = [difflib.SequenceMatcher(None, name, word).ratio() for name in found]
    found = [names[name] for name, ratio in zip(found, ratios, strict=True) if ratio == ratios[0]]
    return f"Did you mean {' or '.join(f'`{name}`' for name in found)}?" if found else ""


def near_option(option: str, parser: argparse.ArgumentParser) -> str:
    """A hint for an option that a command does not have: the one most like it, or the commands that have it; empty if
    there is neither."""
    if hint := nearest(option, options(parser)):
        return hint
    others = [f"`{name}`" for name in COMMANDS if option in options(parser_of(name))]
    rest = [f"{len(others) - LISTED} more"] if len(others) > LISTED else []
    return f"These commands have it: {', '.join([*others[:LISTED], *rest])}." if others else ""
