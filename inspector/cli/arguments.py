"""Arguments that several commands share, and their conversion."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from inspector import clocks
from inspector.errors import InspectorError
from inspector.proxy.options import capture_path

if TYPE_CHECKING:
    import argparse


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


def add_full(command: argparse.ArgumentParser, example: str) -> None:
    command.add_argument(
        "--full",
        action="store_true",
        help=f"add the whole message of the master or the agent, with secrets masked: `{example} --full`",
    )


def capture_to_write(arguments: argparse.Namespace) -> Path:
    """Return the path of the capture that a command creates: --output, or a new one in captures/."""
    return capture_path(arguments.output or "")


def moment(text: str) -> float:
    """Convert a date or a time in ISO 8601 (UTC by default) to seconds since the epoch. Raises InspectorError."""
    try:
        return clocks.iso(text)
    except (ValueError, OverflowError) as error:
        raise InspectorError(f"{text!r} is not a date.", "Use the form 2027-03-02 or 2027-03-02T07:00:00Z.") from error


def must_be_terminal(hint: str) -> None:
    """Raise InspectorError if this process has no terminal to draw on; ``hint`` says what works without one."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise InspectorError("Standard input or output is not a terminal.", hint)
