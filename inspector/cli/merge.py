"""``puppet-inspector captures merge``: merge several captures into one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from inspector.capture import merge
from inspector.cli.output import print_json
from inspector.cli.progress import shown

if TYPE_CHECKING:
    import argparse

EXAMPLE = "puppet-inspector captures merge a.sqlite b.sqlite -o both.sqlite"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("captures", type=Path, nargs="+", metavar="CAPTURE", help="a capture file")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="CAPTURE", help="the capture to create")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def execute(arguments: argparse.Namespace) -> int:
    """Merge several captures of one proxy, or of parallel proxies, into a new one: every record once, renumbered in
    the order in which the records ended. A run that is spread over several captures becomes one run."""
    with shown() as watch:
        merged = merge.merge(arguments.captures, arguments.output, watch)
    if arguments.json:
        print_json({"capture": str(arguments.output), **merged._asdict()})
    else:
        duplicates = f" ({merged.twice} were in several captures)" if merged.twice else ""
        print(f"{merged.records} records written to {arguments.output}{duplicates}")
    return 0
