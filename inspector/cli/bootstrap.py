"""``puppet-inspector bootstrap``: the certificate bootstrap of an agent, rung by rung."""

from __future__ import annotations

import difflib
import time
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.analysis.analyzer import Analyzer
from inspector.capture.store import Capture
from inspector.cli.arguments import moment
from inspector.cli.output import print_json
from inspector.errors import InspectorError
from inspector.explain import bootstrap_text
from inspector.explain.bootstrap import Ladders
from inspector.summaries import wording

if TYPE_CHECKING:
    import argparse


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("capture", type=Path)
    parser.add_argument("certname", nargs="?", help="the agent, or its address if it said no name (default: all)")
    parser.add_argument("--at", metavar="DATE", help="judge as of this day or moment, 2027-03-02 (default: now)")
    parser.add_argument("--json", action="store_true", help="as JSON (docs/json/bootstrap.schema.json)")


def execute(arguments: argparse.Namespace) -> int:
    """The agent's SSL state machine as the wire shows it, a rung a state: what was seen, where it hangs and since
    when, whose keys are whose, and until when what was served will do."""

    analyzer, ladders = Analyzer(), Ladders()
    with Capture.open(arguments.capture) as records:
        for record in records.records():
            ladders.add(analyzer.feed(record))
    analyzer.finish()
    names = ladders.names()
    if arguments.certname and arguments.certname not in names:
        near = difflib.get_close_matches(arguments.certname, names, 3) or names[:10]
        raise InspectorError(
            f"{arguments.capture} shows no bootstrap of {arguments.certname!r}.",
            f"It shows {', '.join(map(wording.clean, near))}." if near else "It shows no certificate requests at all.",
        )
    at = moment(arguments.at) if arguments.at else time.time()
    told = [ladders.of(name, at) for name in ([arguments.certname] if arguments.certname else names)]
    if arguments.json:
        print_json([bootstrap_text.plain(ladder) for ladder in told])
        return 0
    for ladder in told:
        for line in bootstrap_text.lines(ladder):
            print(line)
    if not told:
        print("There is no bootstrap in it.")
    return 0
