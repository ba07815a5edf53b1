"""``puppet-inspector runs``: list the runs of a capture."""

from __future__ import annotations

import functools
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.cli.arguments import add_filter, add_full
from inspector.cli.output import print_json, print_rows, print_unanalyzed, print_verdicts
from inspector.cli.reading import analyze, whole_message
from inspector.formats import json_output
from inspector.summaries import filters, follow, wording
from inspector.text import counts

if TYPE_CHECKING:
    import argparse

    from inspector.analysis.analyzer import Step
    from inspector.model import Finding

EXAMPLE = "puppet-inspector runs captures/FILE.sqlite"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("capture", type=Path, help="the capture file")
    parser.add_argument("--json", action="store_true", help="print JSON (docs/json/runs.schema.json)")
    add_full(parser, "runs captures/FILE.sqlite")
    add_filter(parser)


def execute(arguments: argparse.Namespace) -> int:
    """List the runs of a capture: agent, versions, outcome, phases and findings."""
    return print_runs(arguments.capture, as_json=arguments.json, filtered=arguments.filter, full=arguments.full)


def print_runs(capture: Path, *, as_json: bool, filtered: str = "", full: bool = False) -> int:
    """Print the runs that match a filter, their verdicts and the number of findings; return the exit status."""
    whole = functools.partial(whole_message, capture) if full else None
    chosen = filters.parse(filtered, follow.latest(capture))
    marked: set[int] = set()

    def mark(step: Step) -> None:
        if chosen.marks(filters.candidate(step)):
            marked.add(step.record.seq)

    analyzer = analyze(capture, mark)
    runs = [
        (run, facts)
        for run in analyzer.runs
        if chosen.matches_run(
            facts := run.snapshot(),
            wording.words(facts, wording.conclusion(run)),
            marked=not marked.isdisjoint(run.seqs),
        )
    ]
    if as_json:
        print_json(json_output.runs((run for run, _ in runs), analyzer.unanalyzed, whole))
        return 0
    if not runs:
        print(f"No run in {capture} matches the filter." if analyzer.runs else f"There are no runs in {capture}.")
        print_unanalyzed(analyzer.unanalyzed.items())
        return 0
    print_rows(wording.RUN_COLUMNS, [wording.run_row(facts) for _, facts in runs], below="phases")
    findings: list[Finding] = [finding for _, facts in runs for finding in facts.findings]
    print_verdicts((run for run, _ in runs), whole)
    print_unanalyzed(analyzer.unanalyzed.items())
    print(f"{counts(findings)}: puppet-inspector check {capture}" if findings else f"no findings: {capture}")
    return 0
