"""``puppet-inspector tables``: turn captures into tables, and find what only several of them show."""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from inspector.capture import paths
from inspector.cli.arguments import add_captures, add_master_logs, add_rules
from inspector.cli.output import print_json, print_line
from inspector.cli.progress import shown
from inspector.cli.reading import Unreadable, across_places
from inspector.columns import Count, Utc
from inspector.errors import InspectorError
from inspector.fleet import analysis, conversion, database
from inspector.fleet.directory import TableDirectory, default_site, site_of
from inspector.formats.master_logs import MasterLogs
from inspector.model import Severity
from inspector.text import clean, plural, utc

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence

EXAMPLE = "puppet-inspector tables captures/ -o tables/ --site paris"
PRINTED = 20
"""Findings that are printed."""


class ConvertedCapture(conversion.Converted, frozen=True, kw_only=True):
    """A capture, and what became of it."""

    path: str
    """The capture's path."""
    error: str | None = None
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
    places: list[str]
    """The same, with the names of the captures' files."""


class Tables(msgspec.Struct):
    """What became of each capture, and what only several of them show."""

    directory: str
    """The directory of the tables."""
    site: str
    """The name of the site in it."""
    captures: list[ConvertedCapture]
    """By path."""
    compacted: Count
    """Files that became part of others."""
    findings: list[FleetFinding]
    """The rows of the table fleet_findings, the worst first."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_captures(parser)
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", required=True, help="the directory of the tables")
    parser.add_argument(
        "--site", type=site_of, metavar="NAME", help="where they were recorded (default: this host's name)"
    )
    parser.add_argument(
        "--shared", action="store_true", help="tables that may leave: without values, names are pseudonyms, as `share`"
    )
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--jobs", type=int, metavar="N", help="processes on this machine (default: one for each core)")
    where.add_argument("--scheduler", metavar="ADDRESS", default="", help="a Dask scheduler, tcp://host:8786: its "
                       "workers see captures and tables by the same paths")  # fmt: skip
    add_master_logs(parser)
    parser.add_argument("--json", action="store_true", help="print JSON (docs/json/tables.schema.json)")
    add_rules(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Turn captures into Parquet files that DuckDB, pandas, Spark and others read, several at once: runs, exchanges,
    findings, connections, handshakes, certificates, CRLs, facts, resources and their changes (docs/tables.md); and find
    what no single capture shows, such as two hosts with one certname (docs/fleet.md). A capture that is converted again
    is there once, and one that did not change is left as it is. Secrets are masked as on the screen; the tables stay on
    the site."""
    database.check()
    captures = paths.chosen(arguments.captures)
    jobs = arguments.jobs if arguments.jobs is not None else len(os.sched_getaffinity(0))
    if jobs < 1:
        raise InspectorError(f"{jobs} processes cannot convert anything.", "Give --jobs a number from 1 on.")
    if arguments.shared and (arguments.jobs is not None or arguments.scheduler):
        raise InspectorError(
            "Captures to pass on get their pseudonyms together, in one process.",
            "Leave --jobs and --scheduler out, or --shared.",
        )
    site = arguments.site or ("closed" if arguments.shared else default_site())
    directory = TableDirectory.create(arguments.output)
    found: list[conversion.Result] = []
    with across_places(captures, arguments.captures) as (read, names), shown() as watch:
        unreadable = Unreadable(read)
        logs = MasterLogs(arguments.access_log, arguments.server_log)
        # Those to pass on are converted together, and what was merged no other host has.
        if arguments.shared or names or (len(read) == 1 and arguments.jobs is None and not arguments.scheduler):
            results = conversion.convert_all(read, directory, site, watch, closed=arguments.shared, logs=logs)
        else:
            results = analysis.analyse(
                read, directory, site, jobs=jobs, scheduler=arguments.scheduler, logs=logs, watch=watch
            )
        for result in results:
            result = result._replace(path=names.get(result.path, result.path))
            found.append(result)
            if result.error is not None:
                unreadable.report(result.error)
                continue
            for note in result.converted.notes:
                print(f"puppet-inspector: {clean(result.path.name)}: {clean(note)}", file=sys.stderr)
            if not arguments.json:
                print_line(line(result.path, result.converted))
        gone = directory.compact(conversion.today())
        findings = directory.conclude()
    if arguments.json:
        rows = [
            ConvertedCapture(
                **msgspec.structs.asdict(each.converted),
                path=str(each.path),
                error=each.error.message if each.error else None,
            )
            for each in sorted(found, key=lambda each: each.path)
        ]
        dated = [FleetFinding(**finding | {"time": utc(finding["time"])}) for finding in findings]
        print_json(Tables(str(arguments.output), site, rows, gone, dated))
    elif len(found) > 1 or findings:
        _print_findings(findings)
        converted = [each.converted for each in found if each.error is None]
        print_line(_summary(len(converted), sum(each.records for each in converted), len(findings)))
    return unreadable.status


def _print_findings(findings: Sequence[Mapping[str, Any]]) -> None:
    for finding in findings[:PRINTED]:
        node = f"{finding['certname']}: " if finding["certname"] else ""
        print_line(f"{finding['rule']} {finding['severity']}: {clean(node + finding['message'])}")
        print_line(f"    in {clean(', '.join(finding['places'][:6]))}")
    if len(findings) > PRINTED:
        print_line(f"... and {len(findings) - PRINTED:,} more in the table fleet_findings, the worst first")


def _summary(captures: int, records: int, findings: int) -> str:
    what = plural(findings, "finding") if findings else "nothing"
    return f"{plural(captures, 'capture')}, {plural(records, 'record')}; {what} that only several captures show"


def line(path: Path, converted: conversion.Converted) -> str:
    """What became of a capture, as a line."""
    name, records = clean(str(path)), plural(converted.records, "record")
    if not converted.capture:
        return f"{name}: it contains no record"
    trouble = f"; {clean(converted.trouble)}" if converted.trouble else ""
    return f"{name}: {'unchanged, ' if converted.unchanged else ''}{records}{trouble}"


# -- for other commands --------------------------------------------------------------------------------------


@contextlib.contextmanager
def opened(given: Sequence[Path], *, rules: bool = False) -> Iterator[tuple[TableDirectory, int]]:
    """Open a directory of tables, or make them of captures in a temporary one; also the exit status if nothing else is
    wrong. With ``rules`` the command line names the site's rules. Raises InspectorError."""
    tables = [path for path in given if path.is_dir() and not any(path.glob("*.sqlite"))]
    if not tables:
        with tempfile.TemporaryDirectory(prefix="puppet-inspector-") as folder:
            status = _convert(given, Path(folder))
            yield TableDirectory.open(Path(folder)), status
        return
    if len(given) > 1:
        raise InspectorError(
            f"{tables[0]} is a directory without captures, and not the only argument.",
            "Give one directory of tables, or captures.",
        )
    if rules:
        raise InspectorError(
            "Rules are applied when captures are read, not to tables.",
            "Convert the captures with them: puppet-inspector tables CAPTURE -o DIR --rules YAML",
        )
    yield TableDirectory.open(tables[0]), 0


def _convert(given: Sequence[Path], folder: Path) -> int:
    captures = paths.chosen(given)
    unreadable = Unreadable(captures)
    with across_places(captures, given) as (read, _), shown() as watch:
        directory = TableDirectory.create(folder)
        for result in conversion.convert_all(read, directory, default_site(), watch):
            if result.error is not None:
                unreadable.report(result.error)
    return unreadable.status
