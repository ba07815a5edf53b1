"""``puppet-inspector import``: create a capture from mitmproxy flows, HAR or jsonl."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.cli.arguments import capture_to_write
from inspector.cli.output import print_json
from inspector.cli.progress import shown
from inspector.formats import importing

if TYPE_CHECKING:
    import argparse

EXAMPLE = "puppet-inspector import FILE.mitm -o FILE.sqlite"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE", help="a flow file, HAR or jsonl")
    parser.add_argument(
        "-o", "--output", metavar="CAPTURE", help="the capture to create (default: captures/<UTC time>.sqlite)"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def execute(arguments: argparse.Namespace) -> int:
    """Create a capture from mitmproxy flows, HTTP archives (HAR) and files written by `export`. A truncated file is
    imported up to the damage. Flows, and archives of other tools, contain no failed handshakes and no empty
    connections."""
    target = capture_to_write(arguments)
    with shown() as watch:
        loaded = importing.load(arguments.files, target, watch)
    if arguments.json:
        print_json({"capture": str(target), **loaded.counts})
    elif loaded.kinds:
        print(f"{loaded.description} imported into {target}")
    for error in loaded.errors:
        print(f"puppet-inspector: {error.message}\n  {error.hint}", file=sys.stderr)
    return 2 if loaded.errors else 0
