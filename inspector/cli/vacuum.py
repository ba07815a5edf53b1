"""``puppet-inspector captures vacuum``: make a capture as small as possible."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from inspector.capture import merge
from inspector.cli.output import print_json
from inspector.cli.progress import shown
from inspector.text import size

if TYPE_CHECKING:
    import argparse

EXAMPLE = "puppet-inspector captures vacuum captures/FILE.sqlite"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("capture", type=Path, help="the capture file")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def execute(arguments: argparse.Namespace) -> int:
    """Make a capture as small as possible: remove unreferenced bodies, and files that a killed proxy left beside it.
    Records keep their numbers, so marks and notes stay valid. Do not use it while a proxy writes the capture."""
    with shown() as watch:
        saved = merge.vacuum(arguments.capture, watch)
    if arguments.json:
        print_json({"capture": str(arguments.capture), **saved._asdict()})
    else:
        dropped = f"; {saved.dropped} unreferenced bodies removed" if saved.dropped else ""
        print(f"{arguments.capture}: {size(saved.before)} before, {size(saved.after)} now{dropped}")
    return 0
