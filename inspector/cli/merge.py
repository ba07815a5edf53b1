"""``puppet-inspector captures merge``: merge several captures into one."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from inspector.capture import merge
from inspector.capture.places import PlaceClock
from inspector.cli.output import print_json, print_line
from inspector.cli.progress import shown
from inspector.columns import Count
from inspector.text import clean

if TYPE_CHECKING:
    import argparse


class PlainMerged(msgspec.Struct):
    """What was made of several captures."""

    capture: str
    """The path of the new capture."""
    records: Count
    """The records in it."""
    twice: Count
    """Records that were in more than one of the captures: the new one has them once."""
    renamed: Count
    """Connections that were renamed because another capture has one of the same name."""
    joined: Count
    """Requests that two proxies recorded, one behind the other: the new capture has them once."""
    places: tuple[PlaceClock, ...]
    """Where the captures were recorded, and how the clocks there were; empty: in one place, or it is not known."""


EXAMPLE = "puppet-inspector captures merge a.sqlite b.sqlite -o both.sqlite"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("captures", type=Path, nargs="+", metavar="CAPTURE", help="a capture file")
    parser.add_argument("-o", "--output", type=Path, required=True, metavar="CAPTURE", help="the capture to create")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def execute(arguments: argparse.Namespace) -> int:
    """Merge several captures of one proxy, or of several, into a new one: every record once, renumbered in the order in
    which the records ended. A run that is spread over several captures becomes one run. Of proxies on several hosts the
    clocks are compared, and the times of those that were wrong corrected."""
    with shown() as watch:
        merged = merge.merge(arguments.captures, arguments.output, watch)
    if arguments.json:
        print_json(msgspec.to_builtins(PlainMerged(str(arguments.output), *merged[:-1])))
        return 0
    notes = [f"{merged.twice} were in several captures"] if merged.twice else []
    notes += [f"{merged.joined} were recorded by two proxies"] if merged.joined else []
    print(f"{merged.records} records written to {arguments.output}{f' ({", ".join(notes)})' if notes else ''}")
    for clock in merged.places:
        print_line(f"  {clean(str(clock))}")
    return 0
