"""``puppet-inspector vacuum``: make a capture as small as it can be."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from inspector.capture import merge
from inspector.cli.output import print_json
from inspector.summaries import wording

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("capture", type=Path)
    parser.add_argument("--json", action="store_true", help="say what was saved as JSON")


def execute(arguments: argparse.Namespace) -> int:
    """Make a capture as small as it can be, without what nothing in it refers to and what a killed proxy left beside
    it. Records keep their numbers, so marks and notes stay good. Not while a proxy writes it."""

    saved = merge.vacuum(arguments.capture)
    if arguments.json:
        print_json({"capture": str(arguments.capture), **saved._asdict()})
    else:
        dropped = f"; {saved.dropped} bodies were nobody's" if saved.dropped else ""
        print(f"{arguments.capture}: {wording.size(saved.before)} before, {wording.size(saved.after)} now{dropped}")
    return 0
