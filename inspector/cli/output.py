"""Print JSON, lines and verdicts: in colour and as wide as the terminal, or plain in a pipe.

Rich takes as long to import as a small capture to be read, so it is imported where something is coloured.
"""

from __future__ import annotations

import shutil
import sys
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from inspector import regex
from inspector.model import Severity
from inspector.summaries import wording
from inspector.text import as_json, beginning, clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from rich.text import Text

    from inspector.compare.diff_lines import Line, Sort
    from inspector.summaries.summary import Brief, RunBrief
    from inspector.summaries.whole_messages import Whole
    from inspector.summaries.wording import Block, FixLines

NARROWEST, ROOM = 20, 60
"""Columns of the narrowest terminal that lines are wrapped for, and of one with room for tables with much text."""
REASON = 400
"""Characters of the reason for which a rule failed: it may quote a capture."""
SEVERITIES = {Severity.ERROR: "bold red", Severity.WARNING: "yellow", Severity.NOTICE: "cyan"}
"""The terminal's own colours: its background is not known."""

SORTS: dict[Sort, str] = {
    "head": "bold", "added": "green", "removed": "red", "changed": "yellow", "hunk": "cyan", "old": "red",
    "new": "green", "same": "", "plain": "", "note": "dim",
}  # fmt: skip

_SIGN = regex.compile(r"^( *[-+~]) ")


def columns() -> int | None:
    """Return how wide the terminal is that shows the output (or COLUMNS); None in a pipe."""
    return max(shutil.get_terminal_size().columns, NARROWEST) if sys.stdout.isatty() else None


def print_json(value: Any, named: Mapping[Path, Path] = MappingProxyType({})) -> None:
    """Print JSON; ``named``: how paths in it were called by the user, where something else was read in their place."""
    text = as_json(value)
    for path, name in named.items():
        text = text.replace(as_json(str(path)), as_json(str(name)))
    print(text)


def print_text(text: Text) -> None:
    """Print lines as they are, on a terminal in colour."""
    if columns() is None:
        print(text.plain)
    else:
        from rich.console import Console

        Console(highlight=False, markup=False, emoji=False).print(text, soft_wrap=True)


def print_markdown(text: str) -> None:
    """Print text with tables and lists in Markdown, on a terminal set for its width; as it is where words in tables
    would be cut."""
    if (columns() or 0) < ROOM:
        print(text)
        return
    from rich.console import Console
    from rich.markdown import Markdown
    from rich.theme import Theme

    Console(theme=Theme({"markdown.code": "bold"})).print(Markdown(text))


def print_line(line: str) -> None:
    """Print a line, on a terminal wrapped."""
    for part in wording.flowing(line, columns()):
        print(part)


def print_lines(lines: Iterable[Line]) -> None:
    """Print the lines of a comparison, on a terminal wrapped and in colour; lines of texts as they are."""
    width = columns()
    if width is None:
        for line in lines:
            print(line.text)
        return
    from rich.text import Text

    for line in lines:
        parts = [line.text]
        if len(line.text) > width and line.sort not in ("hunk", "old", "new", "same"):
            # The sign of a difference never stands alone on a line.
            parts = wording.flowing(_SIGN.sub("\\1\0", line.text), width)
        print_text(Text("\n".join(parts), SORTS[line.sort]))


def print_block(block: Block) -> None:
    """Print lines, on a terminal what has a severity in its colour."""
    if columns() is None:
        print(*block.lines, sep="\n")
        return
    from rich.text import Text

    text = Text("\n".join(block.lines))
    if block.severity:
        text.stylize(SEVERITIES[block.severity], 0, len(block.marked))
    print_text(text)


def print_record(brief: Brief, lines: list[str]) -> None:
    """Print the lines of a record, on a terminal the rules of its findings in colour."""
    text = "\n".join(lines)
    if not brief.signs or columns() is None:
        print(text)
        return
    from rich.text import Text

    styled = Text(text)
    for sign in brief.signs:
        if (at := text.rfind(sign.rule)) >= 0:
            styled.stylize(SEVERITIES[sign.severity], at, at + len(sign.rule))
    print_text(styled)


def print_verdicts(
    runs: Iterable[RunBrief],
    printed_fixes: FixLines,
    whole: Whole | None = None,
    where: str = "",
    *,
    healed: bool = False,
) -> int:
    """Print the verdicts of runs, with the whole messages of their causes if ``whole`` reads them; return how many
    there are. ``where`` names the capture. The fix of what is over is named only, or with ``healed`` is what healed
    it."""
    printed = 0
    for run in runs:
        if run.verdict is not None:
            printed += 1
            since = run.over_since()
            print_block(wording.verdict(run, columns(), where))
            for line in wording.quoted(whole(run.cause_found), columns()) if whole else ():
                print(line)
            print(*wording.meaning(run, columns()), sep="\n", end="\n" if run.meaning else "")
            if since and not healed:
                if run.cause:
                    print_line(wording.past_fix(run.cause))
                continue
            label = "healed by" if since else "fix"
            print(*printed_fixes.of(run.steps, f"{where}run {run.number}", label), sep="\n")
    return printed


def print_failed(reasons: Iterable[str]) -> None:
    """Print, aside from the output, why rules failed: each once."""
    for reason in dict.fromkeys(reasons):
        print(f"puppet-inspector: {beginning(clean(reason), REASON)}", file=sys.stderr)


def print_unanalyzed(records: Iterable[tuple[int, str]], where: str = "", *, aside: bool = False) -> None:
    """Print which records were not analyzed, and why; ``aside`` from the output."""
    for seq, reason in records:
        line = f"{where}{wording.unanalyzed(seq, reason)}"
        if aside:
            print(line, file=sys.stderr)
        else:
            print_line(line)
