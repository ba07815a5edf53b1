"""Runs and records in columns, as a page's lists and filters read them."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from inspector.report.records import COLUMNS, order, runs_plain
from tests.support.captures import save
from tests.support.hostile import harmless, hostile_records
from tests.support.nodes import uncompiled, well
from tests.support.pages import content_of, copied, sample

if TYPE_CHECKING:
    from pathlib import Path


def test_records_are_read_back_from_their_columns() -> None:
    content = content_of(sample("first-run"))
    found = content.records.plain()
    columns, names = found["columns"], found["names"]
    assert list(accumulate(columns["seq"])) == list(range(1, 23))
    assert columns["target"][0] == "/puppet-ca/v1/certificate/ca"
    assert [names[place] for place in columns["phase"]][10] == "catalog"
    assert columns["status"][16] == 404
    assert names[columns["signs"][0]] == "B01:warning"
    assert {len(column) for column in columns.values()} == {22} == {len(content.records)}


def test_hostile_records_are_cleaned(tmp_path: Path) -> None:
    content = content_of(save(tmp_path / "a.sqlite", *hostile_records()))
    found = content.records.plain()
    texts = [*filter(None, found["names"]), *found["columns"]["target"]]
    assert all(map(harmless, texts))
    runs = runs_plain(content.runs)
    assert all(harmless(text) for run in runs for text in [*run["cells"], run["words"], run["certname"], *run["env"]])


def test_a_run_has_its_cells_and_what_filters_look_at() -> None:
    content = content_of(sample("compile-error"))
    (run,) = runs_plain(content.runs)
    assert len(run["cells"]) == len(COLUMNS)
    assert (run["certname"], run["outcome"]) == ("node1.example", "failed")
    assert "S01:error" in run["findings"]
    assert "no role for this node" in run["words"]


def test_runs_that_failed_come_first_then_the_latest(tmp_path: Path) -> None:
    path = save(tmp_path / "a.sqlite", *[*well(1), *uncompiled(2, 1000), *well(3, 2000)])
    with copied(path) as copy:
        assert [run.certname for run in order(copy.runs)] == [
            run.certname for run in sorted(copy.runs, key=lambda run: (run.outcome == "complete", -run.started))
        ]
        assert order(copy.runs)[0].outcome == "failed"
