"""``puppet-inspector show``: show one record in full."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from inspector.analysis.analyzer import retrace
from inspector.capture import paths
from inspector.capture.store import Capture
from inspector.cli.output import print_json
from inspector.cli.reading import analyze
from inspector.errors import InspectorError
from inspector.formats import json_output
from inspector.pages import plain, tabs

if TYPE_CHECKING:
    import argparse

    from inspector.analysis.analyzer import Step

EXAMPLE = "puppet-inspector show captures/FILE.sqlite 27"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("capture", type=Path, nargs="?", help="default: the newest in captures/")
    parser.add_argument("seq", type=int, help="the record number, as `list` and `check` print it")
    parser.add_argument("--json", action="store_true", help="print JSON (docs/json/show.schema.json)")
    parser.add_argument("--with-secrets", action="store_true", help="do not mask secrets")


def execute(arguments: argparse.Namespace) -> int:
    """Show one record in full: both TLS legs, headers, bodies, decoded documents and findings. Secrets are masked."""
    capture = arguments.capture or paths.newest()
    steps: list[Step] = []
    earlier: list[int] = []

    def on_step(step: Step) -> None:
        if step.record.seq == arguments.seq:
            steps.append(step)
        elif step.match and step.match.endpoint.kind in tabs.RELATED and step.record.seq < arguments.seq:
            earlier.append(step.record.seq)

    analyze(capture, on_step)
    if not steps:
        raise InspectorError(
            f"{capture} has no record {arguments.seq}.", "`puppet-inspector list` prints the record numbers."
        )
    step = steps[0] if arguments.with_secrets else json_output.masked(steps[0])
    findings = [finding for finding in (step.run.findings if step.run else []) if arguments.seq in finding.seqs]
    if arguments.json:
        print_json(json_output.show(step, findings))
        return 0
    own = set(step.run.seqs if step.run else ())
    before = [seq for seq in earlier if seq in own][-tabs.MOST_RELATED :]
    with Capture.open(capture) as records:
        related = retrace(record for seq in before if (record := records.record(seq)))
        lines = plain.lines(step, findings, related)
    for line in lines:
        print(line)
    return 0
