"""What the tool says of every recording of real agents and masters that developers and CI have at hand.

Each line of ``golden/recordings.txt`` was compared with the recording's own README.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inspector.analyzer import Analyzer
from inspector.store import Capture
from inspector.transfer import import_flows
from tests.conversations import steps

if TYPE_CHECKING:
    from collections.abc import Callable

HERE = Path(__file__).parent
RECORDINGS = HERE.parent.parent / "shared" / "recordings"

pytestmark = pytest.mark.skipif(not RECORDINGS.is_dir(), reason=f"there are no recordings at {RECORDINGS}")


def told(flows: Path, capture: Path) -> list[str]:
    """One line a run: certname, outcome, ids with severities, phases."""
    import_flows([flows], capture)
    analyzer = Analyzer()
    with Capture.open(capture) as records:
        for _ in steps(analyzer, records.records()):
            pass
    lines = []
    for number, run in enumerate(analyzer.finish(), 1):
        ids = " ".join(sorted({f"{each.rule}:{each.severity}" for each in run.findings}))
        phases = " ".join(f"{span.phase}={span.exchanges}" for span in run.spans.values())
        lines.append(f"  {number} {run.certname or '-'} {run.agent_version or '-'} {run.outcome} [{ids}] {phases}")
    return lines


@pytest.mark.timeout(600)
def test_every_recording_is_told_as_reviewed(tmp_path: Path, golden: Callable[[Path, str], None]) -> None:
    lines = []
    for number, flows in enumerate(sorted(RECORDINGS.rglob("*.mitm"))):
        lines += [str(flows.relative_to(RECORDINGS).parent), *told(flows, tmp_path / f"{number}.sqlite")]
    assert len(lines) > 100
    golden(HERE / "golden" / "recordings.txt", "\n".join(lines) + "\n")


def test_nothing_of_a_recording_is_dropped(tmp_path: Path) -> None:
    for number, flows in enumerate(sorted(RECORDINGS.rglob("*.mitm"))[::4]):
        path = tmp_path / f"{number}.sqlite"
        count = import_flows([flows], path)
        analyzer = Analyzer()
        with Capture.open(path) as records:
            taken = list(steps(analyzer, records.records()))
        assert len(taken) == count > 0
        seqs = [seq for run in analyzer.finish() for seq in run.seqs]
        loose = [step.record.seq for step in taken if analyzer.number(step.run) is None]
        assert sorted(seqs + loose) == list(range(1, count + 1))
