"""A run to scale: its phases, records and silences, each with a bar on the axis of the run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from inspector.explain import time_split
from inspector.explain.master_log.measured import NOTHING
from inspector.explain.timeline import Axis, entries, opening, pieces
from inspector.text import seconds

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspector.explain.master_log.measured import MasterTimes
    from inspector.explain.timeline import Entry, Work
    from inspector.summaries.summary import Brief, RunBrief

WIDTH = 1000
"""Units of a bar."""
THINNEST = 2.0
"""Units of the shortest time that can be seen."""
MOST = 400
"""Lines of a run."""

WORDS: dict[Work | Literal["whole", "silence"], str] = {
    "whole": "the agent's exchange",
    "connect": "connect",
    "tls": "TLS",
    "sending": "request",
    "waiting": "master works",
    "network": "network",
    "queue": "queue: no JRuby free",
    "serve": "master serves",
    "compile": "master compiles",
    "receiving": "answer",
    "proxy": "proxy",
    "silence": "no traffic (≈ shortened)",
}
"""What a colour means."""

type Leg = Literal["agent", "master"]


@dataclass(frozen=True, slots=True)
class Bar:
    """A part of a record's time."""

    work: Work | Literal["whole", "silence"]
    leg: Leg
    x: float
    width: float


@dataclass(frozen=True, slots=True)
class WaterfallLine:
    """A phase, a record, or a time without traffic."""

    kind: Literal["record", "silence", "phase"]
    text: str
    offset: str = ""
    """Seconds since the run began."""
    seq: int | None = None
    status: str = ""
    took: str = ""
    bad: bool = False
    signs: tuple[tuple[str, str], ...] = ()
    """The findings of which it is evidence: rule and severity."""
    bars: tuple[Bar, ...] = ()
    shortened: bool = False
    """The silence is not to scale."""


@dataclass(frozen=True, slots=True)
class Waterfall:
    """The lines of a run."""

    lines: tuple[WaterfallLine, ...]
    left_out: int = 0
    spent: str = ""
    """Where the run's time went, if a master's logs say it."""

    @property
    def legend(self) -> list[str]:
        """What the colours of its bars mean, in the order in which it happens."""
        drawn = {bar.work for line in self.lines for bar in line.bars}
        return [work for work in WORDS if work in drawn]


def waterfall(run: RunBrief, briefs: Sequence[Brief], times: MasterTimes = NOTHING) -> Waterfall:
    """Return a run's lines, in the order in which they began; ``times`` is what a master's logs say."""
    timeline = entries(run, briefs)
    first = opening(timeline)
    spans = [(entry.began, entry.ended) for entry in timeline if entry.kind == "record"]
    axis = Axis.of(spans)
    drawn = tuple(_line(entry, run, axis, first, times) for entry in timeline[:MOST])
    spent = time_split.of_run(briefs, times).total.words() if times.by_record else ""
    return Waterfall(drawn, max(0, len(timeline) - MOST), spent)


def _line(
    entry: Entry, run: RunBrief, axis: Axis, first: dict[int, tuple[bool, bool]], times: MasterTimes
) -> WaterfallLine:
    offset = f"{max(0.0, entry.began - run.started):.3f}"
    brief = entry.brief
    if entry.kind == "silence":
        silent = (_bar("silence", "agent", entry.began, entry.ended, axis),)
        return WaterfallLine("silence", entry.text, offset, took=seconds(entry.ended - entry.began), bars=silent,
                             shortened=axis.short(entry.began, entry.ended))  # fmt: skip
    if entry.kind == "phase" or brief is None:
        return WaterfallLine("phase", entry.text, offset)
    agent, master = first.get(brief.seq, (False, False))
    bars = [_bar("whole", "agent", entry.began, entry.ended, axis)]
    bars += [
        _bar(piece.kind, "master", piece.began, piece.ended, axis)
        for piece in pieces(brief, opens_agent_leg=agent, opens_master_leg=master, master=times.get(brief.seq))
    ]
    status = str(brief.status) if brief.status is not None else "none" if brief.kind == "exchange" else brief.kind
    signs = tuple((sign.rule, str(sign.severity)) for sign in brief.signs)
    return WaterfallLine("record", entry.text, offset, brief.seq, status, seconds(brief.duration), brief.failed, signs,
                         tuple(bars))  # fmt: skip


def _bar(work: Work | Literal["whole", "silence"], leg: Leg, began: float, ended: float, axis: Axis) -> Bar:
    x = axis.place(began) * WIDTH
    width = max(THINNEST, axis.place(ended) * WIDTH - x)
    return Bar(work, leg, round(min(x, WIDTH - THINNEST), 1), round(width, 1))
