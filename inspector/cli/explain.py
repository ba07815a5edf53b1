"""``puppet-inspector explain``: what an endpoint, a rule or an error message is about."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.cli.output import print_json
from inspector.explain import reference

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", nargs="+", help="a rule (B23), an endpoint (file_metadatas), a request path, or an "
                         "error message as the agent printed it")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="as JSON")


def execute(arguments: argparse.Namespace) -> int:
    """What an endpoint is for, who calls it, who may; what a rule means and what to do; or what an error message
    means that an agent printed."""

    found = reference.explain(" ".join(arguments.what))
    if arguments.json:
        print_json(found)
    else:
        for title, text in found.items():
            print(f"{title + ':':<10} {text}")
    return 0
