"""``puppet-inspector list``: list the exchanges of a capture, one line each."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from inspector.cli.arguments import add_filter
from inspector.cli.output import print_json
from inspector.summaries import follow

if TYPE_CHECKING:
    import argparse

EXAMPLE = "puppet-inspector list captures/FILE.sqlite --filter phase:catalog"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("capture", type=Path, help="the capture file")
    parser.add_argument("--json", action="store_true", help="print JSON (docs/json/list.schema.json)")
    add_filter(parser)


def execute(arguments: argparse.Namespace) -> int:
    """List every exchange, failed handshake and gap of a capture, one line each, with its record number (for `show`)
    and the findings that it is evidence for."""
    listing = follow.listed(arguments.capture, arguments.filter)
    if arguments.json:
        print_json([follow.row(summary, run) for summary, run, _ in listing])
        return 0
    for summary, _, line in listing:
        print(follow.numbered(summary.seq, line))
    return 0
