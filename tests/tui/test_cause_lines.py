"""The lines of the first screen say how each group fares."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.model import Severity
from inspector.runs.examples import catalog, plugins, report, talk
from inspector.summaries.incidents import Incident
from inspector.summaries.summary import Conclusion, RunBrief
from inspector.tui.cause_lines import COLUMNS, LATEST, CauseLine
from inspector.tui.causes import Causes
from inspector.tui.rows import Rows
from tests.support.captures import save
from tests.support.nodes import refused, well
from tests.tui.screens import indexed, play, screen_text

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

    from inspector.model import Record
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
    since = "run 2" if over else ""
    verdict = Conclusion(lead="x", reason="x", certainty="certain", since=0.0, over_since=since)
    run = RunBrief(number=1, certname="web1.example", outcome="failed", verdict=verdict)
    assert nodes.cell(CauseLine(Incident("S01", "x", "x", Severity.ERROR, [run]), (run,)), width) == expected


def test_what_went_well_with_notices_counts_them(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        rows = app.screen.query_one(Rows)
        assert rows.plain(rows.items[0]).startswith("went well; 1 notice  ")

    records = talk(plugins(), catalog(), report(noop=True))
    play(indexed(save(tmp_path / "noop.sqlite", *records)), act, start="")


# -- a line in full --------------------------------------------------------------------------------------------

NOOP = talk(plugins(), catalog(), report(noop=True), certname="web9.example", address="192.0.2.9", after=60)
"""A run that went well, with a notice."""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("parts", "sentence"),
    [
        ((well(1),), "Nothing is wrong: the latest run of web1.example went well."),
        ((well(1), well(2)), "Nothing is wrong: the latest run of each went well."),
        ((well(1), refused(1)), "The latest run of web1.example went well."),
        ((well(1), well(2), refused(1)), "The latest run of each of these 2 nodes went well."),
        ((well(1), NOOP), "The latest run of each went well; 1 notice (F)."),
        ((NOOP,), "The latest run of web9.example went well; 1 notice (F)."),
    ],
)
def test_what_went_well_is_said_of_its_own_nodes_with_their_findings(
    tmp_path: Path, parts: tuple[list[Record], ...], sentence: str
) -> None:
    records = sorted((record for part in parts for record in part), key=lambda record: record.time)

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        causes = app.screen
        assert isinstance(causes, Causes)
        rows = causes.query_one(Rows)
        rows.move_to(next(at for at, line in enumerate(rows.items) if line.incident is None))
        await pilot.pause()
        shown = " ".join(screen_text(app).split())
        assert sentence in shown
        assert shown.count("Nothing is wrong") == sentence.count("Nothing is wrong")

    play(indexed(save(tmp_path / "some.sqlite", *records)), act, start="")


def test_what_went_well_shows_its_latest_runs_and_what_took_the_time(tmp_path: Path) -> None:
    runs = [record for at in range(12) for record in well(1, after=900 * at)]

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        lines = screen_text(app).splitlines()
        listed = [line for line in lines if " complete " in line]
        assert len(listed) == LATEST
        assert "run 12 " in listed[0]
        assert any("of 12 runs: median" in line and "most time in phase" in line for line in lines)
        assert any("C certificates" in line for line in lines)

    play(indexed(save(tmp_path / "well.sqlite", *runs)), act, (120, 40), start="")
