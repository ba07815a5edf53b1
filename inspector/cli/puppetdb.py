"""``puppet-inspector puppetdb``: what masters asked of PuppetDB and stored there, by the runs that caused it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.analysis.analyzer import Analyzer
from inspector.capture.store import Capture
from inspector.cli.arguments import add_captures, add_rules
from inspector.cli.output import columns, print_json, print_line
from inspector.cli.progress import shown
from inspector.cli.reading import as_one
from inspector.cli.rows import print_rows
from inspector.explain import puppetdb, puppetdb_text
from inspector.progress import watched
from inspector.summaries import wording

if TYPE_CHECKING:
    import argparse

    from inspector.explain.puppetdb import Call

EXAMPLE = "puppet-inspector puppetdb agents.sqlite puppetdb.sqlite"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_captures(parser)
    parser.add_argument("--json", action="store_true", help="print JSON (docs/json/puppetdb.schema.json)")
    add_rules(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Show what masters asked of PuppetDB and stored there, by the runs that caused it: what each request was, how
    large, how long the compilation of a catalog waited for it, and what PuppetDB refused or cannot store. Name the
    capture of the proxy before PuppetDB and that of the agents. Secrets are masked."""
    with shown() as watch, as_one(arguments.captures, watch) as path, Capture.open(path) as capture:
        joined = puppetdb.joined(Analyzer().steps(watched(capture.records(), watch, capture.count())))
    if arguments.json:
        print_json(puppetdb_text.fields(joined))
        return 0
    if not joined.runs and not joined.others:
        print_line("There are no requests to PuppetDB. docs/puppetdb.md says how they are recorded.")
    for served in joined.runs:
        print_line(puppetdb_text.head(served))
        _print(served.calls)
    if joined.others:
        print_line(puppetdb_text.others(joined))
        _print(joined.others)
    return 0


def _print(calls: list[Call]) -> None:
    print_rows(puppetdb_text.COLUMNS, map(puppetdb_text.row, calls), below="request", spare=("sent", "received"))
    for line in puppetdb_text.found(calls):
        for part in wording.flowing(line, columns(), 4):
            print_line(part)
    print_line("")
