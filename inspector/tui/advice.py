"""A finding in full: message, cause, fix and source, in the words of ``wording``."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from inspector.analysis import verdicts
from inspector.analysis.analyzer import retrace
from inspector.errors import InspectorError
from inspector.model import Handshake
from inspector.pages import palette
from inspector.protocol.kinds import Kind
from inspector.rules import fixes, rule_of
from inspector.runs.run import Run
from inspector.summaries import whole_messages, wording
from inspector.text import clean

if TYPE_CHECKING:
    from inspector.model import Finding
    from inspector.summaries.source import Source
    from inspector.summaries.summary import RunBrief

ANSWERS = 3
"""Number of certificates sent last by a CA; one of them may be the agent's."""
_FURTHER = " " * 10
"""Prefix of continuation lines in the result of ``wording.finding``."""


def text(finding: Finding, run: RunBrief, source: Source) -> Text:
    """The full text of a finding; the pane wraps its lines."""
    content = Text()
    lines = wording.finding(finding, rule_of(finding.rule), _run(finding, run, source))
    steps = False
    for at, line in enumerate(lines):
        if not line.startswith(_FURTHER):
            steps = line.startswith("  fix:")
        elif not steps:
            content.append(f" {line.strip()}")
            continue
        content.append("\n" if at else "")
        content.append(line, style="" if at else f"bold {palette.SEVERITIES[finding.severity]}")
    return content


def add_whole(content: Text, finding: Finding | None, source: Source) -> None:
    """Add the whole message of the master or the agent behind a finding, or that there is none."""
    try:
        whole = whole_messages.of_finding(finding, source)
    except InspectorError as error:
        whole = clean(str(error))
    content.append("\nMessage\n", style="bold")
    content.append(f"{whole or 'The evidence contains no message of the master or the agent.'}\n", style="not bold")


def fix(finding: Finding, run: RunBrief, source: Source) -> str:
    """How to fix it, with the commands for the run's version of Puppet."""
    return clean(fixes.plain(rule_of(finding.rule).fix_for(_run(finding, run, source))))


def _run(finding: Finding, brief: RunBrief, source: Source) -> Run:
    """The facts of a run that texts and fixes of a finding require."""
    run = Run(address=brief.address)
    if finding.rule in verdicts.WAITING:
        # Whether there is anything left to do: the certificate may have been signed since.
        briefs = source.briefs(brief.number)
        asked = [brief.seq for brief in briefs if brief.request_kind is Kind.CSR]
        given = [brief.seq for brief in briefs if brief.request_kind is Kind.CERTIFICATE and brief.status == 200]
        with contextlib.suppress(InspectorError):
            records = [source.record(seq) for seq in sorted({*asked[-1:], *given[-ANSWERS:]})]
            for step in retrace(record for record in records if record):
                run = step.run or run
    if rule_of(finding.rule).instead:
        with contextlib.suppress(InspectorError):
            refused = map(source.record, finding.seqs)
            run.handshakes.extend(record for record in refused if isinstance(record, Handshake))
    run.number, run.certname, run.tool = brief.number, brief.certname, brief.tool
    run.agent_version = brief.agent_version
    run.dialect = "legacy" if brief.generation in ("2.7", "3") else None
    run.master_versions = {brief.master_version: 0} if brief.master_version else {}
    return run


def hung(content: Text) -> Group:
    """Wrap lines with a label behind the label."""
    lines: list[Text | Table] = []
    for line in content.split("\n"):
        label, rest = line.divide([len(_FURTHER)])[:2] if len(line) > len(_FURTHER) else (line, Text())
        if not label.plain.strip().endswith(":") or not label.plain.startswith("  "):
            lines.append(line)
            continue
        grid = Table.grid(expand=True)
        grid.add_column(width=len(_FURTHER))
        grid.add_column(ratio=1)
        rest.overflow = "fold"
        grid.add_row(label, rest)
        lines.append(grid)
    return Group(*lines)
