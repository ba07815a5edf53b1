"""``puppet-inspector proxy``: the proxy, between agents and their master."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.host import privileges
from inspector.proxy import options
from inspector.proxy.fast import workers

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--set", action="append", default=[], metavar="OPTION=VALUE", help="as for mitmdump (README)")
    parser.add_argument(
        "--workers",
        type=int,
        default=1,
        metavar="N",
        help="processes on the port, each for some addresses (default: 1)",
    )
    parser.add_argument("--user", metavar="NAME", help="started as root: go on as this user, before anything is read")


def execute(arguments: argparse.Namespace) -> int:
    """The addon with the same options in a mitmproxy of our own, which has only the parts that a Puppet proxy needs:
    about half of what `mitmdump -w` costs. It has no scripts and no user interface."""

    given = options.chosen(arguments.set)
    if arguments.user:
        privileges.drop(arguments.user)
    return workers.run(given, arguments.workers)
