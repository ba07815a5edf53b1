"""``puppet-inspector tables``: turn captures into tables for SQL and other tools."""

from __future__ import annotations

import contextlib
import sys
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from inspector.capture import paths
from inspector.cli.arguments import add_captures, add_master_logs, add_rules
from inspector.cli.output import print_json, print_line
from inspector.cli.progress import shown
from inspector.cli.reading import Unreadable
from inspector.columns import Count
from inspector.errors import InspectorError
from inspector.fleet import conversion
from inspector.fleet.directory import TableDirectory, default_site, site_of
from inspector.formats.master_logs import MasterLogs
from inspector.text import clean, plural

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Sequence

EXAMPLE = "puppet-inspector tables captures/ -o tables/ --site paris"


class ConvertedCapture(conversion.Converted, frozen=True, kw_only=True):
    """A capture that was converted."""

    path: str
    """The capture's path."""


class Tables(msgspec.Struct):
    """The captures that were converted."""

    directory: str
    """The directory of the tables."""
    site: str
    """The name of the site in it."""
    captures: list[ConvertedCapture]
    compacted: Count
    """Files that became part of others (--compact)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_captures(parser)
    parser.add_argument("-o", "--output", type=Path, metavar="DIR", required=True, help="the directory of the tables")
    add_site(parser)
    parser.add_argument(
        "--shared", action="store_true", help="tables that may leave: without values, names are pseudonyms, as `share`"
    )
    parser.add_argument("--compact", action="store_true", help="then make one file of those of each day that is over")
    add_master_logs(parser)
    parser.add_argument("--json", action="store_true", help="print JSON (docs/json/tables.schema.json)")
    add_rules(parser)


def add_site(parser: argparse.ArgumentParser) -> None:
    """Add the option that names where captures were recorded."""
    parser.add_argument(
        "--site", type=site_of, metavar="NAME", help="where they were recorded (default: this host's name)"
    )


def execute(arguments: argparse.Namespace) -> int:
    """Turn captures into Parquet files that DuckDB, pandas, Spark and others read: runs, exchanges, findings,
    connections, handshakes, certificates, CRLs, facts, resources and their changes (docs/tables.md). A capture that is
    converted again is there once, and one that did not change is left as it is. Secrets are masked as on the screen;
    the tables stay on the site."""
    captures = paths.chosen(arguments.captures)
    site = arguments.site or ("closed" if arguments.shared else default_site())
    directory = TableDirectory.create(arguments.output)
    logs = MasterLogs(arguments.access_log, arguments.server_log)
    unreadable = Unreadable(captures)
    found: list[tuple[Path, conversion.Converted]] = []
    with shown() as watch:
        for result in conversion.convert_all(captures, directory, site, watch, closed=arguments.shared, logs=logs):
            if result.error is not None:
                unreadable.report(result.error)
            else:
                found.append((result.path, result.converted))
                for note in result.converted.notes:
                    print(f"puppet-inspector: {clean(result.path.name)}: {clean(note)}", file=sys.stderr)
                if not arguments.json:
                    print_line(line(result.path, result.converted))
        gone = directory.compact(conversion.today()) if arguments.compact else 0
    if arguments.json:
        rows = [ConvertedCapture(**msgspec.structs.asdict(converted), path=str(path)) for path, converted in found]
        print_json(Tables(str(arguments.output), site, rows, gone))
    elif gone:
        print(f"{plural(gone, 'file')} {'was' if gone == 1 else 'were'} compacted into others")
    return unreadable.status


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
    with shown() as watch:
        directory = TableDirectory.create(folder)
        for result in conversion.convert_all(captures, directory, default_site(), watch):
            if result.error is not None:
                unreadable.report(result.error)
    return unreadable.status
