"""``puppet-inspector follow``: the lines of a capture while a proxy writes it; ends with Ctrl-C."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from inspector.cli.arguments import add_filter
from inspector.summaries import follow

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("capture", type=Path, nargs="?", help="default: the latest in captures/, then every new one")
    parser.add_argument("--all", action="store_true", help="from its beginning, not from its end")
    add_filter(parser)


def execute(arguments: argparse.Namespace) -> int:
    """The proxy's lines while it records: each exchange with its number, and each run that is over with its
    verdict. Also through a pipe, and on another terminal than the proxy's."""

    for line in follow.follow(arguments.capture, arguments.filter, everything=arguments.all):
        print(line, flush=True)
    return 0
