"""Colours and bars: what a phase, a severity and an outcome look like, also where there is no colour."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rich.text import Text

from inspector.explain.resource_outcomes import Status
from inspector.model import Phase, Severity
from inspector.pages.styles import BAD, BLUE, CYAN, DOUBT, GOOD, GREEN, GREY, NOTE, ORANGE, VIOLET, YELLOW

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspector.summaries.summary import RunBrief

PHASES: dict[Phase, tuple[str, str]] = {
    Phase.CERTIFICATES: ("C", VIOLET),
    Phase.NODE: ("n", CYAN),
    Phase.PLUGINS: ("P", BLUE),
    Phase.CATALOG: ("K", YELLOW),
    Phase.FILES: ("F", GREEN),
    Phase.REPORT: ("R", ORANGE),
    Phase.OTHER: ("o", GREY),
}
"""A letter and a colour each. The letter is always drawn, for terminals without colour."""
BLOCKS = " ▁▂▃▄▅▆▇█"
"""Bars of eight heights."""
LASTS = "━"
"""What follows a phase's letter for as long as it lasts."""
SEVERITIES = {Severity.ERROR: BAD, Severity.WARNING: DOUBT, Severity.NOTICE: NOTE}
OUTCOMES = {
    "complete": GOOD,
    "failed": BAD,
    "refused": BAD,
    "waiting": DOUBT,
    "unfinished": DOUBT,
}
_GRAVITY = (GOOD, DOUBT, BAD)
RESOURCES = {
    Status.FAILED: BAD,
    Status.RESTART: BAD,
    Status.SKIPPED: DOUBT,
    Status.CORRECTIVE: DOUBT,
    Status.CHANGED: NOTE,
    Status.OUT_OF_SYNC: NOTE,
    Status.UNCHANGED: GOOD,
    Status.UNREPORTED: "dim",
}
SILENCE = "dim"


def phases() -> str:
    """What the letters of the bars mean."""
    return "  ".join(f"{letter} {phase}" for phase, (letter, _) in PHASES.items()) + "  . no traffic"


def phase(value: Phase) -> Text:
    """A phase's name in its color."""
    return Text(str(value), style=PHASES[value][1])


def severity(value: Severity) -> Text:
    """A severity's name in its color."""
    return Text(str(value), style=SEVERITIES[value])


def outcome(run: RunBrief) -> Text:
    """A run's outcome in its color."""
    return Text(run.ending, style=OUTCOMES.get(run.ending, ""))


def counts(run: RunBrief) -> Text:
    """A run's findings by severity: 2E 1W 3N."""
    text = Text()
    counted = Counter(finding.severity for finding in run.findings)
    for severity in Severity if counted else ():
        if counted[severity]:
            text.append(f"{counted[severity]}{severity.value[0].upper()} ", style=SEVERITIES[severity])
    text.rstrip()
    return text


def bar(run: RunBrief, width: int) -> Text:
    """A run's phases drawn to scale, with the agent's silent times as dots."""
    pieces: list[tuple[float, str, str]] = []
    waits = dict(run.waits)
    for span in run.spans:
        if span.phase is Phase.CATALOG:
            pieces.append((waits.pop("facts", 0.0), ".", SILENCE))
        if span.phase is Phase.REPORT:
            pieces.append((waits.pop("applying", 0.0), ".", SILENCE))
        silent = waits.pop("certificate", 0.0) if span.phase is Phase.CERTIFICATES else 0.0
        letter, style = PHASES[span.phase]
        pieces.append((max(span.duration - silent, 1e-6), letter, style))
        if silent:
            pieces.append((silent, ".", SILENCE))
    pieces.append((sum(waits.values()), ".", SILENCE))
    return _drawn([piece for piece in pieces if piece[0] > 0], width)


def sparkline(runs: Sequence[RunBrief], width: int) -> Text:
    """How long runs took, the latest at the right: a block each, of several if there are more than fit the longest, in
    the colour of the worst outcome."""
    size = max(1, -(-len(runs) // max(1, width)))
    groups = [runs[max(0, at - size) : at] for at in range(len(runs), 0, -size)][::-1]
    most = max((run.duration for run in runs), default=0.0) or 1.0
    text = Text()
    for group in groups:
        worst = max(group, key=lambda run: _GRAVITY.index(OUTCOMES[run.result]))
        longest = max(run.duration for run in group)
        text.append(BLOCKS[max(1, round(longest / most * 8))], style=OUTCOMES[worst.result])
    return text


def _drawn(pieces: list[tuple[float, str, str]], width: int) -> Text:
    text = Text()
    if not pieces or width < len(pieces):
        for _, letter, style in pieces[:width]:
            text.append(letter, style=style)
        return text
    total = sum(length for length, _, _ in pieces)
    spare = width - len(pieces)  # each piece has one cell of its own: no phase is too short to be seen
    before, drawn = 0.0, 0
    for length, letter, style in pieces:
        before += length
        upto = round(before / total * spare)
        text.append(letter + (letter if letter == "." else LASTS) * (upto - drawn), style=style)
        drawn = upto
    return text
