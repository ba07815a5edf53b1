"""``puppet-inspector check``: report what deviates from the protocol, why, and how to fix it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING

from inspector.capture import paths
from inspector.cli.arguments import add_captures, add_full, add_rules
from inspector.cli.output import (
    columns,
    print_block,
    print_failed,
    print_json,
    print_line,
    print_unanalyzed,
    print_verdicts,
)
from inspector.cli.progress import shown
from inspector.cli.reading import Unreadable, across_places, show_newest, whole_message
from inspector.errors import InspectorError
from inspector.formats import baseline
from inspector.model import Severity
from inspector.summaries import reading, wording
from inspector.text import counts

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from inspector.model import Finding
    from inspector.rules.fixes import Fix
    from inspector.summaries.summary import RunBrief

EXAMPLE = "puppet-inspector check captures/FILE.sqlite --fail-on warning"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_captures(parser)
    parser.add_argument("--format", choices=("text", "json", "sarif", "junit", "html"), default="text",
                        help="default: text; html is the page of `report`")  # fmt: skip
    parser.add_argument("--json", action="store_true", help="same as --format json (docs/json/check.schema.json)")
    add_full(parser, "check captures/FILE.sqlite")
    add_rules(parser)
    parser.add_argument(
        "--baseline", type=Path, metavar="JSON", help="output of an earlier check --json: show only new findings"
    )
    parser.add_argument(
        "--fail-on",
        choices=("error", "warning", "notice", "never"),
        default="error",
        help="exit with status 1 if a finding has at least this severity (default: error)",
    )


def execute(arguments: argparse.Namespace) -> int:
    """Report every deviation from the protocol, the worst first: what, where, why, and how to fix it. The exit status
    is 1 if a finding has at least the severity of --fail-on."""
    captures = paths.chosen(arguments.captures)
    kind = "json" if arguments.json else arguments.format
    if kind == "html" and (len(captures) > 1 or arguments.baseline):
        raise InspectorError(
            "A page is about all findings of one capture.",
            "Name one capture, without --baseline; `puppet-inspector captures merge` makes one of several.",
        )
    with across_places(captures, arguments.captures) as (chosen, named):
        return _report(arguments, kind, chosen, named)


def _report(arguments: argparse.Namespace, kind: str, captures: Sequence[Path], named: Mapping[Path, Path]) -> int:
    """Report the deviations in captures; return the exit status."""
    unreadable = Unreadable(captures)
    show_newest(captures)
    with shown() as watch:
        read = reading.read_together(captures, watch, unreadable.report)
    judgement = reading.judged(read, time.time())
    runs = [(found.capture, run) for found in read for run in found.briefs]
    unanalyzed = [(found.capture, seq, reason) for found in read for seq, reason in found.unanalyzed.items()]
    print_failed(reason for found in read for reason in found.failed.values())
    apart = [(found.capture, run) for found in read for run in found.apart.found]
    findings = [(capture, run, finding) for capture, run in (*runs, *apart) for finding in run.findings]
    if arguments.baseline:
        findings = baseline.new(findings, baseline.read(arguments.baseline))
    limit = None if arguments.fail_on == "never" else Severity(arguments.fail_on)
    match kind:
        case "html":
            from inspector.report import page
            from inspector.report.content import gathered
            from inspector.report.copies import leaving

            with shown() as watch, leaving(captures[0], watch=watch) as copy:
                print(page.html(gathered(copy, watch)))
        case "json":
            from inspector.formats import json_output

            print_json(
                json_output.check(findings, unanalyzed, whole_message if arguments.full else None, judgement), named
            )
        case "sarif":
            from inspector.formats import sarif

            print_json(sarif.document(findings))
            _print_unanalyzed(unanalyzed, captures, aside=True)
        case "junit":
            from inspector.formats import junit

            print(junit.document(findings, [*runs, *apart], limit))
            _print_unanalyzed(unanalyzed, captures, aside=True)
        case _ if read:
            known = sum(len(run.findings) for _, run in (*runs, *apart)) - len(findings)
            ignored = sum(run.ignored for _, run in runs)
            summary = counts([finding for _, _, finding in findings])
            summary = summary or (
                "no new findings" if known else "no findings" if ignored else "no deviations from the protocol"
            )
            summary += f"; {known} in {arguments.baseline}, not shown" if known else ""
            print_line(judgement.headline)
            alike = counts(judgement.findings) == summary
            if findings and not known and not alike:
                summary += _in_all([run for _, run in runs])
            if not findings or ignored or not alike:
                print_line(summary + (f"; {ignored} ignored by {arguments.rules}" if ignored else ""))
            if findings:
                print()
            several = len(captures) > 1
            fixes = wording.FixLines(columns())
            printed = sum(
                print_verdicts([run], fixes, where=f"{capture.name} " if several else "")
                for capture, run in (() if known else runs)
            )
            if printed and findings:
                print()
            _print_findings(findings, fixes, several=several, full=arguments.full)
            _print_unanalyzed(unanalyzed, captures)
    failed = limit is not None and any(finding.severity.rank >= limit.rank for _, _, finding in findings)
    return unreadable.status or int(failed)


def _print_unanalyzed(
    unanalyzed: Sequence[tuple[Path, int, str]], captures: Sequence[Path], *, aside: bool = False
) -> None:
    for capture, seq, reason in unanalyzed:
        print_unanalyzed([(seq, reason)], f"{capture.name} " if len(captures) > 1 else "", aside=aside)


def _in_all(runs: Sequence[RunBrief]) -> str:
    """Which runs the number of findings is of: the line above it is about the latest of each node."""
    over = sum(bool(run.over_since()) for run in runs)
    text = f" in all {len(runs)} runs" if len(runs) > 1 else " in all"
    return f"{text}; what went wrong in {over} of them is over" if over else text


def _print_findings(
    findings: Sequence[tuple[Path, RunBrief, Finding]],
    fixes: wording.FixLines,
    *,
    several: bool,
    full: bool,
) -> None:
    """Print findings, the worst first, of them those that are over last; consequences and rules that were explained
    above are printed in brief. With ``full`` the whole message behind a finding follows it, each once."""

    def order(item: tuple[Path, RunBrief, Finding]) -> tuple[int, bool, bool]:
        _, run, finding = item
        return -finding.severity.rank, bool(run.over_since(finding.rule)), finding.rule in run.symptoms

    explained: set[tuple[str, Fix, bool]] = set()
    printed: set[str | None] = set()
    for capture, run, finding in sorted(findings, key=order):
        explanation = finding.rule, run.fix_for(finding.rule)
        where = f"{capture.name} " if several else ""
        # What is over names its fix only: it explains nothing to one that holds.
        explains = (*explanation, bool(run.over_since(finding.rule)))
        brief = finding.rule in run.symptoms or (*explanation, False) in explained or explains in explained
        fixed = fixes.where(run.steps) if finding.rule == run.cause else ""
        lines = wording.finding(finding, run, where, brief=brief, width=columns(), fixed=fixed)
        if full and (whole := whole_message(capture, finding)) not in printed:
            printed.add(whole)
            lines[-1:-1] = wording.quoted(whole, columns())
        print_block(wording.Block(lines, finding.severity.upper(), finding.severity))
        explained.add(explains)
