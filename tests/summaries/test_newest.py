"""What the newest records show by themselves is what the whole capture shows in the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.capture.store import Capture
from inspector.runs.examples import catalog, node, plugins, report, talk, together
from inspector.summaries import index, indexer, newest, reading
from inspector.summaries.judgement import state_after
from tests.support.captures import keep, recording, save
from tests.support.recorded import RECORDINGS, SAMPLES, VERSIONS, name_of, records_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from inspector.model import Record
    from inspector.summaries.newest import Newest
    from tests.conftest import Run

CUTS = 8
NOW = 1e12
BROKEN = "Evaluation Error: Error while evaluating a Resource Statement, Unknown resource type: 'fiel'"


@pytest.mark.parametrize("sample", SAMPLES, ids=name_of)
def test_the_first_answers_are_the_final_ones(sample: Path) -> None:
    _agree(sample)


@pytest.mark.slow
@pytest.mark.parametrize("sample", [*VERSIONS, *RECORDINGS], ids=name_of)
def test_the_first_answers_are_the_final_ones_of_other_recordings(sample: Path, tmp_path: Path) -> None:
    _agree(sample if sample.suffix == ".sqlite" else save(tmp_path / "c.sqlite", *records_of(sample)))


def _agree(path: Path) -> None:
    final = reading.read(path, now=NOW).judgement.nodes
    with Capture.open(path) as capture:
        for number in range(1, capture.last + 1, max(1, capture.last // CUTS)):
            found = newest.of_records(capture, NOW, number)
            for run in (*found.well, *found.bad):
                latest = final[run.name].runs[-1].run
                assert run.outcome == latest.outcome
                assert state_after(latest).bad == (run in found.bad)
                if run.verdict is not None and latest.verdict is not None:
                    assert (run.cause, run.verdict.reason) == (latest.cause, latest.verdict.reason)
                assert run.cause is None or run.cause == latest.cause


def _run(number: int, *, failed: bool = False) -> Sequence[Record]:
    """One of several agents, one after the other: node, plugins, catalog, report."""
    parts = node(), plugins(), catalog(status=500, text=BROKEN) if failed else catalog(), report()
    name = f"n{number}.example"
    return talk(*parts, certname=name, address=f"192.0.2.{number}", after=100 * number)


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    return save(tmp_path / "c.sqlite", *together(*(_run(number, failed=number == 4) for number in range(5))))


def _of(path: Path, number: int) -> Newest:
    with Capture.open(path) as capture:
        return newest.of_records(capture, NOW, number)


def test_each_run_that_began_within_is_answered(fleet: Path) -> None:
    found = _of(fleet, 11)  # of the third run all but its beginning
    assert (found.records, found.of) == (11, 20)
    assert [run.name for run in found.well] == ["n3.example"]
    (failed,) = found.bad
    assert (failed.name, failed.outcome, failed.cause) == ("n4.example", "failed", "S01")
    assert failed.verdict
    assert "Unknown resource type" in failed.verdict.reason


def test_a_capture_that_continues_another_one_has_only_its_own_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(newest, "MANY", 7)
    with Capture.create(tmp_path / "c.sqlite", after=1000) as capture:
        keep(capture, *together(_run(1), _run(2, failed=True)))
        assert capture.last == 1008
    found = newest.of_large(tmp_path / "c.sqlite", NOW)
    assert found
    assert (found.records, found.of) == (8, 8)
    monkeypatch.setattr(newest, "MANY", 8)
    assert newest.of_large(tmp_path / "c.sqlite", NOW) is None


def test_nodes_that_fail_alike_are_one_line(tmp_path: Path) -> None:
    records = together(*(_run(number, failed=True) for number in range(4)))
    found = _of(save(tmp_path / "c.sqlite", *records), 11)
    assert [run.name for run in found.bad] == ["n2.example", "n3.example"]
    (line,) = found.lines[1:-1]
    assert line.startswith("  n2.example failed: S01 ")
    assert line.endswith("'fiel' (and 1 more node)")


def test_a_run_that_is_under_way_is_no_answer(tmp_path: Path) -> None:
    records = together(_run(1), _run(2)[:3])
    with recording(tmp_path / "c.sqlite", *records) as capture:
        found = newest.of_records(capture, records[-1].ended + 1, 7)
    assert [run.name for run in found.well] == ["n1.example"]
    assert found.bad == []


def test_what_only_the_rest_can_say_is_not_answered(tmp_path: Path) -> None:
    """A run without a visible cause may have that of the one before it."""
    records = together(_run(1, failed=True), talk(node(), plugins(), certname="n1.example", after=1000))
    (run,) = _of(save(tmp_path / "c.sqlite", *records), 2).bad
    assert (run.outcome, run.verdict) == ("unfinished", None)


def test_of_what_is_read_as_soon_nothing_is_answered(fleet: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert newest.of_large(fleet, NOW) is None
    monkeypatch.setattr(newest, "MANY", 19)
    assert newest.of_large(fleet, NOW)
    indexer.build(fleet, index.place(fleet))
    assert newest.of_large(fleet, NOW) is None


@pytest.mark.parametrize("command", ["check", "runs", "doctor"])
def test_a_terminal_shows_them_before_the_rest(
    command: str, fleet: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(newest, "MANY", 10)
    monkeypatch.setattr(newest, "NEWEST", 11)
    piped, nothing = run(command, fleet)[1:]
    assert nothing == ""
    monkeypatch.setattr("sys.stderr.isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", "200")
    shown, first = run(command, fleet)[1:]
    assert shown == piped
    assert first.splitlines() == [
        "The newest 11 of 20 records show: 1 node completed its latest run without an error, 1 did not:",
        "  n4.example failed: S01 no catalog for n4.example: Unknown resource type: 'fiel'",
        "All of it is being read.",
    ]
