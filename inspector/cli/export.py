"""``puppet-inspector export``: export a capture for other tools: mitmproxy flows, HAR, jsonl, or what viewers show."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.capture import paths
from inspector.cli.arguments import (
    add_captures,
    add_filter,
    add_master_logs,
    add_opening,
    add_rules,
    logs_named,
    opened_by,
)
from inspector.cli.master_logs import times_of
from inspector.cli.progress import beside_output, shown
from inspector.cli.reading import as_one
from inspector.errors import InspectorError
from inspector.formats import exporting, files, wire
from inspector.formats.outgoing import summary

if TYPE_CHECKING:
    import argparse

EXAMPLE = "puppet-inspector export captures/FILE.sqlite -o FILE.har"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_captures(parser)
    parser.add_argument(
        "--format", choices=tuple(exporting.FORMATS), help="default: from the file name's ending, or jsonl"
    )
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="the file to create (default: standard output)"
    )
    add_opening(parser)
    parser.add_argument(
        "--wire",
        action="store_true",
        help="as pcapng: what was on the wire (puppet_wire), with what decrypts it; nothing is masked",
    )
    add_master_logs(parser)
    parser.add_argument("--with-secrets", action="store_true", help="mask and withhold nothing")
    add_filter(parser)
    add_rules(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Export the records of a capture: as flows for mitmproxy, as an HTTP archive (HAR) for browsers, as one line of
    JSON per record (docs/json/export.schema.json), or for a viewer (docs/viewers.md). Secrets are masked. Facts,
    parameters, logs and file contents are withheld unless `--with` opens them: stand-ins take their place. Names,
    findings and error texts stay. `import` reads the first three formats."""
    output = arguments.output
    kind = arguments.format or (exporting.format_of(output) if output else "jsonl")
    if logs_named(arguments) and "times" not in exporting.FORMATS[kind].takes:
        raise InspectorError(
            f"The format {kind} has no place for what a master's logs say.",
            "Pass a file: -o FILE.trace.json or -o FILE.otlp.json",
        )
    if arguments.wire:
        return _export_wire(arguments, kind)
    opened = None if arguments.with_secrets else opened_by(arguments.opened)
    # Before a large capture is read.
    if output is None:
        exporting.text_of(kind)
    else:
        files.must_be_new(output, files.OPTION)
    with shown() as watch, as_one(arguments.captures, watch) as capture:
        chosen = exporting.Chosen.by(capture, arguments.filter, opened, watch)
        chosen.times = times_of(arguments, capture, watch)
        if output is None:
            for line in chosen.lines(kind, watch, beside_output(watch)):
                print(line)
        else:
            number = chosen.write(kind, output, watch)
    if output is not None:
        masked = "" if arguments.with_secrets else ", secrets masked (--with-secrets keeps them)"
        print(f"{number} records written to {output}{masked}")
    for note in (*chosen.notes(kind), *filter(None, [summary(chosen.withheld)])):
        print(f"puppet-inspector: {note}", file=sys.stderr)
    return 0


def _export_wire(arguments: argparse.Namespace, kind: str) -> int:
    """Export what was on the wire."""
    output = arguments.output
    if kind != "pcapng" or output is None:
        raise InspectorError("--wire needs a file for packets.", "Pass a file: -o FILE.pcapng")
    files.must_be_new(output, files.OPTION)
    capture, *others = paths.chosen(arguments.captures)
    if others:
        raise InspectorError("What was on the wire is a file beside each capture.", "Name one capture.")
    with shown() as watch:
        legs = exporting.Chosen.by(capture, arguments.filter, None, watch).legs()
        number = wire.write(capture, legs, output)
    print(f"{number} connections written to {output}, with the secrets that decrypt them: everything in it can be read")
    return 0
