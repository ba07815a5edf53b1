"""Findings as mitmproxy's own user interfaces show them: a flow's mark and its comment.

What a user marked or wrote is never changed: our part of a comment is the line that begins with the id of a rule.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector import regex
from inspector.text import clean

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mitmproxy import flow

ERROR, OTHER = ":red_circle:", ":warning:"
"""The marks of flows with an error, and with other findings only."""
_OURS = regex.compile(r"[A-Z][0-9]{2}: ")
"""How our line of a comment begins."""


def annotate(flow: flow.Flow, findings: Sequence[tuple[str, str, str]]) -> bool:
    """Show findings (rule, severity and message of each) instead of those of an earlier analysis, if there are any.

    Return whether that changed anything.
    """
    lines = flow.comment.split("\n") if flow.comment else []
    others = [line for line in lines if not _OURS.match(line)]
    ours = ["; ".join(f"{rule}: {clean(message)}" for rule, _, message in findings)] if findings else []
    if [*others, *ours] == lines:
        return False  # also if a user has removed the mark since
    if not flow.marked or (len(others) < len(lines) and flow.marked in (ERROR, OTHER)):
        errors = any(severity == "error" for _, severity, _ in findings)
        flow.marked = (ERROR if errors else OTHER) if findings else ""
    flow.comment = "\n".join([*others, *ours])
    return True
