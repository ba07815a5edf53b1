"""The first screen: causes, nodes and fixes."""

from __future__ import annotations

import time
from functools import cache
from typing import TYPE_CHECKING

import pytest

from inspector import regex
from inspector.capture import merge
from inspector.capture.store import Capture
from inspector.model import OpenRequest, Present
from inspector.runs.examples import catalog, plugins, report, talk
from inspector.runs.examples import together as of_all
from inspector.tui.causes import Causes
from inspector.tui.findings import Findings, FoundRows
from inspector.tui.rows import Rows
from inspector.tui.run import RunView
from inspector.tui.runs import Runs
from tests.support.apart import TWO, apart
from tests.support.captures import recording, save
from tests.support.conversations import Agent
from tests.support.nodes import not_stored, refused, uncompiled, well
from tests.tui.screens import SIZES, indexed, look, play, screen_text, shared_folder

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

    from inspector.tui.app import Inspector


@cache
def faults() -> Path:
    """Two causes, one of them of two nodes, and a node that went well; for tests that only look at it."""
    parts = (well(1), refused(1), uncompiled(2), uncompiled(3, after=60))
    records = sorted((record for part in parts for record in part), key=lambda record: record.time)
    return indexed(save(shared_folder() / "faults.sqlite", *records))


@pytest.mark.slow
@pytest.mark.parametrize("size", SIZES)
def test_the_first_screen_answers_what_failed_where_and_what_to_do(size: tuple[int, int]) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        assert isinstance(app.screen, Causes)
        shown = " ".join(screen_text(app).split())
        assert "3 nodes failing, 1 node completed, 5 errors" in shown
        assert "Could not find class ::profile::web" in shown
        assert "The same on web2.example." in shown
        await pilot.press("down")
        await pilot.pause()
        shown = screen_text(app)
        assert "db1.example has no certificate yet: B18" in " ".join(shown.split())
        assert "puppetserver ca clean --certname db1.example" in shown

    look(faults(), act, size, start="")


@pytest.mark.slow
def test_a_causes_nodes_are_shown_below_it_and_enter_opens_a_run() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        rows = app.screen.query_one(Rows)
        await pilot.press("right")
        await pilot.pause()
        assert [line.run.name for line in rows.items if line.node] == ["web2.example", "web3.example"]
        await pilot.press("down", "enter")
        await pilot.pause()
        assert isinstance(app.screen, RunView)
        await pilot.press("escape", "left")
        await pilot.pause()
        assert [line for line in rows.items if line.node] == []
        for key, groups in (("r", 0), ("a", 4)):
            await pilot.press(key)
            await pilot.pause()
            assert isinstance(app.screen, Runs)
            assert sum(bool(line.of) for line in app.screen.query_one(Rows).items) == groups
            await pilot.press("escape")
            await pilot.pause()
            assert isinstance(app.screen, Causes)

    look(faults(), act, start="")


@pytest.mark.slow
def test_v_shows_the_whole_message(tmp_path: Path) -> None:
    long = f"Evaluation Error: {' and '.join(f'class {at}' for at in range(60))} (file: /etc/site.pp, line: 3)"
    records = talk(plugins(), catalog(status=500, text=long), report(result="failed"))
    path = indexed(save(tmp_path / "long.sqlite", *records))

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        causes = app.screen
        assert isinstance(causes, Causes)
        line = causes.query_one(Rows).items[0]
        for shown in (True, False):
            await pilot.press("v")
            assert ("class 30 and class 31" in causes._of(line).plain) is shown
        await pilot.press("F")
        await pilot.pause()
        findings = app.screen
        assert isinstance(findings, Findings)
        findings.query_one(FoundRows).go("S01")
        for shown in (True, False):
            await pilot.press("v")
            assert ("class 30 and class 31" in findings._detail().plain) is shown

    play(path, act, start="")


def test_a_healthy_capture_shows_that_nothing_is_wrong(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        shown = screen_text(app)
        assert "2 nodes completed" in shown
        assert "Nothing is wrong" in shown

    play(indexed(save(tmp_path / "well.sqlite", *well(1), *well(2, after=5))), act, start="")


@pytest.mark.slow
@pytest.mark.parametrize("moved", [False, True])
def test_the_cursor_is_on_the_worst_cause_unless_the_user_moved_it(tmp_path: Path, moved: bool) -> None:
    path = indexed(save(tmp_path / "growing.sqlite", *refused(1), *well(1, after=5)))

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        rows = app.screen.query_one(Rows)
        if moved:
            await pilot.press("down")
        before = rows.item
        with Capture.create(path) as capture:
            for record in (*uncompiled(2, after=60), *uncompiled(3, after=90)):
                capture.append(record)
            capture.flush()
        indexed(path)
        app.poll()
        await pilot.pause()
        worst = rows.items[0].incident
        assert worst is not None
        assert worst.cause == "S01"  # of two nodes
        assert (rows.at == 0) is not moved
        assert (before is not None and rows.item is not None and rows.item.ident == before.ident) is moved

    play(path, act, start="")


def test_the_text_stays_where_it_was_scrolled_to_while_the_capture_grows(tmp_path: Path) -> None:
    path = indexed(save(tmp_path / "growing.sqlite", *refused(1), *well(1, after=5)))

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        scroll = app.screen.query_one("#detail")
        scroll.scroll_to(y=3, animate=False, immediate=True)
        with Capture.create(path) as capture:
            for record in well(4, after=3000):
                capture.append(record)
            capture.flush()
        indexed(path)
        app.poll()
        await pilot.pause()
        assert scroll.scroll_offset.y == 3
        await pilot.press("down")
        await pilot.pause()
        assert scroll.scroll_offset.y == 0

    play(path, act, (80, 24), start="")


def test_a_failed_run_stands_beside_the_last_good_one_of_its_node(tmp_path: Path) -> None:
    good = talk(plugins(), catalog(), report(), certname="web1.example", version="7.23.0")
    other = talk(plugins(), catalog(), report(), certname="web2.example", address="192.0.2.7", after=900)
    bad = talk(plugins(), catalog(status=500), report(result="failed"), certname="web1.example", version="7.24.0",
               after=1800)  # fmt: skip
    records = sorted((*good, *other, *bad), key=lambda record: record.time)

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        shown = screen_text(app)
        assert "this  run 3" in shown
        assert "good  run 1" in shown
        assert "agent: 7.23.0, now 7.24.0" in shown
        assert "address:" not in shown
        await pilot.press("o")
        await pilot.pause()
        assert isinstance(app.screen, RunView)
        assert app.screen.number == 1

    play(indexed(save(tmp_path / "again.sqlite", *records)), act, start="")


def test_a_node_that_never_went_well_says_so() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        assert screen_text(app).count("No earlier run of this node in the capture went well.") == 1
        await pilot.press("o")
        await pilot.pause()
        assert screen_text(app).count("No earlier run of this node in the capture went well.") == 2
        await pilot.press("down", "y")
        await pilot.pause()
        commands = [line.strip() for line in app.clipboard.splitlines()]
        assert "puppetserver ca clean --certname db1.example" in commands
        assert "puppetserver ca sign --certname db1.example" in commands

    look(faults(), act, start="")


# -- what is under way ---------------------------------------------------------------------------------


def begun() -> Agent:
    """An agent that compiles for a while by now."""
    return Agent(leg="1", time=time.time() - 20).node().plugins()


def compiling(agent: Agent) -> OpenRequest:
    return OpenRequest("a.example-1", agent.time + 5, "POST", agent.url("catalog/a.example"))


@pytest.mark.slow
def test_what_is_under_way_stands_above_what_is_over_and_grows(tmp_path: Path) -> None:
    agent = begun()
    with recording(tmp_path / "c.sqlite", *uncompiled(1), *agent.records, requests=(compiling(agent),)) as capture:

        async def act(pilot: Pilot[None], app: Inspector) -> None:
            def seconds() -> int:
                found = regex.search(r"a\.example +waits for its catalog, ([0-9]+) s so far +run 2", screen_text(app))
                assert found, screen_text(app)
                return int(found[1])

            shown = screen_text(app)
            assert "1 node failing, 1 node under way" in shown
            assert shown.index("Under way") < shown.index("waits for its catalog") < shown.index("S01")
            before = seconds()
            for _ in range(100):
                await pilot.pause(0.1)
                if seconds() > before:
                    break
            assert seconds() > before
            capture.set_present(Present("ended", time.time()))
            capture.flush()
            for _ in range(100):
                await pilot.pause(0.1)
                if "Under way when the recording ended" in screen_text(app):
                    break
            assert "a.example  gathers facts, or has ended" in screen_text(app)

        play(indexed(tmp_path / "c.sqlite"), act, start="")


@pytest.mark.slow
def test_it_never_says_that_there_are_no_runs_while_something_is_under_way(tmp_path: Path) -> None:
    agent = begun()
    with recording(tmp_path / "c.sqlite", requests=(compiling(agent),)):

        async def act(pilot: Pilot[None], app: Inspector) -> None:
            shown = screen_text(app)
            assert "1 agent under way" in shown
            assert "an unnamed agent  waits for its catalog" in shown
            assert "no runs" not in shown
            await pilot.press("r")
            await pilot.pause()
            assert "an unnamed agent waits for its catalog" in screen_text(app)
            assert "There are no runs" not in screen_text(app)

        play(indexed(tmp_path / "c.sqlite"), act, start="")


def test_what_was_cut_off_is_listed(tmp_path: Path) -> None:
    with recording(tmp_path / "c.sqlite", *begun().records) as capture:
        capture.set_present(Present("ended", time.time()))
        capture.flush()

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        shown = screen_text(app)
        assert "Under way when the recording ended" in shown
        assert "No run is over: r lists those that began." in shown
        assert "no runs" not in shown

    play(indexed(tmp_path / "c.sqlite"), act, start="")


def test_calls_of_tools_are_told_where_there_is_no_run(tmp_path: Path) -> None:
    agent = Agent(version="3.0")  # of which no header says that it is an agent
    agent.ask("GET", "/status/v1/simple/server", status=403, headers=(("User-Agent", "curl/7.88.1"),))

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        shown = screen_text(app)
        assert "No run of an agent: 1 request of curl/7.88.1, 1 answered 403." in shown
        assert "There are no runs" not in shown

    play(indexed(save(tmp_path / "c.sqlite", *agent.records)), act, start="")


def test_what_was_found_outside_runs_is_on_the_first_screen(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        assert "Outside runs (F): error D03 PuppetDB accepts a value that it cannot store" in screen_text(app)
        assert "The latest run of web1.example went well." in screen_text(app)

    async def nothing(pilot: Pilot[None], app: Inspector) -> None:
        assert "Outside runs" not in screen_text(app)

    play(indexed(save(tmp_path / "a.sqlite", *of_all(well(1), not_stored()))), act, start="")
    play(indexed(save(tmp_path / "b.sqlite", *well(1))), nothing, start="")


def test_a_clock_that_was_wrong_at_one_of_several_places_is_named(tmp_path: Path) -> None:
    merge.merge(apart(tmp_path, -420.0), tmp_path / "all.sqlite")

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        app._settle()
        await pilot.pause()
        assert f"{TWO}: its clock was " in screen_text(app)

    play(indexed(tmp_path / "all.sqlite"), act, start="")
