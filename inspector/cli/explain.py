"""``puppet-inspector explain``: explain an endpoint, a rule or an error message."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.cli.output import print_json
from inspector.explain import reference

if TYPE_CHECKING:
    import argparse

EXAMPLE = "puppet-inspector explain B23"
LABELS = {
    "rule": {"remedy": "fix", "seen": "checked"},
    "message": {"remedy": "fix", "seen": "visible"},
    "endpoint": {"asked by": "sent by"},
}
"""Labels in the text output that differ from the JSON keys, by the kind of explanation (its first key)."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("what", nargs="+", help="a rule (B23), an endpoint (file_metadatas), a request path, or an "
                         "agent's error message")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="print JSON (docs/json/explain.schema.json)")


def execute(arguments: argparse.Namespace) -> int:
    """Explain an endpoint (purpose, callers, access), a rule (meaning, fix), or an agent's error message."""
    explanation = reference.explain(" ".join(arguments.what))
    if arguments.json:
        print_json(explanation)
    else:
        labels = LABELS[next(iter(explanation))]
        for key, text in explanation.items():
            print(f"{labels.get(key, key) + ':':<11} {text}")
    return 0
