"""The command line: it is parsed, the command is executed, and what goes wrong is said in a sentence."""

from __future__ import annotations

import contextlib
import errno
import gc
import io
import os
import signal
import sys
import threading
from typing import TYPE_CHECKING

from inspector.analysis import limits
from inspector.cli import commands
from inspector.errors import InspectorError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable, Iterable, Sequence

MESSAGE = 1500
"""Characters of an error's sentence that are printed: it may quote a file that somebody else made."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_UNWRITABLE = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EBADF)
"""Why an output cannot be written."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit status."""
    _open_streams()
    command_line = sys.argv[1:] if argv is None else list(argv)
    # Where a signal raises an exception in the middle of an import, Python may only report it, and go on.
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    handlers = {number: signal.getsignal(number) for number in SIGNALS}
    try:
        status = _reported(lambda: _executed(command_line, mask))
        return _reported(sys.stdout.flush) or status
    finally:
        for number, handler in handlers.items() if _in_main_thread() else ():
            signal.signal(number, handler)
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)


def _executed(command_line: list[str], mask: Iterable[int]) -> int:
    arguments = _parsed(command_line)
    if not gc.isenabled():  # ``__main__`` is waiting for this
        gc.freeze()
        gc.enable()
    if _in_main_thread():
        _take_signals(next(iter(command_line), ""))
        limits.arm()
    signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    try:
        with _rules_of(arguments):
            status: int = arguments.function(arguments)
    except UnicodeEncodeError as error:
        odd = next((word for word in command_line if _is_odd(word)), None)
        if odd is None:
            raise
        raise InspectorError(f"{odd!r} is not UTF-8.", "Write it as UTF-8.") from error
    return status


def _rules_of(arguments: argparse.Namespace) -> contextlib.AbstractContextManager[None]:
    """Apply the rules that a command line names; a command without these options does without their module."""
    if not hasattr(arguments, "rules"):
        return contextlib.nullcontext()
    from inspector.cli.arguments import rules_of

    return rules_of(arguments)


def _is_odd(word: str) -> bool:
    """Whether a word has bytes that are not UTF-8, which names of files may have."""
    return any("\ud800" <= letter <= "\udfff" for letter in word)


def _reported(work: Callable[[], int | None]) -> int:
    """Do some work and return its exit status; what goes wrong is said in a sentence and a hint."""
    try:
        return work() or 0
    except InspectorError as error:
        _complain(error.message, error.hint)
    except BrokenPipeError:
        # The reader (head, less) has closed the pipe.
        _discard_output()
        return 0
    except OSError as error:
        if error.filename is not None:
            _complain(f"Cannot use {error.filename}: {error.strerror}.", "Check its path, permissions and disk.")
        elif error.errno in _UNWRITABLE:
            _discard_output()
            _complain(f"Cannot write the output: {error.strerror}.", "Free some space, or write it elsewhere.")
        else:
            raise
    except _errors_of_sqlite() as error:
        _complain(f"A capture cannot be read or written: {error}.", "Check it and its disk.")
    except KeyboardInterrupt:
        _discard_output()
        return 128 + signal.SIGINT
    except _Terminated as ended:
        _discard_output()
        return int(ended.args[0])
    except SystemExit as ended:  # of the parser: it printed its help, or a mistake
        return ended.code if isinstance(ended.code, int) else 0
    return 2


def _errors_of_sqlite() -> tuple[type[Exception], ...]:
    """Return what SQLite raises; nothing if no command has imported it."""
    return (sys.modules["sqlite3"].Error,) if "sqlite3" in sys.modules else ()


def _complain(message: str, hint: str) -> None:
    from inspector.text import beginning, clean

    with contextlib.suppress(OSError):  # nobody reads it
        sys.stdout.flush()
        # It may quote a file that somebody else made.
        print(f"puppet-inspector: {beginning(clean(message), MESSAGE)}", file=sys.stderr)
        for line in hint.splitlines():
            print(f"  {beginning(clean(line), MESSAGE)}", file=sys.stderr)


def _open_streams() -> None:
    """Open what is closed of standard input, output and errors: a capture that took its place would be written to."""
    for number, (name, mode) in enumerate((("stdin", "r"), ("stdout", "w"), ("stderr", "w"))):
        if getattr(sys, name) is None:
            # What is written to the output is lost, and that is a mistake; of a message it is not.
            opened = os.open(os.devnull, os.O_WRONLY if name == "stderr" else os.O_RDONLY)
            if opened != number:
                os.dup2(opened, number)
            os.set_inheritable(number, True)  # noqa: FBT003 - it has no name
            setattr(sys, name, os.fdopen(number, mode))
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a locale may have few characters


def _discard_output() -> None:
    """Write what is left of the output to nowhere: it cannot be written, or is not wanted."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# -- signals ----------------------------------------------------------------------------------------------


class _Terminated(SystemExit):
    """A signal ends the program."""


def _in_main_thread() -> bool:
    return threading.current_thread() is threading.main_thread()


def _take_signals(command: str) -> None:
    """End with each signal as with Ctrl-C: what is half written is removed, and a proxy that this process started ends
    with it, since it has keys. What is ignored (``nohup``, a script's background) stays so."""
    for number in SIGNALS:
        if signal.getsignal(number) is not signal.SIG_IGN:
            signal.signal(number, _stop)
    if command in ("proxy", "replay"):  # a script's shell starts it in the background with Ctrl-C ignored
        signal.signal(signal.SIGINT, signal.default_int_handler)


def _stop(number: int, _frame: object) -> None:
    for each in SIGNALS:  # once is enough: what is cleaned up now must not be interrupted
        signal.signal(each, signal.SIG_IGN)
    if number == signal.SIGINT:
        raise KeyboardInterrupt
    raise _Terminated(128 + number)


# -- the command line -------------------------------------------------------------------------------------


def _parsed(command_line: list[str]) -> argparse.Namespace:
    """Parse a command line. A command or an option that does not exist is answered with the nearest one that does.

    Raises InspectorError; SystemExit for ``--help``, as argparse does.
    """
    name, words = commands.name_of(command_line)
    called = ""
    if not name and words and not words[0].startswith("-"):
        if not os.path.lexists(words[0]):
            if os.sep in words[0] or "." in words[0]:
                raise InspectorError(
                    f"There is no capture {words[0]!r}.",
                    "`puppet-inspector captures` lists those in captures/, with a directory those in it.",
                )
            raise InspectorError(f"There is no command {words[0]!r}.", commands.near(words[0]))
        name, called = commands.DEFAULT, "puppet-inspector CAPTURE"  # the user named no command
    elif not words:
        name = name or commands.DEFAULT
    parser = commands.parser_of(name)
    arguments, unknown = parser.parse_known_args(words)
    if not unknown:
        return arguments
    if not unknown[0].startswith("-"):
        before = words[: words.index(unknown[0])]
        hint = "Write it before the options." if any(word.startswith("-") for word in before) else ""
        raise InspectorError(f"`{parser.prog}` does not take {unknown[0]!r}.", hint or f"See `{parser.prog} --help`.")
    option = unknown[0].partition("=")[0]
    raise InspectorError(
        f"`{called or parser.prog}` has no option {option}.",
        commands.near_option(option, parser) or f"`{parser.prog} --help` lists them.",
    )
