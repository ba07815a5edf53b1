"""The command line: which commands there are, and what all of them have in common.

To add a command, add a module with ``add_arguments`` and ``execute`` to this package, and a line to ``COMMANDS``.
"""

from __future__ import annotations

import argparse
import importlib
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Protocol, cast

from inspector import __version__
from inspector.errors import InspectorError

if TYPE_CHECKING:
    from collections.abc import Sequence

COMMANDS = {
    "open": "look into a capture on the whole terminal (also: no command at all)",
    "demo": "record an embedded lab and tell what happened",
    "proxy": "the proxy, between agents and their master",
    "run": "run this host's agent once through the proxy",
    "runs": "the runs of a capture",
    "list": "the exchanges of a capture, a line each",
    "follow": "the lines of a capture while a proxy writes it; ends with Ctrl-C",
    "show": "one exchange or handshake in full",
    "check": "what deviates from the protocol, why, and what to do",
    "doctor": "what is wrong and what to do: in a capture, a directory, at a live master",
    "bootstrap": "the certificate bootstrap of an agent, rung by rung",
    "export": "a capture for other tools: mitmproxy's flows, HAR or jsonl",
    "share": "a capture to give away: without secrets and names, with the same findings",
    "import": "make a capture from mitmproxy flow files, HAR or jsonl",
    "captures": "the captures in a directory: when, how large, whose runs, what was found",
    "merge": "make one capture of several",
    "vacuum": "make a capture as small as it can be",
    "provision": "get a certificate that agents trust for the proxy",
    "explain": "what an endpoint, a rule or an error message is about",
    "addon": "print the path of the mitmproxy addon",
}
"""The commands in the order of the help, each with its line there."""
DEFAULT = "open"
"""The command without a name."""
DESCRIPTION = "See what a Puppet or OpenVox agent and its master really say to each other."
EPILOG = """\
first steps:
  puppet-inspector demo                          an embedded lab, recorded and explained
  puppet-inspector run -- puppet agent -t        this host's agent, once, through the proxy
  mitmdump -s "$(puppet-inspector addon)"        the proxy, between agents and their master
  puppet-inspector follow                        what happens, while the proxy records it
  puppet-inspector runs captures/FILE.sqlite     what happened
  puppet-inspector check captures/FILE.sqlite    what was wrong, and what to do

exit status: 0 all is well, 1 findings that reach --fail-on, 2 a mistake that the message explains.
"""


class Command(Protocol):
    """What a module of this package offers for the command of its name."""

    def add_arguments(self, parser: argparse.ArgumentParser, /) -> None:
        """Add the command's options and arguments."""

    def execute(self, arguments: argparse.Namespace, /) -> int:
        """Run the command; return the exit status. The docstring is the command's description in its help."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status."""
    given = sys.argv[1:] if argv is None else list(argv)
    arguments = _parser(given[0] if given else "").parse_args(given)
    if threading.current_thread() is threading.main_thread():
        # Like Ctrl-C: what was started (a proxy that holds keys) must end with us.
        signal.signal(signal.SIGTERM, _terminated)
    try:
        status: int = arguments.execute(arguments)
        sys.stdout.flush()
        return status
    except InspectorError as error:
        print(f"puppet-inspector: {error.message}", file=sys.stderr)
        if error.hint:
            print(f"  {error.hint}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader (head, less) has seen enough.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        return 130


def _terminated(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


def _parser(first: str) -> argparse.ArgumentParser:
    """Return the parser of a command line that begins with a word: only that word's command is imported."""
    parser = argparse.ArgumentParser(
        "puppet-inspector",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"puppet-inspector {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    for name, line in COMMANDS.items():
        command = commands.add_parser(name, help=line)
        if name == first:
            _fill(command, name)
    if first not in COMMANDS:
        module = _module(DEFAULT)
        parser.set_defaults(execute=module.execute, capture=None, ascii=False)
    return parser


def _fill(parser: argparse.ArgumentParser, name: str) -> None:
    module = _module(name)
    parser.description = (module.execute.__doc__ or COMMANDS[name]).split("\n\n")[0]
    parser.set_defaults(execute=module.execute)
    module.add_arguments(parser)


def _module(name: str) -> Command:
    # A name that Python or its builtins have already gets an underscore.
    file = f"{name}_" if name in ("import", "list", "open") else name
    return cast("Command", importlib.import_module(f"inspector.cli.{file}"))
