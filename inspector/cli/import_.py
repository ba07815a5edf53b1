"""``puppet-inspector import``: make a capture from mitmproxy flow files, HAR or jsonl."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.cli.arguments import capture_to_write
from inspector.cli.output import print_json
from inspector.formats import importing

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("files", type=Path, nargs="+", metavar="FILE")
    parser.add_argument("-o", "--output", metavar="CAPTURE", help="default: captures/<UTC time>.sqlite")
    parser.add_argument("--json", action="store_true", help="say what was made as JSON")


def execute(arguments: argparse.Namespace) -> int:
    """Make a capture from mitmproxy's flows, HTTP archives (HAR) and what `export` wrote. What is cut off is taken up
    to there. Flows and foreign archives hold no failed handshakes and no empty connections."""

    target = capture_to_write(arguments)
    loaded = importing.load(arguments.files, target)
    if arguments.json:
        print_json({"capture": str(target), **loaded.counts})
    elif loaded.kinds:
        print(f"{loaded.words} are in {target}")
    for trouble in loaded.troubles:
        print(f"puppet-inspector: {trouble.message}\n  {trouble.hint}", file=sys.stderr)
    return 2 if loaded.troubles else 0
