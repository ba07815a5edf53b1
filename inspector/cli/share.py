"""``puppet-inspector share``: copy a capture without secrets and names, with the same findings."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.cli.output import print_json
from inspector.formats.share import share

if TYPE_CHECKING:
    import argparse

EXAMPLE = "puppet-inspector share captures/FILE.sqlite"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("capture", type=Path, help="the capture file")
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="default: CAPTURE-shared.sqlite beside CAPTURE"
    )
    parser.add_argument("--json", action="store_true", help="print the result as JSON")


def execute(arguments: argparse.Namespace) -> int:
    """Copy a capture so that it does not reveal its origin but gives the same findings. Secrets are masked. Certnames,
    host names, addresses, fingerprints, SSH keys and serial numbers are replaced by consistent pseudonyms, and
    certificates are reissued. Names of environments, modules, resources and users stay, and so does other text in
    manifests and files: review the copy before you share it."""
    capture = arguments.capture
    target = arguments.output or capture.with_name(f"{capture.stem}-shared.sqlite")
    number = share(capture, target, lambda note: print(f"puppet-inspector: {note}", file=sys.stderr))
    if arguments.json:
        print_json({"capture": str(target), "records": number})
    else:
        print(
            f"{number} records written to {target}, without secrets and with pseudonyms: "
            "review the copy before you share it"
        )
    return 0
