"""A run as a sequence diagram between agent, proxy and master: the places of its lines and arrows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from inspector.explain.timeline import HandshakeLine, ResponseArrow, arranged, entries
from inspector.text import beginning, clean, seconds, size

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inspector.explain.timeline import Entry
    from inspector.summaries.summary import Brief, RunBrief

WIDTH, AGENT, PROXY, MASTER = 760, 40, 460, 720
"""Units of the picture, and where its three lanes are."""
ROW, TOP = 24, 40
MOST = 160
"""Lines."""
LONGEST = 58
"""Characters that fit between agent and proxy."""
SHORT = 32
"""Characters that fit between proxy and master."""

type ArrowKind = Literal["request", "answer", "handshake", "note", "phase"]


@dataclass(frozen=True, slots=True)
class Arrow:
    """A line of the diagram."""

    kind: ArrowKind
    y: int
    text: str
    right: str = ""
    """What is between proxy and master."""
    bad: bool = False
    reaches: bool = True
    """Whether it goes on to the master, or comes from there."""
    seq: int | None = None


@dataclass(frozen=True, slots=True)
class SequenceDiagram:
    """The arrows of a run."""

    arrows: tuple[Arrow, ...]
    height: int
    left_out: int


def sequence(run: RunBrief, briefs: Sequence[Brief]) -> SequenceDiagram:
    """Return the diagram of a run."""
    lines = arranged(entries(run, briefs))
    arrows = tuple(_arrows(lines[:MOST]))
    return SequenceDiagram(arrows, TOP + ROW * (len(arrows) + 1), max(0, len(lines) - MOST))


def _arrows(lines: Sequence[Entry]) -> Iterator[Arrow]:
    for at, entry in enumerate(lines):
        y = TOP + ROW * (at + 1)
        brief = entry.brief
        if entry.kind == "phase":
            yield Arrow("phase", y, entry.text)
        elif brief is None:
            yield Arrow("note", y, f"{entry.text}, {seconds(entry.ended - entry.began)}")
        elif isinstance(entry, HandshakeLine):
            shown = brief.certname if brief.authenticated else None
            left = _pair(shown, brief.presented) if brief.presented else ""
            right = _pair(brief.identity, brief.master_presented) if brief.master_presented else ""
            yield Arrow("handshake", y, beginning(left, LONGEST), beginning(right, SHORT), seq=brief.seq)
        elif isinstance(entry, ResponseArrow):
            yield _answer(brief, y)
        elif brief.kind == "exchange":
            reaches = brief.master is not None or brief.status is not None
            yield Arrow("request", y, beginning(entry.text, LONGEST), "" if reaches else "✗ not reached",
                        not reaches, reaches, brief.seq)  # fmt: skip
        else:
            by_master = brief.times.master_connected is not None
            yield Arrow("request", y, beginning(entry.text, LONGEST), "✗" if by_master else "", bad=True,
                        reaches=by_master, seq=brief.seq)  # fmt: skip


def _answer(brief: Brief, y: int) -> Arrow:
    if brief.status is None:
        text = f"no answer: {clean(brief.reason) or 'reason not known'}"
        return Arrow("answer", y, beginning(text, LONGEST), bad=True, reaches=False, seq=brief.seq)
    text = f"{brief.status}, {size(brief.received)}, {seconds(brief.duration)}"
    return Arrow("answer", y, text, str(brief.status), brief.failed, brief.master is not None, brief.seq)


def _pair(own: str | None, other: str | None) -> str:
    return f"{clean(own or 'no certificate')} ↔ {clean(other or 'no certificate')}"
