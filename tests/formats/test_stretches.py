"""The phases of a run as stretches of time: they follow each other, and requests of no phase interrupt none."""

from __future__ import annotations

import math

from inspector.formats.stretches import Stretches
from inspector.model import Phase
from inspector.summaries.summary import Brief, RunBrief


def brief(phase: Phase, began: float, ended: float) -> Brief:
    return Brief(seq=1, kind="exchange", time=began, ended=ended, phase=phase)


def test_a_stretch_ends_where_the_phase_changes() -> None:
    stretches, run, other = Stretches(), RunBrief(number=1, started=1.0), RunBrief(number=2)
    first, none = stretches.add(brief(Phase.CATALOG, 1.0, 4.0), run)
    assert none is None
    assert stretches.add(brief(Phase.OTHER, 2.0, 5.0), run) == (first, None)
    stretches.add(brief(Phase.FILES, 0.0, 1.0), other)  # of another run
    second, ended = stretches.add(brief(Phase.FILES, 4.5, 6.0), run)
    assert ended is first
    assert (first.began, first.ended, first.records, first.place) == (1.0, 5.0, 2, 0)
    assert (second.began, second.ended, second.place) == (5.0, 6.0, 1)  # not before the first one ended
    assert [(stretch.run.number, stretch.phase) for stretch in stretches.rest()] == [
        (1, Phase.FILES), (2, Phase.FILES),
    ]  # fmt: skip


def test_times_that_are_none_do_not_spread() -> None:
    stretch, _ = Stretches().add(brief(Phase.NODE, math.nan, math.inf), RunBrief(number=1, started=7.0))
    assert (stretch.began, stretch.ended) == (7.0, 7.0)
