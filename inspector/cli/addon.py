"""``puppet-inspector addon``: print the path of the mitmproxy addon."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from inspector import installation

if TYPE_CHECKING:
    import argparse

EXAMPLE = 'mitmdump -s "$(puppet-inspector addon)"'


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON")


def execute(arguments: argparse.Namespace) -> int:
    """Print the path of the mitmproxy addon, for mitmdump's option -s."""
    path = installation.addon()
    print(json.dumps({"addon": str(path)}) if arguments.json else path)
    return 0
