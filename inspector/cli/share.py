"""``puppet-inspector share``: a capture to give away: without secrets and names, with the same findings."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.cli.output import print_json
from inspector.formats.share import share

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("capture", type=Path)
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="default: CAPTURE-shared.sqlite, beside it")
    parser.add_argument("--json", action="store_true", help="say what was made as JSON")


def execute(arguments: argparse.Namespace) -> int:
    """Make a capture that says nothing of whose it is and analyses to the same findings. Secrets are masked; certnames,
    host names, addresses, fingerprints, SSH keys and serial numbers replaced, the same by the same everywhere;
    certificates made anew. Names of environments, modules, resources and users stay, and so does what manifests and
    files say otherwise: look through it before you give it away."""

    capture = arguments.capture
    target = arguments.output or capture.with_name(f"{capture.stem}-shared.sqlite")
    number = share(capture, target, lambda told: print(f"puppet-inspector: {told}", file=sys.stderr))
    if arguments.json:
        print_json({"capture": str(target), "records": number})
    else:
        print(f"{number} records are in {target}, without secrets and by other names: look through it all the same")
    return 0
