"""``puppet-inspector list``: list the exchanges of a capture, one line each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.capture import paths
from inspector.cli.arguments import add_captures, add_filter
from inspector.cli.output import print_json
from inspector.cli.progress import beside_output, shown
from inspector.summaries import follow, wording

if TYPE_CHECKING:
    import argparse

EXAMPLE = "puppet-inspector list captures/FILE.sqlite --filter phase:catalog"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_captures(parser)
    parser.add_argument("--json", action="store_true", help="print JSON (docs/json/list.schema.json)")
    add_filter(parser)


def execute(arguments: argparse.Namespace) -> int:
    """List every exchange, failed handshake and gap of captures, one line each, with its record number (for `show`)
    and the findings that it is evidence for."""
    captures = paths.chosen(arguments.captures)
    several, printed = len(captures) > 1, False
    with shown() as watch:
        listing = (
            (capture, *found)
            for capture in captures
            for found in follow.listed(capture, arguments.filter, watch, beside_output(watch))
        )
        if arguments.json:
            rows = [{"capture": str(capture), **follow.row(brief, run)} for capture, brief, run in listing]
        for capture, brief, run in listing:
            printed = True
            print(f"{capture.name} " if several else "", follow.numbered(brief.seq, wording.line(brief, run)), sep="")
    if arguments.json:
        print_json(rows)
    elif not printed:
        every = sum(map(follow.total, captures))
        where = f"{len(captures)} captures" if several else captures[0]
        nothing = f"Nothing matches the filter, of {every} record{'' if every == 1 else 's'} in {where}."
        print(nothing if every else f"There are no records in {where}.")
    return 0
