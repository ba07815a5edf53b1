"""Each sample and each recording as plain text: runs, phases, findings and a line an exchange.

Every file was compared with what the recording's README says of it. ``pytest --update-golden`` writes them anew.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest

from inspector.analysis.analyzer import Analyzer
from inspector.model import Exchange
from inspector.protocol.documents import Nothing, Undecodable
from inspector.summaries import conclusions, summary, wording
from inspector.text import clean
from tests.support import places
from tests.support.briefs import why
from tests.support.conversations import steps
from tests.support.recorded import ABSENT, RECORDINGS, SAMPLES, VERSIONS, name_of, records_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from pathlib import Path

    from inspector.analysis.analyzer import Step
    from inspector.model import Record
    from inspector.protocol.documents import Document

GOLDEN = places.GOLDEN


def golden_lines(records: Iterable[Record]) -> Iterator[str]:
    """A capture in words that do not depend on when it was recorded, nor on where this runs."""
    analyzer = Analyzer()
    taken = list(steps(analyzer, records))
    for run in analyzer.finish():
        _, _, agent, version, environment, outcome, _, _, ids = wording.run_row(run.snapshot())
        phases = ", ".join(f"{span.phase} {span.exchanges}" for span in run.spans.values())
        yield f"run {run.number}: {agent} {version} to {run.master_version} in {environment}: {outcome}"
        yield f"  {phases}; {ids or 'nothing deviates'}; {why(run) or 'all is well'}"
        for finding in run.findings:
            yield from ("  " + line for line in wording.finding(finding, conclusions.of_run(run))[:2])
    yield "records"
    for step in taken:
        yield "  " + " | ".join(_cells(step, step.run.number if step.run else None))


def _cells(step: Step, number: int | None) -> Iterator[str]:
    _, who, phase, method, path, status, size, _, ids = wording.row(summary.brief_of(step), step.run)
    yield from (str(step.record.seq), str(number or "-"), who, phase, method, path, status, size)
    yield step.match.endpoint.name if step.match else "-"
    yield " > ".join(_kind(document) for document in (step.request, step.response))
    if isinstance(step.record, Exchange) and step.record.identity:  # a flow file does not say
        yield f"identity {wording.identity(step.record.identity)}"
    if ids:
        yield ids


def _kind(document: Document | None) -> str:
    """What a body was read as."""
    match document:
        case None | Nothing():
            return "-"
        case Undecodable():
            return f"Undecodable: {clean(document.reason)}"
    return type(document).__name__


def text_of(path: Path) -> str:
    text = "".join(f"{line.rstrip()}\n" for line in golden_lines(records_of(path)))
    # Where the recording machine kept its files is nobody's business; the file's name stays.
    return re.sub(r"/srv/[^\s|:`']*/|(?<=…)[^\s|/]*test/root/", "/…/", text)


def golden_of(path: Path) -> Path:
    return GOLDEN / (f"{path.stem}.txt" if path in (*SAMPLES, *VERSIONS) else f"recordings/{name_of(path)}.txt")


@pytest.mark.parametrize("sample", [*SAMPLES, *VERSIONS], ids=name_of)
def test_a_sample_is_reported_as_reviewed(sample: Path, golden: Callable[[Path, str], None]) -> None:
    golden(golden_of(sample), text_of(sample))


@pytest.mark.skipif(not RECORDINGS, reason=ABSENT)
@pytest.mark.parametrize("recording", RECORDINGS, ids=name_of)
def test_a_recording_is_reported_as_reviewed(recording: Path, golden: Callable[[Path, str], None]) -> None:
    golden_of(recording).parent.mkdir(parents=True, exist_ok=True)
    golden(golden_of(recording), text_of(recording))


def test_there_are_samples_and_no_golden_file_without_one() -> None:
    assert SAMPLES
    assert set(GOLDEN.glob("*.txt")) == {golden_of(path) for path in (*SAMPLES, *VERSIONS)}


@pytest.mark.skipif(not RECORDINGS, reason=ABSENT)
def test_there_is_no_golden_file_without_a_recording() -> None:
    assert set((GOLDEN / "recordings").rglob("*.txt")) == {golden_of(path) for path in RECORDINGS}
