"""``puppet-inspector list``: the exchanges of a capture, a line each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from inspector.cli.arguments import add_filter
from inspector.cli.output import print_json
from inspector.summaries import follow

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("capture", type=Path)
    parser.add_argument("--json", action="store_true", help="as JSON (docs/json/list.schema.json)")
    add_filter(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Every exchange, failed handshake and gap of a capture as the proxy prints them, each with its number (for
    `show`) and with all findings that it proves."""

    found = follow.listed(arguments.capture, arguments.filter)
    if arguments.json:
        print_json([follow.row(summary, run) for summary, run, _ in found])
        return 0
    for summary, _, line in found:
        print(follow.numbered(summary.seq, line))
    return 0
