"""``puppet-inspector bootstrap``: explain how an agent got its certificate, step by step."""

from __future__ import annotations

import difflib
import time
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.analysis.analyzer import Analyzer
from inspector.capture import paths
from inspector.capture.store import Capture
from inspector.cli.arguments import add_rules, moment
from inspector.cli.output import columns, print_json, print_unanalyzed
from inspector.cli.progress import shown
from inspector.errors import InspectorError
from inspector.explain import bootstrap_text
from inspector.explain.bootstrap import Bootstraps
from inspector.progress import watched
from inspector.summaries import wording
from inspector.text import clean

if TYPE_CHECKING:
    import argparse

EXAMPLE = "puppet-inspector bootstrap captures/FILE.sqlite web1.example"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("capture", type=Path, nargs="?", help="default: the newest in captures/")
    parser.add_argument(
        "certname", nargs="?", help="the agent, or its address if its name is unknown (default: all agents)"
    )
    parser.add_argument(
        "--at", metavar="DATE", help="evaluate validity at this date or time, e.g. 2027-03-02 (default: now)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON (docs/json/bootstrap.schema.json)")
    add_rules(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Explain how each agent got its certificate, one line per state of its SSL state machine: the requests and
    answers, where and since when the agent is stuck, the keys, and until when the downloaded files are valid."""
    capture = arguments.capture or paths.newest()
    analyzer, bootstraps = Analyzer(), Bootstraps()
    with Capture.open(capture) as records, shown() as watch:
        for step in analyzer.steps(watched(records.records(), watch, records.count())):
            bootstraps.add(step)
    analyzer.finish()
    names = bootstraps.names()
    if arguments.certname and arguments.certname not in names:
        near = difflib.get_close_matches(arguments.certname, names, 3) or names[:10]
        raise InspectorError(
            f"{capture} contains no bootstrap of {arguments.certname!r}.",
            f"It contains {', '.join(map(clean, near))}." if near else "It contains no certificate requests.",
        )
    at = moment(arguments.at) if arguments.at else time.time()
    chosen = [bootstraps.of(name, at) for name in ([arguments.certname] if arguments.certname else names)]
    if arguments.json:
        print_json([bootstrap_text.plain(bootstrap) for bootstrap in chosen])
        return 0
    for bootstrap in chosen:
        for line in bootstrap_text.lines(bootstrap, columns() or wording.PLAIN):
            print(line)
    if not chosen:
        print("The capture contains no bootstrap.")
    print_unanalyzed(analyzer.unanalyzed.items(), aside=True)
    return 0
