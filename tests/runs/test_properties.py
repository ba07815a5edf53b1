"""What must hold however real runs are mixed or cut: the same runs come apart, and what was over stays as told."""

from __future__ import annotations

import dataclasses
import tempfile
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from inspector.analysis.analyzer import Analyzer
from inspector.capture.store import Capture
from inspector.formats.importing import load
from inspector.model import Exchange, Gap, Handshake, Leg, Message, Record
from tests.support.conversations import START, runs_of, steps
from tests.support.recorded import ABSENT, RECORDINGS, SAMPLES, name_of, records_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from inspector.runs.run import Run

CAPTURES = [*SAMPLES, *RECORDINGS]
LONG = settings(max_examples=40)

type RunResult = tuple[str | None, str, frozenset[int], frozenset[tuple[str, str, str, frozenset[int]]]]
"""Of a run: certname, outcome, records, findings."""


BEYOND = {"B15", "R03", "S33"}
"""What others' downloads of the same CRL show, what the end of a capture leaves open, and what other servers answered
others meanwhile."""


def result_of(run: Run, numbers: Mapping[int, int] | None = None) -> RunResult:
    """A run; ``numbers`` are what its records are called, if not by their own numbers."""

    def called(seqs: Iterable[int]) -> frozenset[int]:
        return frozenset(numbers[seq] if numbers else seq for seq in seqs)

    own = (finding for finding in run.findings if finding.rule not in BEYOND)
    findings = ((finding.rule, str(finding.severity), finding.message, called(finding.seqs)) for finding in own)
    return run.certname, run.outcome, called(run.seqs), frozenset(findings)


# -- mixing ----------------------------------------------------------------------------------------------


def elsewhere(records: Iterable[Record], number: int, begin: float) -> list[Record]:
    """The same talk, from another address, on connections of its own, at another time."""
    taken = list(records)
    shift = begin - min(record.time for record in taken)
    return [_moved(record, number, shift) for record in taken]


def _moved(record: Record, number: int, shift: float) -> Record:
    match record:
        case Gap():
            return dataclasses.replace(record, time=record.time + shift)
        case Handshake():
            return dataclasses.replace(record, time=record.time + shift, leg=_leg(record.leg, number, shift))
        case Exchange():
            return dataclasses.replace(
                record,
                agent=_leg(record.agent, number, shift),
                master=_leg(record.master, number, shift) if record.master else None,
                request=_message(record.request, shift),
                response=_message(record.response, shift) if record.response else None,
            )


def _leg(leg: Leg, number: int, shift: float) -> Leg:
    return dataclasses.replace(
        leg,
        id=f"{number}/{leg.id}",
        address=f"192.0.2.{number}" if leg.side == "agent" else leg.address,
        connecting=_later(leg.connecting, shift),
        connected=_later(leg.connected, shift),
        secured=_later(leg.secured, shift),
    )


def _message[M: Message](message: M, shift: float) -> M:
    return dataclasses.replace(message, started=_later(message.started, shift), ended=_later(message.ended, shift))


def _later(time: float | None, shift: float) -> float | None:
    return None if time is None else time + shift


@cache
def names_in(path: Path) -> frozenset[str]:
    """The certnames of a capture's runs, and who else is named there (curl asks for somebody else's node)."""
    return frozenset(run.certname for run in runs_of(records_of(path)) if run.certname)


@st.composite
def mixtures(draw: st.DrawFn) -> list[tuple[str, list[Record]]]:
    """Some captures that have no certname in common, each moved elsewhere."""
    chosen: list[Path] = []
    for path in draw(st.permutations(CAPTURES))[: draw(st.integers(3, 8))]:
        if not any(names_in(path) & names_in(other) for other in chosen):
            chosen.append(path)
    begins = [draw(st.floats(0, 30)) for _ in chosen]
    return [
        (name_of(path), elsewhere(records_of(path), number, START + begin))
        for number, (path, begin) in enumerate(zip(chosen, begins, strict=True), 1)
    ]


@pytest.mark.slow
@LONG
@given(mixtures())
def test_runs_that_are_mixed_come_apart_again(mixture: list[tuple[str, list[Record]]]) -> None:
    alone = {(name, result_of(run)) for name, records in mixture for run in runs_of(records)}
    # In the order in which they ended, as a proxy writes them; each capture's own order stays.
    origin = [(record.ended, name, record) for name, records in mixture for record in records]
    origin.sort(key=lambda entry: entry[0])
    mixed = [dataclasses.replace(record, seq=seq) for seq, (_, _, record) in enumerate(origin, 1)]
    whose = {seq: (name, record.seq) for seq, (_, name, record) in enumerate(origin, 1)}
    numbers = {seq: own for seq, (_, own) in whose.items()}
    found = set()
    for run in runs_of(mixed):
        owners = {whose[seq][0] for seq in run.seqs}
        assert len(owners) == 1, f"{run.certname} has records of {owners}"
        found.add((owners.pop(), result_of(run, numbers)))
    assert found == alone


# -- cutting ---------------------------------------------------------------------------------------------


@pytest.mark.slow
@LONG
@given(st.data())
def test_what_was_over_stays_as_reported_wherever_it_is_cut(data: st.DataObject) -> None:
    records = records_of(data.draw(st.sampled_from(CAPTURES)))
    cut = data.draw(st.integers(0, len(records)))
    analyzer = Analyzer()
    over: list[RunResult] = []
    for step in steps(analyzer, records):
        if step.record.seq == cut:
            over = [result_of(run) for run in analyzer.runs if run.closed]
    whole = [result_of(run) for run in analyzer.finish()]
    assert [result for result in over if result not in whole] == []
    assert [result for result in over if result not in [result_of(run) for run in runs_of(records[:cut])]] == []


@LONG
@given(st.data())
def test_any_piece_with_any_body_cut_off_is_understood(data: st.DataObject) -> None:
    records = records_of(data.draw(st.sampled_from(CAPTURES)))
    first = data.draw(st.integers(0, len(records) - 1))
    piece = list(records[first : data.draw(st.integers(first + 1, len(records)))])
    place = data.draw(st.integers(0, len(piece) - 1))
    record = piece[place]
    if isinstance(record, Exchange):
        part = data.draw(st.sampled_from(["request", "response"]))
        message = getattr(record, part)
        if message:
            body = message.body[: data.draw(st.integers(0, len(message.body)))]
            cut = dataclasses.replace(message, body=body)
            piece[place] = dataclasses.replace(record, **{part: cut})
    assert all(run.outcome for run in runs_of(piece))


@pytest.mark.skipif(not RECORDINGS, reason=ABSENT)
@settings(LONG, max_examples=25)
@given(st.data())
def test_a_flow_file_may_be_cut_anywhere(data: st.DataObject) -> None:
    recording = data.draw(st.sampled_from(RECORDINGS))
    content = recording.read_bytes()
    with tempfile.TemporaryDirectory() as folder:
        flows, capture = Path(folder) / "flows.mitm", Path(folder) / "capture.sqlite"
        flows.write_bytes(content[: data.draw(st.integers(0, len(content)))])
        loaded = load([flows], capture)
        assert bool(loaded.kinds) is capture.exists()
        if capture.exists():
            with Capture.open(capture) as retained:
                records = list(retained.records())
            known = {(record.time, record.ended) for record in records_of(recording)}
            assert all((record.time, record.ended) in known for record in records)
            runs_of(records)
