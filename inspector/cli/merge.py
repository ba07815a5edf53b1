"""``puppet-inspector merge``: make one capture of several."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from inspector.capture import merge
from inspector.cli.output import print_json

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("captures", type=Path, nargs="+", metavar="CAPTURE")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="CAPTURE", help="the new one")
    parser.add_argument("--json", action="store_true", help="say what was made as JSON")


def execute(arguments: argparse.Namespace) -> int:
    """Make one capture of several (of one proxy, or of proxies side by side): all records in the order in which they
    ended, each once, numbered anew. A run that several captures show parts of is one run in it."""

    merged = merge.merge(arguments.captures, arguments.output)
    if arguments.json:
        print_json({"capture": str(arguments.output), **merged._asdict()})
    else:
        twice = f" ({merged.twice} were in several)" if merged.twice else ""
        print(f"{merged.records} records are in {arguments.output}{twice}")
    return 0
