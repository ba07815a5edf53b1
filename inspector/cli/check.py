"""``puppet-inspector check``: what deviates from the protocol, why, and what to do."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.analysis import verdicts
from inspector.analysis.ruleset import load
from inspector.cli.output import print_json, print_verdicts
from inspector.cli.reading import analyze_together
from inspector.formats import formats, json_output
from inspector.model import Severity
from inspector.rules import rule_of
from inspector.summaries import wording

if TYPE_CHECKING:
    import argparse
    from collections.abc import Sequence

    from inspector.model import Finding
    from inspector.runs.run import Run


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("capture", type=Path, nargs="+")
    parser.add_argument("--format", choices=("text", "json", "sarif", "junit"), default="text")
    parser.add_argument("--json", action="store_true", help="--format json (docs/json/check.schema.json)")
    parser.add_argument("--rules", type=Path, metavar="YAML", help="severities, thresholds and what to ignore")
    parser.add_argument("--baseline", type=Path, metavar="JSON", help="an earlier check --json: show only what is new")
    parser.add_argument(
        "--fail-on",
        choices=("error", "warning", "notice", "never"),
        default="error",
        help="exit with 1 when a finding is at least this bad (default: error)",
    )


def execute(arguments: argparse.Namespace) -> int:
    """Every deviation from the protocol, the worst first: what, where, why, and what to do."""

    ruleset = load(arguments.rules, time.time())
    for warning in ruleset.warnings:
        print(f"puppet-inspector: {warning}", file=sys.stderr)
    runs = analyze_together(arguments.capture, ruleset)
    found = [(capture, run, finding) for capture, run in runs for finding in run.findings]
    if arguments.baseline:
        found = formats.new(found, formats.baseline(arguments.baseline))
    limit = None if arguments.fail_on == "never" else Severity(arguments.fail_on)
    match "json" if arguments.json else arguments.format:
        case "json":
            print_json(json_output.check(found))
        case "sarif":
            print_json(formats.sarif(found))
        case "junit":
            print(formats.junit(found, runs, limit))
        case _:
            known = sum(len(run.findings) for _, run in runs) - len(found)
            ignored = sum(run.ignored for _, run in runs)
            if not known and print_verdicts([run for _, run in runs]):
                print()
            _print_findings(found, several=len(arguments.capture) > 1)
            told = wording.counts([finding for _, _, finding in found])
            told = told or (
                "nothing new" if known else "no findings" if ignored else "nothing deviates from the protocol"
            )
            told += f"; {known} in {arguments.baseline}, not shown" if known else ""
            print(told + (f"; {ignored} ignored by {arguments.rules}" if ignored else ""))
    return int(limit is not None and any(finding.severity.rank >= limit.rank for _, _, finding in found))


def _print_findings(found: Sequence[tuple[Path, Run, Finding]], *, several: bool) -> None:
    """The worst first; what follows from a run's cause, and what was explained already, in brief."""

    def follows(run: Run, finding: Finding) -> bool:
        verdict = verdicts.verdict(run)
        return verdict is not None and finding.rule in verdict.symptoms

    told = set()
    for capture, run, finding in sorted(found, key=lambda each: (-each[2].severity.rank, follows(each[1], each[2]))):
        rule = rule_of(finding.rule)
        said = rule.id, rule.remedy_for(run)
        where = f"{capture.name} " if several else ""
        for line in wording.finding(finding, rule, run, where, brief=follows(run, finding) or said in told):
            print(line)
        told.add(said)
