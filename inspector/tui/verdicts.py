"""The verdict of a run and a finding, in full, with their fixes; and the verdict in a few lines above its exchanges."""

from __future__ import annotations

import shlex
from typing import TYPE_CHECKING

from rich.console import Group
from rich.table import Table
from rich.text import Text

from inspector import regex
from inspector.errors import InspectorError
from inspector.pages import palette
from inspector.pages.styles import COMMAND
from inspector.rules import fixes
from inspector.runs.snapshot import RunState
from inspector.summaries import whole_messages, wording
from inspector.text import clean, counts
from inspector.tui.panes import NARROW

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.model import Finding
    from inspector.rules.fixes import Fix
    from inspector.summaries.source import Source
    from inspector.summaries.summary import RunBrief
    from inspector.summaries.under_way import UnderWay


def headline(run: RunBrief, width: int, doing: UnderWay[RunBrief] | None = None) -> Text:
    """The verdict, shortened to a few lines; a key shows its fix. ``doing`` is what its agent does."""
    if run.verdict is None:
        return _well(run, doing)
    room = max(20, width * lines(width) - width // 8)  # words are not broken at the ends of the lines
    over = run.over_since()
    lead = f"Over since {over}: " if over else ""
    message = _without_middle(clean(run.verdict.message), room - len(lead))
    return Text().append(f"{lead}{message}", style="not bold" if over else "bold")


def in_full(run: RunBrief, width: int, doing: UnderWay[RunBrief] | None = None) -> Text:
    """The verdict and the numbered steps of its fix. ``doing`` is what its agent does."""
    if run.verdict is None:
        return _well(run, doing).append_text(_servers(run))
    over = run.over_since()
    lead = f"Over since {over}: " if over else ""
    text = Text().append(f"{lead}{clean(run.verdict.message)}", style="bold").append("\n")
    if run.steps:
        text.append_text(steps(run.steps, width, over=bool(over)))
    return text.append_text(_servers(run))


def _servers(run: RunBrief) -> Text:
    """Which servers answered a run, if several did."""
    text = Text()
    for server in run.servers if len(run.servers) > 1 else ():
        text.append(f"\nanswered by {clean(server.words)}", style="not bold")
    return text


def steps(fix: Fix, width: int, *, over: bool = False) -> Text:
    """The steps of a fix, numbered, their commands on lines of their own; of what is ``over``, as of that time."""
    commands = {step.command for step in fix}
    text = Text(f"\n{'Fix at the time: nothing is to be done now' if over else 'Fix'}\n", style="bold")
    for each in fixes.lines(fix, width):
        style = COMMAND if each.strip() in commands else "not bold"
        for line in _broken(clean(each), fix, width):
            text.append(f"{line}\n", style=style)
    return text


def _broken(line: str, fix: Fix, width: int) -> list[str]:
    """A line of a fix; a command that is wider than its pane in several lines that a shell takes for one."""
    command = line.strip()
    if all(command not in (clean(step.command), clean(step.variant)) for step in fix):
        return [line]
    return _folded(line, width)


def _folded(line: str, width: int) -> list[str]:
    """A command in lines of this width that a shell takes for one."""
    if len(line) <= width:
        return [line]
    command = line.strip()
    margin = line[: len(line) - len(line.lstrip())]
    words = regex.findall(_WORD, command)
    broken, now = [], margin + words[0]
    for word in words[1:]:
        if len(now) + len(word) + len("  \\") > width:
            broken.append(f"{now} \\")
            now = f"{margin}  {word}"
        else:
            now += f" {word}"
    return [*broken, now]


def lines(width: int) -> int:
    """Maximum number of lines of a headline."""
    return 3 if width < NARROW else 2


def _well(run: RunBrief, doing: UnderWay[RunBrief] | None) -> Text:
    found = counts(run.findings)
    how = run.ending
    if run.state is not RunState.OVER:
        when = "under way" if run.state is RunState.OPEN else "under way when the recording ended"
        how = f"{when}: {doing.words}" if doing else when
    return Text(f"{how}{f'; {found}' if found else ', no deviations' if run.state is RunState.OVER else ''}")


def _without_middle(message: str, room: int) -> str:
    """Leave out the middle: errors of Puppet begin with the failure and end with its place.

    The time is shown elsewhere.
    """
    text = message if len(message) <= room else regex.sub(r", (?:since|at) [0-9-]{10} [0-9:]{8} UTC", "", message)
    if len(text) <= room:
        return text
    before = text[: room * 2 // 3].rpartition(" ")[0]
    after = text[-(room // 3 - 3) :].partition(" ")[2]
    return f"{before} … {after}"


_WORD = r"""(?:[^\s"'\\]|\\.|"[^"]*"|'[^']*'|["'\\])+"""
"""A word of a command: blanks in quotes, or after a backslash, do not end it."""
LEAST = 40
"""Columns of a fix at least."""
LABEL = 10
"""Columns of a label."""


def finding_in_full(finding: Finding, run: RunBrief, width: int | None = None) -> Text:
    """The full text of a finding; the pane, which is so wide, wraps its lines, but not those of the fix."""
    over = run.over_since(finding.rule)
    head, where = wording.stated(finding, run)
    where += f"; over since {over}: the fix is of that time" if over else ""
    content = Text().append(head, style=f"bold {palette.SEVERITIES[finding.severity]}").append(f"\n{where}\n")
    for part in wording.explained(finding, run):
        if isinstance(part.content, str):
            content.append(f"{part.label}{part.content}\n")
        else:
            # The last step against the cause is how to see that it worked.
            fix = run.steps if finding.rule == run.cause else part.content
            room = max(width, LEAST) if width else wording.PLAIN
            lines = [line for each in part._replace(content=fix).lines(room) for line in _broken(each, fix, room)]
            content.append("\n".join([*lines, ""]))
    return content


def to_pass_on(finding: Finding, run: RunBrief, path: Path, width: int) -> Text:
    """The command that makes a capture of this finding alone; of a run that is not over there is none."""
    if run.state is not RunState.OVER:
        return Text()
    number = f" --run {run.number}" if run.number else ""
    command = f"    puppet-inspector reduce {shlex.quote(clean(str(path)))}{number} --rule {finding.rule}"
    return Text(
        "\n".join(["  To pass on only what shows this:", *_folded(command, max(width, LEAST)), ""]), style="dim"
    )


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
