"""Nothing of a recording of real agents and masters is lost on the way to its runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.analysis.analyzer import Analyzer
from tests.support.conversations import steps
from tests.support.recorded import ABSENT, RECORDINGS, name_of, records_of

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
@pytest.mark.skipif(not RECORDINGS, reason=ABSENT)
@pytest.mark.parametrize("recording", RECORDINGS, ids=name_of)
def test_every_record_is_of_one_run_or_of_none(recording: Path) -> None:
    analyzer = Analyzer()
    taken = list(steps(analyzer, records_of(recording)))
    seqs = [seq for run in analyzer.finish() for seq in run.seqs]
    loose = [step.record.seq for step in taken if step.run is None or step.run.number is None]
    assert sorted(seqs + loose) == list(range(1, len(taken) + 1))
    assert taken
