"""``puppet-inspector list``: list the exchanges of a capture, one line each."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from inspector.capture import paths
from inspector.cli.arguments import add_captures, add_filter, add_rules
from inspector.cli.output import columns, print_json, print_line, print_record, print_text
from inspector.cli.progress import beside_output, shown
from inspector.cli.reading import Unreadable
from inspector.errors import CaptureError
from inspector.progress import named
from inspector.summaries import listing, wording
from inspector.text import clean, plural

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from inspector.progress import Watch
    from inspector.summaries.summary import Brief, RunBrief

EXAMPLE = "puppet-inspector list captures/FILE.sqlite --filter phase:catalog"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_captures(parser)
    parser.add_argument("--json", action="store_true", help="print JSON (docs/json/list.schema.json)")
    add_filter(parser)
    add_rules(parser)


def execute(arguments: argparse.Namespace) -> int:
    """List every exchange, failed handshake and gap of captures, one line each, with its record number (for `show`)
    and the findings that it is evidence for; on a terminal a line says where a further run begins."""
    captures = paths.chosen(arguments.captures)
    several, printed = len(captures) > 1, False
    unreadable = Unreadable(captures)
    with shown() as watch:
        found = _listing(captures, arguments.filter, watch, unreadable)
        if arguments.json:
            print_json([listing.row(brief, run, capture) for capture, brief, run in found])
            return unreadable.status
        width, last = columns(), None
        begun: set[tuple[Path, int]] = set()
        for capture, brief, run in found:
            printed = True
            lines = listing.lines(brief, run, width)
            if several and width is None:
                lines = [f"{capture.name} {line}" for line in lines]
            elif several and capture != last:  # its name may be long
                from rich.text import Text

                print_text(Text(clean(str(capture)), "bold"))
                last = capture
            if width is not None and run and run.number > 1 and (capture, run.number) not in begun:
                begun.add((capture, run.number))
                print_line(wording.head(run))
            print_record(brief, lines)
    if not printed and unreadable.others:
        every = sum(map(_total, captures))
        where = f"{unreadable.others} captures" if several else captures[0]
        nothing = f"Nothing matches the filter, of {plural(every, 'record')} in {where}."
        print(nothing if every else f"There are no records in {where}.")
    return unreadable.status


def _listing(
    captures: Sequence[Path], text: str, watch: Watch, unreadable: Unreadable
) -> Iterator[tuple[Path, Brief, RunBrief | None]]:
    for capture in captures:
        with unreadable.reported():
            one = named(watch, clean(capture.name)) if len(captures) > 1 else watch
            for brief, run in listing.listed(capture, text, one, beside_output(one)):
                yield capture, brief, run


def _total(capture: Path) -> int:
    with contextlib.suppress(CaptureError):
        return listing.total(capture)
    return 0
