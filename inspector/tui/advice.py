"""A finding in full: message, cause, fix and source, in the words of ``wording``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from inspector.errors import InspectorError
from inspector.pages import palette
from inspector.summaries import whole_messages, wording
from inspector.text import clean

if TYPE_CHECKING:
    from inspector.model import Finding
    from inspector.summaries.source import Source
    from inspector.summaries.summary import RunBrief

ANSWERS = 3
"""Number of certificates sent last by a CA; one of them may be the agent's."""
LEAST = 40
"""Columns of a fix at least."""
LABEL = 10
"""Columns of a label."""


def text(finding: Finding, run: RunBrief, width: int | None = None) -> Text:
    """The full text of a finding; the pane, which is so wide, wraps its lines, but not those of the fix."""
    head, where = wording.stated(finding, run)
    content = Text().append(head, style=f"bold {palette.SEVERITIES[finding.severity]}").append(f"\n{where}\n")
    for part in wording.explained(finding, run):
        if isinstance(part.content, str):
            content.append(f"{part.label}{part.content}\n")
        else:
            content.append("\n".join([*part.lines(max(width, LEAST) if width else wording.PLAIN), ""]))
    return content


def add_whole(content: Text, finding: Finding | None, source: Source) -> None:
    """Add the whole message of the master or the agent behind a finding, or that there is none."""
    try:
        whole = whole_messages.of_finding(finding, source)
    except InspectorError as error:
        whole = clean(str(error))
    content.append("\nMessage\n", style="bold")
    content.append(f"{whole or 'The evidence contains no message of the master or the agent.'}\n", style="not bold")


def hung(content: Text) -> Group:
    """Wrap lines with a label behind the label."""
    lines: list[Text | Table] = []
    for line in content.split("\n"):
        label, rest = line.divide([LABEL])[:2] if len(line) > LABEL else (line, Text())
        if not label.plain.strip().endswith(":") or not label.plain.startswith("  "):
            lines.append(line)
            continue
        grid = Table.grid(expand=True)
        grid.add_column(width=LABEL)
        grid.add_column(ratio=1)
        rest.overflow = "fold"
        grid.add_row(label, rest)
        lines.append(grid)
    return Group(*lines)
