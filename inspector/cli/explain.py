"""``puppet-inspector explain``: explain an endpoint, a rule or an error message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.cli.output import print_json
from inspector.explain import reference

if TYPE_CHECKING:
    import argparse

EXAMPLE = "puppet-inspector explain B23"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", nargs="+", help="a rule (B23), an endpoint (file_metadatas), a request path, or an "
                         "agent's error message")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON")


def execute(arguments: argparse.Namespace) -> int:
    """Explain an endpoint (purpose, callers, access), a rule (meaning, fix), or an agent's error message."""
    explanation = reference.explain(" ".join(arguments.what))
    if arguments.json:
        print_json(explanation)
    else:
        for title, text in explanation.items():
            print(f"{title + ':':<10} {text}")
    return 0
