"""``puppet-inspector fleet``: analyse the captures of many proxies together."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from inspector.capture import paths
from inspector.cli.arguments import add_rules
from inspector.cli.output import print_json, print_line
from inspector.cli.progress import shown
from inspector.cli.tables import add_site, line
from inspector.columns import Count, Utc
from inspector.errors import InspectorError
from inspector.fleet import analysis, conversion
from inspector.fleet.directory import TableDirectory, default_site
from inspector.fleet.overview import fields, overview_of
from inspector.formats import files
from inspector.model import Severity
from inspector.report import fleet as report
from inspector.text import clean, plural, size, utc

if TYPE_CHECKING:
    import argparse

PRINTED = 20
"""Findings that are printed."""
EXAMPLE = "puppet-inspector fleet analyse paris/ rome/ -o tables/"


class FleetCapture(msgspec.Struct):
    """What became of a capture."""

    path: str
    """The capture's path."""
    capture: str
    """What identifies it in the tables; empty: it has no records."""
    records: Count
    """How many of its records are in the tables."""
    trouble: str
    """What of it could not be read; empty if all could."""
    unchanged: bool
    """It was there already, as it is now."""
    error: str | None
    """Why it could not be converted; null if it could."""


class FleetFinding(msgspec.Struct):
    """What only several captures show."""

    certname: str | None
    """The node; null: it is about several."""
    time: Utc
    """When the run that completes it began."""
    rule: str
    """The rule, as ``explain`` takes it."""
    severity: Severity
    message: str
    runs: list[str]
    """The runs that show it, as capture:run."""


class Analysed(msgspec.Struct):
    """What became of each capture, and what only several of them show."""

    directory: str
    """The directory of the tables."""
    site: str
    """The name of the site in it."""
    captures: list[FleetCapture]
    findings: list[FleetFinding]
    """The rows of the table fleet_findings, the worst first."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("analyse", "report"), help="analyse: turn captures into tables, several at "
                        "once, and find what only several captures show; report: one HTML file of a directory of "
                        "tables")  # fmt: skip
    parser.add_argument("paths", metavar="path", type=Path, nargs="+", help="captures, or directories of them; of a "
                        "report: the directory of tables")  # fmt: skip
    parser.add_argument("-o", "--output", type=Path, metavar="PATH", help="the directory of the tables, or the report "
                        "to create (default: the directory's name with .html)")  # fmt: skip
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--jobs", type=int, metavar="N", help="processes on this machine (default: one for each core)")
    where.add_argument("--scheduler", metavar="ADDRESS", default="", help="a Dask scheduler, tcp://host:8786: its "
                       "workers see captures and tables by the same paths")  # fmt: skip
    add_site(parser)
    parser.add_argument(
        "--json", action="store_true", help="print JSON (docs/json/fleet.schema.json, fleet-report.schema.json)"
    )
    add_rules(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Turn captures into tables like `tables`, several at once, and find what no single capture shows: two hosts with
    one certname, one key under two names, resources that change in every run, compilers that take turns (table
    fleet_findings, docs/fleet.md). What is interrupted goes on where it was: captures that are done are left as they
    are. `report` makes one HTML file of the tables: nodes by state, findings over time, certificates, times, what never
    settles."""
    return _report(arguments) if arguments.action == "report" else _analyse(arguments)


def _analyse(arguments: argparse.Namespace) -> int:
    captures = paths.chosen(arguments.paths)
    jobs = arguments.jobs if arguments.jobs is not None else len(os.sched_getaffinity(0))
    if jobs < 1:
        raise InspectorError(f"{jobs} processes cannot analyse anything.", "Give --jobs a number from 1 on.")
    if arguments.output is None:
        raise InspectorError("It is not said where the tables are to be.", "Name a directory with -o.")
    site = arguments.site or default_site()
    directory = TableDirectory.create(arguments.output)
    found, failed = [], 0
    with shown() as watch:
        done = analysis.analyse(captures, directory, site, jobs=jobs, scheduler=arguments.scheduler, watch=watch)
        for result in done:
            found.append(result)
            if result.error is not None:
                failed += 1
                print(f"puppet-inspector: {clean(result.error.message)}", file=sys.stderr)
                if result.error.hint:
                    print(f"  {clean(result.error.hint)}", file=sys.stderr)
            elif not arguments.json:
                print_line(line(result.path, result.converted))
        directory.compact(conversion.today())
        directory.conclude()
    findings = directory.concluded()
    if arguments.json:
        rows = [
            FleetCapture(
                path=str(each.path),
                capture=each.converted.capture,
                records=each.converted.records,
                trouble=each.converted.trouble,
                unchanged=each.converted.unchanged,
                error=each.error.message if each.error else None,
            )
            for each in sorted(found, key=lambda each: each.path)
        ]
        dated = [FleetFinding(**finding | {"time": utc(finding["time"])}) for finding in findings]
        print_json(Analysed(str(arguments.output), site, rows, dated))
    else:
        for finding in findings[:PRINTED]:
            node = f"{finding['certname']}: " if finding["certname"] else ""
            print_line(f"{finding['rule']} {finding['severity']}: {clean(node + finding['message'])}")
            print_line(f"    in {clean(', '.join(map(str, finding['runs'][:6])))}")
        if len(findings) > PRINTED:
            print_line(f"... and {len(findings) - PRINTED:,} more in the table fleet_findings, the worst first")
        print_line(_summary(len(found) - failed, sum(each.converted.records for each in found), len(findings)))
    return 2 if failed else 0


def _report(arguments: argparse.Namespace) -> int:
    if len(arguments.paths) != 1 or not arguments.paths[0].is_dir():
        raise InspectorError(
            "A report is made of one directory of tables.",
            "First convert captures: puppet-inspector fleet analyse CAPTURES -o tables/",
        )
    if arguments.jobs is not None or arguments.scheduler or arguments.site or arguments.rules or arguments.rules_dir:
        raise InspectorError(
            "--jobs, --scheduler, --site and --rules are for captures: a report is made of tables.", "Leave them out."
        )
    (root,) = arguments.paths
    directory = TableDirectory.open(root)
    name = root.resolve().name
    output = arguments.output or root.resolve().with_name(f"{name}.html")
    if not arguments.json:
        files.must_be_new(output)
    with shown() as watch:
        found = overview_of(directory, watch)
        if arguments.json:
            print_json(fields(found))
            return 0
        text = report.html(found, name)
    files.write([text], output)
    print_line(f"{clean(str(output))} written, {size(len(text.encode()))}: {plural(len(found.nodes), 'node')}")
    return 0


def _summary(captures: int, records: int, findings: int) -> str:
    what = plural(findings, "finding") if findings else "nothing"
    return f"{plural(captures, 'capture')}, {plural(records, 'record')}; {what} that only several captures show"
