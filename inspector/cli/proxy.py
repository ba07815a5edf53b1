"""``puppet-inspector proxy``: run the proxy between agents and their master."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from inspector.host import privileges
from inspector.proxy import options, options_file, workers

if TYPE_CHECKING:
    import argparse

EXAMPLE = "puppet-inspector proxy --set puppet_master=puppet.example"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="NAME=VALUE",
        help="set an option of the addon, as for mitmdump (docs/proxy.md lists them)",
    )
    parser.add_argument("--options", type=Path, metavar="FILE", help="YAML with options of the addon, like mitmproxy's "
                        "config.yaml; --set comes before it")  # fmt: skip
    parser.add_argument(
        "--workers",
        type=int,
        default=1,
        metavar="N",
        help="number of processes on the port, each for some addresses (default: 1)",
    )
    parser.add_argument("--user", metavar="NAME", help="when started as root: become this user before anything is read")


def execute(arguments: argparse.Namespace) -> int:
    """Run the proxy with the addon's options on an engine of its own, to stay on in front of a master: it costs a
    fraction of `mitmdump -w` (docs/performance.md), and has no scripts and no user interface."""
    given = options.parse_assignments(arguments.set)
    file = options.parse_assignments(options_file.assignments_of(arguments.options)) if arguments.options else {}
    if arguments.user:
        privileges.drop(arguments.user)
    return workers.run(file | given, arguments.workers)
