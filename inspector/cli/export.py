"""``puppet-inspector export``: a capture for other tools: mitmproxy's flows, HAR or jsonl."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.cli.arguments import add_filter
from inspector.errors import InspectorError
from inspector.formats import exporting

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("capture", type=Path)
    parser.add_argument("--format", choices=("flows", "har", "jsonl"), help="default: by FILE's ending, or jsonl")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="a new file (default: standard output)")
    parser.add_argument("--with-secrets", action="store_true", help="as they were on the wire, not masked")
    add_filter(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Write the records of a capture for other tools: flows that mitmproxy opens, an HTTP archive (HAR) that browsers
    open, or a line of JSON each (docs/json/export.schema.json). Secrets are masked. `import` reads all of them."""

    output = arguments.output
    kind = arguments.format or (exporting.format_of(output) if output else "jsonl")
    if kind == "flows" and output is None:
        raise InspectorError("Flows are no text.", "Name a file for them: -o FILE.mitm")
    chosen = exporting.Chosen.by(arguments.capture, arguments.filter)
    if output is None:
        for line in chosen.lines(kind, secrets=arguments.with_secrets):
            print(line)
    else:
        number = chosen.write(kind, output, secrets=arguments.with_secrets)
        masked = "" if arguments.with_secrets else ", with secrets masked (--with-secrets keeps them)"
        print(f"{number} records are in {output}{masked}")
    for note in chosen.notes(kind):
        print(f"puppet-inspector: {note}", file=sys.stderr)
    return 0
