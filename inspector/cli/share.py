"""``puppet-inspector share``: copy a capture without secrets and names, with the same findings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from inspector.capture import paths
from inspector.cli.arguments import add_captures, add_opening, add_rules, opened_by
from inspector.cli.output import print_json
from inspector.cli.progress import shown
from inspector.cli.reading import as_one
from inspector.columns import Count
from inspector.formats.outgoing import Content, summary
from inspector.formats.share import share

if TYPE_CHECKING:
    import argparse

EXAMPLE = "puppet-inspector share captures/FILE.sqlite"


class Shared(msgspec.Struct):
    """The capture that was made."""

    capture: str
    """Its path."""
    records: Count
    """The number of its records."""
    withheld: dict[Content, Count]
    """How many values were withheld, by what opens them (--with); all opens other."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_captures(parser)
    parser.add_argument(
        "-o", "--output", type=Path, metavar="FILE", help="default: CAPTURE-shared.sqlite in the working directory"
    )
    add_opening(parser)
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    add_rules(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Copy a capture so that it does not reveal its origin but gives the same findings. Secrets are masked. Certnames,
    host names, addresses and fingerprints are replaced by consistent pseudonyms, and certificates are reissued. Facts,
    parameters, logs and file contents are withheld unless `--with` opens them: stand-ins take their place. Only what
    is known to reveal nothing stays: types, versions, small numbers, words of Puppet, names of classes and
    environments."""
    opened = opened_by(arguments.opened)
    with shown() as watch, as_one(arguments.captures, watch) as capture:
        target = arguments.output or paths.made_from(capture, "-shared.sqlite")
        number, withheld = share(capture, target, opened, watch)
    if arguments.json:
        print_json(Shared(str(target), number, {content: withheld[content] for content in Content}))
        return 0
    review = ": review the copy before you share it" if opened else ""
    print(f"{number} records written to {target}, without secrets and with pseudonyms{review}")
    if withheld:
        print(summary(withheld))
    return 0
