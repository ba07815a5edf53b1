"""The command line: it is parsed, the command is executed, and what goes wrong is said in a sentence."""

from __future__ import annotations

import difflib
import errno
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING

from inspector.analysis import limits
from inspector.cli.commands import COMMANDS, parser_of
from inspector.errors import InspectorError
from inspector.text import beginning, clean

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterable, Sequence

MESSAGE = 1500
"""Characters of an error's sentence that are printed: it may quote a file that somebody else made."""
_FULL = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)
"""Why an output cannot be written."""


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
    parser, command = parser_of(first)
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
