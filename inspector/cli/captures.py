"""``puppet-inspector captures``: the captures in a directory: when, how large, whose runs, what was found."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from inspector.capture import paths
from inspector.cli.output import print_json, print_rows, progress
from inspector.summaries import inventory, wording

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", type=Path, nargs="?", metavar="DIR", help="default: captures/")
    parser.add_argument("--json", action="store_true", help="as JSON (docs/json/captures.schema.json)")


def execute(arguments: argparse.Namespace) -> int:
    """The captures in a directory, the latest at the end; `open` is one that a proxy is writing, or was killed while
    it wrote. What no index tells yet is read first, which may take a while."""

    folder = arguments.directory or paths.FOLDER
    held = [inventory.look(path, progress) for path in inventory.captures_in(folder)]
    if arguments.json:
        print_json([capture.plain() for capture in held])
        return 0
    if held:
        print_rows(inventory.COLUMNS, [capture.row() for capture in held])
    size = wording.size(sum(capture.size for capture in held))
    print(f"{len(held)} capture{'' if len(held) == 1 else 's'} in {folder}, {size}")
    return 0
