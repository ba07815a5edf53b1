"""The lines of the first screen say how each group fares."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.model import Severity
from inspector.runs.examples import catalog, plugins, report, talk
from inspector.summaries.incidents import Incident
from inspector.summaries.summary import RunBrief
from inspector.tui.cause_lines import COLUMNS, CauseLine
from inspector.tui.rows import Rows
from tests.support.captures import save
from tests.tui.screens import indexed, play

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

    from inspector.tui.app import Inspector


@pytest.mark.parametrize(
    ("width", "expected"),
    [(100, "web1.example, web2.example, web3.example"), (30, "web1.example, web2.example +1"), (15, "web1.example +2"),
     (12, "3")],
)  # fmt: skip
def test_nodes_are_named_while_there_is_room(width: int, expected: str) -> None:
    nodes = next(column for column in COLUMNS if column.name == "nodes")
    runs = [RunBrief(number=at, certname=f"web{at}.example", outcome="failed") for at in (1, 2, 3)]
    incident = Incident("S01", "x", "x", Severity.ERROR, runs, [run.name for run in runs])
    assert nodes.cell(CauseLine(incident, tuple(runs)), width) == expected
    assert nodes.cell(CauseLine(None, tuple(runs)), width) == expected


@pytest.mark.parametrize(
    ("over", "width", "expected"), [(True, 5, "over"), (False, 14, "not seen since"), (False, 5, "-")]
)
def test_a_past_cause_is_over_or_not_seen_since(over: bool, width: int, expected: str) -> None:
    nodes = next(column for column in COLUMNS if column.name == "nodes")
    run = RunBrief(number=1, certname="web1.example", outcome="failed")
    assert nodes.cell(CauseLine(Incident("S01", "x", "x", Severity.ERROR, [run], over=over), (run,)), width) == expected


def test_what_went_well_with_notices_counts_them(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        rows = app.screen.query_one(Rows)
        assert rows.plain(rows.items[0]).startswith("went well; 1 notice  ")

    records = talk(plugins(), catalog(), report(noop=True))
    play(indexed(save(tmp_path / "noop.sqlite", *records)), act, start="")
