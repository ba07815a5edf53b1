"""Arguments that several commands share, and their conversion.

Every command waits for this module, so what a conversion alone needs is imported there.
"""

from __future__ import annotations

import contextlib
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from inspector import inputs
from inspector.errors import InspectorError

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator

    from inspector.compare.differences import Patterns
    from inspector.formats.outgoing import Content

WARNING = 400
"""Characters of a warning about the site's rules: it may quote them."""

MASTER_LOGS = {
    "--access-log": "puppetserver's access log, also compressed, may be repeated: how much of the time was queue, how "
    "much work (docs/times.md)",
    "--server-log": "puppetserver.log, also compressed, may be repeated: how long catalogs were compiled",
}
"""The options with a master's logs."""


def add_filter(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--filter",
        default="",
        metavar="TERMS",
        help="only what matches every term: 'phase:catalog status:>=400 agent:web* !rule:B01 text' (docs/captures.md)",
    )


def add_captures(command: argparse.ArgumentParser) -> None:
    """Add the captures that a command reads; ``paths.chosen`` finds them."""
    command.add_argument(
        "captures",
        metavar="capture",
        type=Path,
        nargs="*",
        help="captures, or directories with captures (default: the newest in captures/)",
    )


def add_capture(command: argparse.ArgumentParser) -> None:
    """Add the capture that a command is about; ``paths.one`` finds it."""
    command.add_argument(
        "capture", type=Path, nargs="?", help="a capture, or a directory: the newest in it (default: captures/)"
    )


def add_agent(command: argparse.ArgumentParser, what: str = "only this agent") -> None:
    """Add the option that chooses agents."""
    command.add_argument("--agent", metavar="PATTERN", help=f"{what}: its certname, or a shell pattern (web*)")


def add_run(command: argparse.ArgumentParser, what: str = "only this run") -> None:
    """Add the option that chooses a run."""
    command.add_argument("--run", type=int, metavar="N", help=f"{what}, by the number that `runs` prints")


def add_rules(command: argparse.ArgumentParser) -> None:
    """Add the options with the site's rules; ``rules_of`` applies them."""
    command.add_argument("--rules", type=Path, metavar="YAML", help="the site's severities, thresholds, findings to "
                         "ignore, and rules of its own (docs/own-rules.md)")  # fmt: skip
    command.add_argument("--rules-dir", type=Path, metavar="DIR", help="the site's own rules in Python: the files in "
                         "it are executed")  # fmt: skip


@contextlib.contextmanager
def rules_of(arguments: argparse.Namespace) -> Iterator[None]:
    """Apply the rules that a command line names, or the usual ones, in what is done within; print what has no effect in
    them. Raises InspectorError."""
    file, directory = getattr(arguments, "rules", None), getattr(arguments, "rules_dir", None)
    if not (file or directory):
        yield
        return
    from inspector import rules
    from inspector.summaries import ruleset
    from inspector.text import beginning, clean

    loaded = ruleset.load(file, directory, time.time())
    for warning in loaded.warnings:
        print(f"puppet-inspector: {beginning(clean(warning), WARNING)}", file=sys.stderr)
    rules.use(loaded)
    try:
        yield
    finally:
        rules.use(None)


def add_ignoring(command: argparse.ArgumentParser) -> None:
    """Add what is compared of catalogs; ``ignored_of`` returns what is not."""
    command.add_argument(
        "--ignore", metavar="PATTERN", action="append", default=[],
        help="do not compare what matches: 'File[/tmp/*]', '*[*]/mode', 'facts:dhcp*'; may be repeated",
    )  # fmt: skip
    command.add_argument("--ignore-file", metavar="FILE", type=Path, help="a file with such patterns, one on a line")
    command.add_argument("--tags", action="store_true", help="compare the tags of resources as well")


def ignored_of(arguments: argparse.Namespace) -> Patterns:
    """Return what is not compared. Raises InspectorError."""
    from inspector.compare.differences import Patterns, Section, patterns_in

    ignored = list(arguments.ignore)
    if arguments.ignore_file:
        try:
            ignored += patterns_in(inputs.read(arguments.ignore_file, inputs.SMALL).decode())
        except OSError as error:
            raise InspectorError(
                f"Cannot read {arguments.ignore_file}: {error.strerror}.", "Give a file with one pattern on each line."
            ) from error
        except UnicodeDecodeError as error:
            raise InspectorError(
                f"{arguments.ignore_file} is not text.", "Give a file with one pattern on each line."
            ) from error
    return Patterns(ignored, Section)


def add_full(command: argparse.ArgumentParser, example: str) -> None:
    command.add_argument(
        "--full",
        action="store_true",
        help=f"add the whole message of the master or the agent, with secrets masked: `{example} --full`",
    )


def capture_to_write(arguments: argparse.Namespace) -> Path:
    """Return the path of the capture that a command creates: --output, or a new one in captures/."""
    from inspector.proxy.options import capture_path

    return capture_path(arguments.output or "")


def moment(text: str) -> float:
    """Convert a date or a time in ISO 8601 (UTC by default) to seconds since the epoch. Raises InspectorError."""
    from inspector import clocks

    try:
        return clocks.iso(text)
    except (ValueError, OverflowError) as error:
        raise InspectorError(f"{text!r} is not a date.", "Use the form 2027-03-02 or 2027-03-02T07:00:00Z.") from error


def must_be_terminal(hint: str) -> None:
    """Raise InspectorError if this process has no terminal to draw on; ``hint`` says what works without one."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InspectorError("Standard input or output is not a terminal.", hint)


def add_master_logs(command: argparse.ArgumentParser) -> None:
    """Add the options with a master's logs; ``master_logs.times_of`` reads them."""
    for name, about in MASTER_LOGS.items():
        command.add_argument(name, type=Path, metavar="FILE", action="append", default=[], help=about)


def logs_named(arguments: argparse.Namespace) -> bool:
    """Whether the user named logs; no command at all has none."""
    return bool(getattr(arguments, "access_log", ()) or getattr(arguments, "server_log", ()))


def add_opening(parser: argparse.ArgumentParser) -> None:
    """Add ``--with``, which opens what exports, reports and shared captures withhold; ``opened_by`` converts it."""
    parser.add_argument(
        "--with",
        dest="opened",
        default="",
        metavar="KINDS",
        help="do not withhold these, only mask secrets in them: facts, parameters, logs, files (separated by commas), "
        "or all",
    )


def opened_by(text: str) -> frozenset[Content]:
    """Return the kinds of content that ``--with`` names. Raises InspectorError."""
    from inspector.formats.outgoing import ALL, Content

    names = [name.strip().lower() for name in text.split(",") if name.strip()]
    known = [str(content) for content in Content if content is not Content.OTHER]
    if wrong := [name for name in names if name not in (*known, "all")]:
        raise InspectorError(f"--with does not know {wrong[0]!r}.", f"Choose from {', '.join(known)}, or all.")
    return ALL if "all" in names else frozenset(map(Content, names))
