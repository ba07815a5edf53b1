"""The commands and their parsers.

To add a command, add a module with ``EXAMPLE``, ``add_arguments`` and ``execute`` to this package, and a line to
``COMMANDS``.
"""

from __future__ import annotations

import argparse
import importlib
from typing import Protocol, cast

COMMANDS = {
    "open": "browse a capture in the terminal (the default command)",
    "demo": "record an embedded lab and print what happened",
    "proxy": "run the proxy between agents and their master",
    "run": "run this host's agent once through the proxy",
    "tap": "record what all agents of this host's master do, for a while",
    "runs": "list the runs of a capture",
    "list": "list the exchanges of a capture, one line each",
    "follow": "print the lines of a capture while a proxy writes it, until Ctrl-C",
    "show": "show one record in full",
    "check": "report what deviates from the protocol, why, and how to fix it",
    "diff": "show what is different between two runs",
    "why": "show why a resource changed, failed or stayed as it was",
    "doctor": "diagnose a capture, a directory or a live master",
    "replay": "answer a real agent like the master of a recorded run",
    "rehearse": "ask another master for the catalogs of recorded agents, and compare",
    "auth": "show which rule of an auth.conf allows or denies requests",
    "rules": "test a site's own rules",
    "readiness": "list what a newer version removed or changed that was recorded",
    "fix": "repair a CA's CRLs: show what would be written, or write it",
    "bootstrap": "explain how an agent got its certificate, step by step",
    "report": "write one HTML file that answers what failed, why, and what to do",
    "export": "export a capture for other tools: mitmproxy flows, HAR or jsonl",
    "share": "copy a capture without secrets and names, with the same findings",
    "import": "create a capture from mitmproxy flows, HAR or jsonl",
    "captures": "list the captures in a directory: time, size, agents, findings",
    "tables": "turn captures into tables for SQL and other tools",
    "sql": "ask tables or captures in SQL, or a named query",
    "fleet": "analyse the captures of many proxies together",
    "certificates": "list what ends when, or who breaks if a certificate is revoked",
    "merge": "merge several captures into one",
    "vacuum": "make a capture as small as possible",
    "provision": "get a certificate for the proxy that agents trust",
    "explain": "explain an endpoint, a rule or an error message",
    "addon": "print the path of the mitmproxy addon",
    "completion": "print what makes a shell complete these commands and their options",
}
"""The commands in the order of the help, each with its line in the help."""
DEFAULT = "open"
"""The command that runs if none is named."""
DESCRIPTION = "Record and analyze the traffic between Puppet or OpenVox agents and their master."
EPILOG = """\
first steps:
  puppet-inspector demo                          record and explain an embedded lab
  puppet-inspector run -- puppet agent -t        run this host's agent once through the proxy
  mitmdump -s "$(puppet-inspector addon)"        run the proxy between agents and their master
  puppet-inspector follow                        watch while the proxy records
  puppet-inspector runs captures/FILE.sqlite     list what happened
  puppet-inspector check captures/FILE.sqlite    report what was wrong, and how to fix it

exit status: 0 success, 1 findings at or above --fail-on, 2 wrong usage or unusable input (see the message),
130 ended with Ctrl-C.
"""


class Command(Protocol):
    """What a module of this package provides for the command of its name."""

    EXAMPLE: str
    """A short command line, for the end of the command's help."""

    def add_arguments(self, parser: argparse.ArgumentParser, /) -> None:
        """Add the command's options and arguments."""

    def execute(self, arguments: argparse.Namespace, /) -> int:
        """Run the command; return the exit status. The docstring is the command's description in its help."""


def parser_of(first: str) -> tuple[argparse.ArgumentParser, argparse.ArgumentParser]:
    """Return the parser of a command line that begins with ``first``, and that of its command (by default the first
    one again): only that command's module is imported."""
    parser = argparse.ArgumentParser(
        "puppet-inspector",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version")
    parser.add_argument("--verbose", action="store_true", help="with --version: also what a bug report needs")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    chosen = parser
    for name, line in COMMANDS.items():
        command = commands.add_parser(name, help=line)
        if name == first:
            chosen = command
            fill(command, name)
    if first in ("--version", "--verbose"):
        parser.set_defaults(function=importlib.import_module("inspector.cli.version").execute)
    elif first not in COMMANDS:
        module = _module(DEFAULT)
        parser.set_defaults(function=module.execute, capture=None, ascii=False, theme=None, bell=False)
    return parser, chosen


def fill(parser: argparse.ArgumentParser, name: str) -> None:
    """Give a command's parser its arguments and its help."""
    module = _module(name)
    parser.description = (module.execute.__doc__ or COMMANDS[name]).split("\n\n")[0]
    parser.epilog = f"example: {module.EXAMPLE}"
    parser.set_defaults(function=module.execute)
    module.add_arguments(parser)


def _module(name: str) -> Command:
    # A keyword of Python, or the name of a builtin, gets an underscore.
    file = f"{name}_" if name in ("import", "list", "open") else name
    return cast("Command", importlib.import_module(f"inspector.cli.{file}"))


def options(parser: argparse.ArgumentParser) -> dict[str, argparse.Action]:
    """Return the options of a parser by each of their names."""
    return {name: action for action in parser._actions for name in action.option_strings}
