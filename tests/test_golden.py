"""Each sample capture as plain text: runs, phases, findings, one line a record; no times, no durations."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from inspector import present
from inspector.analyzer import Analyzer
from inspector.model import Exchange
from inspector.rules import rule_of
from inspector.store import Capture
from tests.conversations import steps

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HERE = Path(__file__).parent
SAMPLES = sorted((HERE.parent / "captures" / "samples").glob("*.sqlite"))
GOLDEN = HERE / "golden"


def told(capture: Path) -> Iterator[str]:
    """A capture in words that do not depend on when it was recorded."""
    analyzer = Analyzer()
    with Capture.open(capture) as records:
        taken = list(steps(analyzer, records.records()))
    for number, run in enumerate(analyzer.finish(), 1):
        _, _, agent, version, environment, outcome, _, _, ids = present.run_row(number, run)
        phases = ", ".join(f"{span.phase} {span.exchanges}" for span in run.spans.values())
        yield f"run {number}: {agent} {version} to {run.master_version} in {environment}: {outcome}"
        yield f"  {phases}; {ids or 'nothing deviates'}; {present.why(run) or 'all is well'}"
        for finding in run.findings:
            yield from ("  " + line for line in present.finding(finding, rule_of(finding.rule), run, number)[:2])
    yield "records"
    for step in taken:
        _, who, phase, method, path, status, size, _, ids = present.row(step)
        ident = step.match.endpoint.name if step.match else "-"
        lent = present.identity(step.record.identity) if isinstance(step.record, Exchange) else "-"
        cells = (str(step.record.seq), str(analyzer.number(step.run) or "-"), who, phase, method, path, status, size)
        yield "  " + " | ".join((*cells, ident, f"as {lent}", ids))


@pytest.mark.parametrize("sample", SAMPLES, ids=lambda path: path.stem)
def test_a_sample_is_told_as_before(sample: Path, tmp_path: Path, golden: Callable[[Path, str], None]) -> None:
    copy = shutil.copy(sample, tmp_path)  # reading in place would leave -shm and -wal beside the sample
    golden(GOLDEN / f"{sample.stem}.txt", "".join(f"{line.rstrip()}\n" for line in told(Path(copy))))


def test_there_are_samples_and_no_golden_file_without_one() -> None:
    assert SAMPLES
    assert {path.stem for path in GOLDEN.glob("*.txt")} <= {path.stem for path in SAMPLES} | {"recordings"}
