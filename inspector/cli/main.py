"""The command line: the list of commands, and what all of them share.

To add a command, add a module with ``EXAMPLE``, ``add_arguments`` and ``execute`` to this package, and a line to
``COMMANDS``.
"""

from __future__ import annotations

import argparse
import difflib
import errno
import importlib
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING, Protocol, cast

from inspector import __version__
from inspector.analysis import limits
from inspector.errors import InspectorError
from inspector.text import beginning, clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

COMMANDS = {
    "open": "browse a capture in the terminal (the default command)",
    "demo": "record an embedded lab and print what happened",
    "proxy": "run the proxy between agents and their master",
    "run": "run this host's agent once through the proxy",
    "runs": "list the runs of a capture",
    "list": "list the exchanges of a capture, one line each",
    "follow": "print the lines of a capture while a proxy writes it, until Ctrl-C",
    "show": "show one record in full",
    "check": "report what deviates from the protocol, why, and how to fix it",
    "doctor": "diagnose a capture, a directory or a live master",
    "fix": "repair a CA's CRLs: show what would be written, or write it",
    "bootstrap": "explain how an agent got its certificate, step by step",
    "export": "export a capture for other tools: mitmproxy flows, HAR or jsonl",
    "share": "copy a capture without secrets and names, with the same findings",
    "import": "create a capture from mitmproxy flows, HAR or jsonl",
    "captures": "list the captures in a directory: time, size, agents, findings",
    "merge": "merge several captures into one",
    "vacuum": "make a capture as small as possible",
    "provision": "get a certificate for the proxy that agents trust",
    "explain": "explain an endpoint, a rule or an error message",
    "addon": "print the path of the mitmproxy addon",
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

exit status: 0 success, 1 findings at or above --fail-on, 2 wrong usage or unusable input (see the message).
"""


MESSAGE = 1500
"""Characters of an error's sentence that are printed: it may quote a file that somebody else made."""
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Why an output cannot be written."""


class Command(Protocol):
    """What a module of this package provides for the command of its name."""

    EXAMPLE: str
    """A short command line, for the end of the command's help."""

    def add_arguments(self, parser: argparse.ArgumentParser, /) -> None:
        """Add the command's options and arguments."""

    def execute(self, arguments: argparse.Namespace, /) -> int:
        """Run the command; return the exit status. The docstring is the command's description in its help."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status."""
    command_line = sys.argv[1:] if argv is None else list(argv)
    # Where a signal raises an exception in the middle of an import, Python may only report it, and go on.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, (signal.SIGINT, signal.SIGTERM))
    try:
        arguments = _parsed(command_line)
        if threading.current_thread() is threading.main_thread():
            # As with Ctrl-C, a proxy that this process started must end with it: it has keys.
            signal.signal(signal.SIGTERM, _terminated)
            if command_line[:1] == ["proxy"]:  # a script's shell starts it in the background with Ctrl-C ignored
                signal.signal(signal.SIGINT, signal.default_int_handler)
            limits.arm()
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
        status: int = arguments.function(arguments)
        sys.stdout.flush()
        return status
    except InspectorError as error:
        # It may quote a file that somebody else made.
        print(f"puppet-inspector: {beginning(clean(error.message), MESSAGE)}", file=sys.stderr)
        for line in error.hint.splitlines():
            print(f"  {beginning(clean(line), MESSAGE)}", file=sys.stderr)
        return 2
    except BrokenPipeError:
        # The reader (head, less) has closed the pipe.
        _discard_output()
        return 0
    except OSError as error:
        if error.errno not in _FULL:
            raise
        _discard_output()
        print(f"puppet-inspector: Cannot write the output: {error.strerror}.", file=sys.stderr)
        print("  Free some space, or write it elsewhere.", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _discard_output() -> None:
    """Write what is left of the output to nowhere: it cannot be written."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _terminated(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


def _parsed(command_line: list[str]) -> argparse.Namespace:
    """Parse a command line. A command or an option that does not exist is answered with the nearest one that does.

    Raises InspectorError; SystemExit for other mistakes, as argparse does.
    """
    first = command_line[0] if command_line else ""
    if first and first not in COMMANDS and not first.startswith("-"):
        raise InspectorError(
            f"There is no command {first!r}.",
            _near(first, COMMANDS) or "`puppet-inspector --help` lists the commands.",
        )
    parser, command = _parser(first)
    arguments, unknown = parser.parse_known_args(command_line)
    if not unknown:
        return arguments
    if not unknown[0].startswith("-"):
        raise InspectorError(f"`{command.prog}` does not take {unknown[0]!r}.", f"See `{command.prog} --help`.")
    option = unknown[0].partition("=")[0]
    known = [name for action in command._actions for name in action.option_strings]
    raise InspectorError(
        f"`{command.prog}` has no option {option}.", _near(option, known) or f"`{command.prog} --help` lists them."
    )


def _near(word: str, known: Iterable[str]) -> str:
    found = difflib.get_close_matches(word, known, 2)
    return f"Did you mean {' or '.join(f'`{name}`' for name in found)}?" if found else ""


def _parser(first: str) -> tuple[argparse.ArgumentParser, argparse.ArgumentParser]:
    """Return the parser of a command line that begins with ``first``, and that of its command: only that command's
    module is imported."""
    parser = argparse.ArgumentParser(
        "puppet-inspector",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"puppet-inspector {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    chosen = parser
    for name, line in COMMANDS.items():
        command = commands.add_parser(name, help=line)
        if name == first:
            chosen = command
            _fill(command, name)
    if first not in COMMANDS:
        module = _module(DEFAULT)
        parser.set_defaults(function=module.execute, capture=None, ascii=False, theme=None)
    return parser, chosen


def _fill(parser: argparse.ArgumentParser, name: str) -> None:
    module = _module(name)
    parser.description = (module.execute.__doc__ or COMMANDS[name]).split("\n\n")[0]
    parser.epilog = f"example: {module.EXAMPLE}"
    parser.set_defaults(function=module.execute)
    module.add_arguments(parser)


def _module(name: str) -> Command:
    # A keyword of Python, or the name of a builtin, gets an underscore.
    file = f"{name}_" if name in ("import", "list", "open") else name
    return cast("Command", importlib.import_module(f"inspector.cli.{file}"))
