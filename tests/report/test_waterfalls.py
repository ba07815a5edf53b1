"""The waterfall of a page: the lines of the run, to scale."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.explain.master_log.measured import MasterTime, MasterTimes
from inspector.report.waterfalls import MOST, WIDTH, waterfall
from tests.support.pages import copied, sample

if TYPE_CHECKING:
    from inspector.report.waterfalls import Waterfall


def drawn(name: str) -> Waterfall:
    with copied(sample(name)) as copy:
        (run, *_) = copy.runs
        return waterfall(run, copy.source.briefs(run.number))


def test_every_record_silence_and_phase_has_a_line() -> None:
    found = drawn("first-run")
    assert [line.seq for line in found.lines if line.kind == "record"] == list(range(1, 23))
    assert [line.text for line in found.lines if line.kind == "phase"] == [
        "certificates", "node", "plugins", "catalog", "files", "report",
    ]  # fmt: skip
    assert "gathers facts" in [line.text for line in found.lines if line.kind == "silence"]


@pytest.mark.parametrize("name", ["first-run", "revoked", "bootstrap-waiting", "mismatched-key"])
def test_bars_are_within_the_axis_and_both_legs_are_drawn(name: str) -> None:
    bars = [bar for line in drawn(name).lines for bar in line.bars]
    assert all(0 <= bar.x < WIDTH and 0 < bar.width <= WIDTH and bar.x + bar.width <= WIDTH + 2.1 for bar in bars)
    assert {bar.leg for bar in bars} == {"agent", "master"}


def test_bars_are_to_scale() -> None:
    lines = {line.seq: line for line in drawn("first-run").lines if line.seq}
    catalog, small = (lines[seq].bars[0].width for seq in (11, 7))
    assert 12 < catalog / small < 20  # 461 ms and 29 ms


def test_a_masters_logs_divide_the_bar_of_waiting() -> None:
    times = MasterTimes({11: MasterTime(0.46, 0.26, 0.2)})
    with copied(sample("first-run")) as copy:
        (run,) = copy.runs
        found = waterfall(run, copy.source.briefs(run.number), times)
    (catalog,) = [line for line in found.lines if line.seq == 11]
    widths = {bar.work: bar.width for bar in catalog.bars}
    assert "waiting" not in widths
    assert 3 < widths["compile"] / widths["serve"] < 3.6  # 200 ms and 60 ms
    assert "queue (waiting for a JRuby) 198 ms" in found.spent
    assert drawn("first-run").spent == ""


def test_what_failed_is_marked_with_its_findings() -> None:
    (refused, taken) = [line for line in drawn("mismatched-key").lines if line.kind == "record"]
    assert (refused.status, refused.bad, refused.signs[0]) == ("400", True, ("B18", "error"))
    assert not taken.bad


def test_a_long_run_is_cut_and_counted() -> None:
    with copied(sample("first-run")) as copy:
        (run,) = copy.runs
        briefs = copy.source.briefs(run.number) * (MOST // 20)
        found = waterfall(run, briefs)
    assert len(found.lines) == MOST
    assert found.left_out > 0
