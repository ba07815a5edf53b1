"""``puppet-inspector captures``: list the captures in a directory: time, size, agents, findings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from inspector import inputs
from inspector.capture import paths
from inspector.cli.arguments import add_rules
from inspector.cli.output import print_json, print_line
from inspector.cli.progress import shown
from inspector.cli.rows import print_rows
from inspector.summaries import inventory
from inspector.text import plural, size

if TYPE_CHECKING:
    import argparse

EXAMPLE = "puppet-inspector captures /var/lib/puppet-inspector"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", type=Path, nargs="?", metavar="DIR", help="default: captures/")
    parser.add_argument("--json", action="store_true", help="print JSON (docs/json/captures.schema.json)")
    add_rules(parser)


def execute(arguments: argparse.Namespace) -> int:
    """List the captures in a directory, the newest last. `open` marks a capture that a proxy is writing, or was
    writing when it was killed. Captures without an index are read first, which may take a while."""
    folder = arguments.directory or paths.FOLDER
    if arguments.directory is None and not inputs.exists(folder):
        raise paths.none_in(folder)
    with shown() as watch:
        inventories = [inventory.look(path, watch) for path in inventory.captures_in(folder)]
    if arguments.json:
        print_json([found.plain() for found in inventories])
        return 0
    if not inventories:
        none = paths.none_in(folder)
        print_line(f"{none.message} {none.hint}")
        return 0
    rows = [capture.row() for capture in inventories]
    print_rows(inventory.COLUMNS, rows, below="state", spare=inventory.SPARE)
    total = size(sum(capture.size for capture in inventories))
    print_line(f"{plural(len(inventories), 'capture')} in {folder}, {total}")
    return 0
