"""``puppet-inspector follow``: print the lines of a capture while a proxy writes it, until Ctrl-C."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from inspector.cli.arguments import add_filter, add_rules
from inspector.cli.output import columns
from inspector.summaries import follow

if TYPE_CHECKING:
    import argparse

EXAMPLE = "puppet-inspector follow --filter 'status:>=400'"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("capture", type=Path, nargs="?", help="a capture, or a directory: the newest in it, then every "
                        "new one (default: captures/)")  # fmt: skip
    parser.add_argument("--all", action="store_true", help="start at the beginning of the capture, not at its end")
    add_filter(parser)
    add_rules(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Print a line per exchange, with its record number, and a verdict per finished run, while a proxy records. Works
    in a pipe, and on another terminal than the proxy's."""
    for line in follow.follow(arguments.capture, arguments.filter, everything=arguments.all, width=columns()):
        print(line, flush=True)
    return 0
