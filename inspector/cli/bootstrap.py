"""``puppet-inspector bootstrap``: explain how an agent got its certificate, step by step."""

from __future__ import annotations

import difflib
import time
from pathlib import Path
from typing import TYPE_CHECKING

from inspector import regex
from inspector.analysis.analyzer import Analyzer
from inspector.capture.store import Capture
from inspector.cli.arguments import add_agent, add_captures, add_rules, moment
from inspector.cli.output import columns, print_json, print_unanalyzed
from inspector.cli.progress import shown
from inspector.cli.reading import as_one
from inspector.errors import InspectorError
from inspector.explain import bootstrap_text
from inspector.explain.bootstrap import Bootstraps
from inspector.progress import watched
from inspector.text import clean

if TYPE_CHECKING:
    import argparse

EXAMPLE = "puppet-inspector bootstrap captures/FILE.sqlite --agent web1.example"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_captures(parser)
    add_agent(parser)
    parser.add_argument(
        "--at", metavar="DATE", help="evaluate validity at this date or time, e.g. 2027-03-02 (default: now)"
    )
    parser.add_argument("--json", action="store_true", help="print JSON (docs/json/bootstrap.schema.json)")
    add_rules(parser)


def execute(arguments: argparse.Namespace) -> int:
    """Explain how each agent got its certificate, one line per state of its SSL state machine: the requests and
    answers, where and since when the agent is stuck, the keys, and until when the downloaded files are valid."""
    given, pattern = _split(arguments.captures, arguments.agent)
    analyzer, bootstraps = Analyzer(), Bootstraps()
    with shown() as watch, as_one(given, watch) as capture, Capture.open(capture) as records:
        for step in analyzer.steps(watched(records.records(), watch, records.count())):
            bootstraps.add(step)
        analyzer.finish()
        every = bootstraps.names()
        wanted = regex.glob(pattern) if pattern is not None else None
        names = [name for name in every if wanted is None or wanted.fullmatch(name)]
        if pattern is not None and not names:
            near = difflib.get_close_matches(pattern, every, 3) or every[:10]
            raise InspectorError(
                f"{capture} contains no bootstrap of {pattern!r}.",
                f"It contains {', '.join(map(clean, near))}." if near else "It contains no certificate requests.",
            )
    at = moment(arguments.at) if arguments.at else time.time()
    chosen = [bootstraps.of(name, at) for name in names]
    if arguments.json:
        print_json([bootstrap_text.plain(bootstrap) for bootstrap in chosen])
        return 0
    for bootstrap in chosen:
        for line in bootstrap_text.lines(bootstrap, columns()):
            print(line)
    if not chosen:
        print("The capture contains no bootstrap.")
    print_unanalyzed(analyzer.unanalyzed.items(), aside=True)
    return 0


def _split(given: list[Path], agent: str | None) -> tuple[list[Path], str | None]:
    """Split the arguments: an agent's name may follow the captures, as ``--agent`` had no name once."""
    last = given[-1] if given else None
    if last is None or agent is not None or last.exists() or last.parent != Path() or last.suffix == ".sqlite":
        return given, agent
    return given[:-1], str(last)
