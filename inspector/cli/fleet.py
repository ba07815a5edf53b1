"""``puppet-inspector fleet``: one HTML file of what a directory of tables shows."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from inspector.cli.output import print_json, print_line
from inspector.cli.progress import shown
from inspector.errors import InspectorError
from inspector.fleet.directory import TableDirectory
from inspector.fleet.overview import fields, overview_of
from inspector.formats import files
from inspector.report import fleet as report
from inspector.text import clean, plural, size

if TYPE_CHECKING:
    import argparse

EXAMPLE = "puppet-inspector fleet report tables/ -o fleet.html"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("report",), help="report: write the file")
    parser.add_argument("tables", type=Path, nargs="+", help="a directory of tables, as `tables` makes it")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="the file to create (default: the "
                        "directory's name with .html)")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON (docs/json/fleet-report.schema.json)")


def execute(arguments: argparse.Namespace) -> int:
    """Write one HTML file of a directory of tables: nodes by state, why they are not well and how that is fixed,
    findings over time, certificates, times, what never settles (docs/fleet.md)."""
    if len(arguments.tables) != 1 or not arguments.tables[0].is_dir():
        raise InspectorError(
            "A report is made of one directory of tables.",
            "First convert captures: puppet-inspector tables CAPTURES -o tables/",
        )
    (root,) = arguments.tables
    directory = TableDirectory.open(root)
    name = root.resolve().name
    output = arguments.output or root.resolve().with_name(f"{name}.html")
    if not arguments.json:
        files.must_be_new(output, files.OPTION)
    with shown() as watch:
        found = overview_of(directory, watch)
        if arguments.json:
            print_json(fields(found))
            return 0
        text = report.html(found, name)
    files.write([text], output)
    print_line(f"{clean(str(output))} written, {size(len(text.encode()))}: {plural(len(found.nodes), 'node')}")
    return 0
