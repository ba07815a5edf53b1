"""The first screen: the runs of a capture, to sort, group, filter, mark and open."""

from __future__ import annotations

import json
import threading
from functools import cache
from typing import TYPE_CHECKING

import pytest
from textual.widgets import Input, Label, Static

from inspector.capture.store import Capture
from inspector.errors import CaptureError
from inspector.summaries.filtering import Progress
from inspector.summaries.summary import RunBrief
from inspector.tui.histogram import Histogram
from inspector.tui.keys import Help
from inspector.tui.prompt import PAUSE
from inspector.tui.rows import Rows
from inspector.tui.run import RunView
from inspector.tui.runs import RunLine, RunRows, Runs, _outcome
from tests.support.captures import keep, save
from tests.support.conversations import START, Agent, together
from tests.support.nodes import uncompiled, well
from tests.tui.screens import (
    SIZES,
    indexed,
    look,
    play,
    sample,
    screen_text,
    settled,
    shared_folder,
    shared_sample,
    type_in,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from textual.pilot import Pilot

    from inspector.tui.app import Inspector


def several(folder: Path) -> Path:
    """Three agents: a runs twice, b gets no catalog, c is refused."""
    broken = Agent("b.example", "192.0.2.2", version="6.28.0", time=START + 100, uuid="u-b", environment="testing")
    broken.leg = "run"
    broken.plugins().catalog(status=500, body=b'{"message":"Could not find class x"}').report("failed")
    agents = [
        Agent("a.example", "192.0.2.1").run(),
        broken,
        Agent("c.example", "192.0.2.3", time=START + 200).refused("Certificate 'CN=c.example' is revoked", own=True),
        Agent("a.example", "192.0.2.1", time=START + 3000).run("u-2"),
    ]
    return indexed(save(folder / "several.sqlite", *together(*agents)))


@cache
def shared() -> Path:
    """These agents, for tests that only look at them."""
    return several(shared_folder())


def rows(app: Inspector) -> Rows[RunLine]:
    return app.screen.query_one("#runs", Rows)


def under(app: Inspector) -> RunBrief:
    """The run under the cursor."""
    line = rows(app).item
    assert line is not None
    return line.run


def names(app: Inspector) -> list[str]:
    return [line.run.name for line in rows(app).items]


def test_each_run_has_a_row() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        text = screen_text(app)
        assert "2 runs" in text
        assert [line.count("complete") for line in text.splitlines() if "node1.example " in line] == [1, 1]
        assert text.count("node1.example ") >= 2

    look(shared_sample("out-of-sync"), act)


@pytest.mark.slow
def test_what_a_run_comes_down_to_stands_below_with_what_to_do() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        text = screen_text(app)
        assert "Run 1" in text
        assert "node1.example failed: S01" in text
        assert "1. Correct the code that the message names" in text
        assert "     puppet agent -t --noop" in text

    look(shared_sample("compile-error"), act, (80, 24))


@pytest.mark.slow
def test_enter_and_the_mouse_open_a_run_and_escape_comes_back() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("home", "down", "enter")
        await pilot.pause()
        assert isinstance(app.screen, RunView)
        assert app.screen.number == 2
        await pilot.press("escape")
        assert isinstance(app.screen, Runs)
        await pilot.click("#runs", offset=(30, 3), times=2)
        await pilot.pause()
        assert isinstance(app.screen, RunView)
        assert app.screen.number == 3

    look(shared(), act)


@pytest.mark.slow
def test_a_filter_says_how_many_it_lets_through_and_escape_takes_it_away() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await type_in(pilot, app, "f", "status:500")
        assert names(app) == ["b.example"]
        assert "4 runs, 1 shown: status:500" in screen_text(app)
        await type_in(pilot, app, "f", "outcome:complete !agent:b*")
        assert names(app) == ["a.example", "a.example"]
        await type_in(pilot, app, "f", "agent:nobody")
        assert "No run matches the filter: agent:nobody" in screen_text(app)
        await pilot.press("escape")
        assert len(names(app)) == 4
        await type_in(pilot, app, "f", "fase:catalog")
        assert "phase" in screen_text(app).splitlines()[-2]
        assert len(names(app)) == 4
        await type_in(pilot, app, "f", 'text:"Could not find"')
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert names(app) == ["b.example"]

    look(shared(), act)


@pytest.mark.slow
def test_runs_by_agent_fold_and_unfold() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("a", "home")
        assert names(app) == ["a.example", "b.example", "c.example"]
        assert "> 2" in screen_text(app)
        await pilot.press("enter")
        assert names(app) == ["a.example"] * 3 + ["b.example", "c.example"]
        assert "v 2" in screen_text(app)
        await pilot.press("down", "enter")
        await pilot.pause()
        assert isinstance(app.screen, RunView)
        assert app.screen.number == 1
        await pilot.press("escape", "a")
        assert len(names(app)) == 4

    look(shared(), act)


@pytest.mark.slow
def test_runs_stay_below_their_agent_however_they_are_sorted(tmp_path: Path) -> None:
    agents = [
        Agent("a.example", "192.0.2.1").run(),
        Agent("b.example", "192.0.2.2", time=START + 100).run("u-2"),
        Agent("b.example", "192.0.2.2", time=START + 3000).refused("Certificate 'CN=b.example' is revoked", own=True),
        Agent("a.example", "192.0.2.1", time=START + 6000).run("u-4"),
    ]
    a, b = [("a.example", 0), 1, 4], [("b.example", 0), 2, 3]

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        def lines() -> list[object]:
            return [(line.run.name, 0) if line.of else line.run.number for line in rows(app).items]

        def sort(title: str) -> list[object]:
            table = rows(app)
            table.sort_by([column.title for column in table.columns].index(title))
            return lines()

        await pilot.press("a", "end", "enter", "home", "enter")
        assert lines() == a + b
        assert sort("run") == b + a  # by the latest run of each
        assert sort("run") == [a[0], 4, 1, b[0], 3, 2]
        outcomes = {run.number: run.outcome for run in app.source.runs}
        assert outcomes[1] == outcomes[2] == outcomes[4] < outcomes[3]
        assert sort("outcome") == a + b
        assert sort("outcome") == [b[0], 3, 2, *a]
        await pilot.press("end", "enter")
        await pilot.pause()
        assert isinstance(app.screen, RunView)
        assert app.screen.number == 4

    play(indexed(save(tmp_path / "two.sqlite", *together(*agents))), act)


@pytest.mark.slow
@pytest.mark.parametrize("unfold", [False, True])
def test_runs_of_folded_agents_are_counted_and_exported(tmp_path: Path, unfold: bool) -> None:
    target = tmp_path / "out.jsonl"

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await type_in(pilot, app, "f", "agent:a*")
        await pilot.press("a", "home", *["enter"] * unfold)
        assert len(names(app)) == (3 if unfold else 1)
        assert "4 runs, 2 shown: agent:a*" in screen_text(app)
        await type_in(pilot, app, "e", str(target))
        await app.workers.wait_for_complete()
        records = len({*app.source.seqs(1), *app.source.seqs(4)})
        await pilot.pause()
        assert f"wrote {records} records to" in screen_text(app)

    look(shared(), act)


@pytest.mark.slow
def test_the_histogram_shows_when_and_leads_there() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        histogram = app.screen.query_one(Histogram)
        assert histogram.display
        lines = screen_text(app).splitlines()
        assert "!" in lines[3]  # b and c, though there may be no colour
        assert " runs " in lines[3], "what the bars are"
        await pilot.click(Histogram, offset=(1, 1))
        assert under(app).number == 1
        await pilot.press("H")
        assert not histogram.display
        await pilot.press("H")
        await pilot.press("a", "home")
        app.screen.query_one(Histogram).post_message(Histogram.Picked(4))
        await pilot.pause()
        assert under(app).number == 4
        assert not rows(app).items[rows(app).at].of

    look(shared(), act)


@pytest.mark.slow
def test_marks_and_notes_are_kept_beside_the_capture(tmp_path: Path) -> None:
    capture = several(tmp_path)
    before = capture.read_bytes()

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("home", "m")
        await type_in(pilot, app, "M", "ask the [network] people")
        text = screen_text(app)
        assert "* " in text
        assert "note: ask the [network] people" in text

    async def again(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("home")
        assert "note: ask the [network] people" in screen_text(app)
        await pilot.press("m")
        await type_in(pilot, app, "M", "")
        assert "note:" not in screen_text(app)

    play(capture, act)
    document = json.loads((tmp_path / "several.sqlite.notes.json").read_text())
    assert "ask the [network] people" in json.dumps(document)
    play(capture, again)
    assert capture.read_bytes() == before


def test_what_comes_in_is_shown(tmp_path: Path) -> None:
    capture = several(tmp_path)

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        with Capture.create(capture) as writer:
            keep(writer, *together(Agent("d.example", "192.0.2.4", time=START + 4000).run("u-d")))
        indexed(capture)
        app.poll()
        await pilot.pause()
        assert names(app)[-1] == "d.example"
        assert under(app).name == "d.example"  # the cursor was at the end

    play(capture, act)


@pytest.mark.slow
def test_what_came_while_a_run_was_looked_at_is_there_afterwards(tmp_path: Path) -> None:
    capture = several(tmp_path)

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("enter")
        with Capture.create(capture) as writer:
            keep(writer, *together(Agent("d.example", "192.0.2.4", time=START + 4000).run("u-d")))
        indexed(capture)
        app.poll()
        await pilot.pause()
        await pilot.press("escape")
        await pilot.pause()
        assert names(app)[-1] == "d.example"

    play(capture, act)


@pytest.mark.slow
def test_a_filter_whose_records_cannot_be_read_is_not_one_that_matches_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        def read_runs(text: str) -> Iterator[Progress[RunBrief]]:
            raise_at_first = f"{text}: the disk is gone"
            yield Progress(1, 2, app.source.runs[:1])
            raise CaptureError(raise_at_first)

        monkeypatch.setattr(app.filtering, "read_runs", read_runs)
        await type_in(pilot, app, "f", 'text:"class x"')
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert names(app) == ["a.example"]
        assert 'could not be read: text:"class x": the disk is gone' in screen_text(app)

    play(several(tmp_path), act)


@pytest.mark.slow
def test_a_filter_that_takes_long_is_not_begun_again_while_the_capture_grows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, asked = threading.Event(), []

    async def act(pilot: Pilot[None], app: Inspector) -> None:
        def read_runs(text: str) -> Iterator[Progress[RunBrief]]:
            asked.append(text)

            def read() -> Iterator[Progress[RunBrief]]:
                gate.wait(60)
                yield Progress(1, 1, app.source.runs[:1])

            return read()

        monkeypatch.setattr(app.filtering, "read_runs", read_runs)
        view = app.screen
        assert isinstance(view, Runs)
        await pilot.press("f")
        app.screen.query_one(Input).value = 'text:"class x"'
        await pilot.press("enter")
        await pilot.pause()
        for _ in range(3):
            app.source.revision += 1
            view.update()
        assert len(asked) == 1
        gate.set()
        await app.workers.wait_for_complete()
        await pilot.pause()
        await app.workers.wait_for_complete()
        await pilot.pause()
        assert len(asked) == 2
        assert names(app) == ["a.example"]
        await pilot.press("escape")
        assert len(names(app)) == 4

    play(several(tmp_path), act)


@pytest.mark.slow
def test_all_keys_are_on_one_page() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("question_mark")
        assert isinstance(app.screen, Help)
        text = screen_text(app)
        assert "Filter" in text
        assert "The runs of the capture, one per line" in text
        await pilot.press("escape")
        assert isinstance(app.screen, Runs)
        output = [command.title for command in app.get_system_commands(app.screen_stack[-1])]
        assert {"Findings", "Bootstrap", "Search bodies", "Quit"} <= set(output)
        await pilot.press("ctrl+p")
        await pilot.press(*"findings")
        await pilot.pause(0.5)
        await pilot.press("enter")
        await pilot.pause()
        from inspector.tui.findings import Findings

        assert isinstance(app.screen, Findings)

    look(shared(), act)


@pytest.mark.slow
def test_an_empty_capture_says_so(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        assert "There are no runs in this capture." in screen_text(app)
        await pilot.press("enter", "a", "m", "e", "H", "s")

    play(indexed(save(tmp_path / "empty.sqlite")), act)


@pytest.mark.slow
def test_a_run_that_is_opened_is_answered_before_it_is_drawn() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        app.push_screen(RunView(1))
        assert isinstance(app.screen, RunView)
        assert not app.screen.ready
        app.screen.renew()  # as the timer does; its widgets are not there yet
        app.show_message("said to nobody")
        await pilot.pause()
        assert "run 1 of" in screen_text(app)
        await pilot.press("escape")
        await pilot.pause()
        runs = app.screen
        app.open_run(1)
        assert app.screen is runs
        assert str(runs.query_one("#title", Static).render()) == "opening run 1 …"
        await pilot.pause()
        assert "run 1 of" in screen_text(app)
        await pilot.press("escape")
        await pilot.pause()
        assert "opening run" not in screen_text(app)

    look(shared(), act)


@pytest.mark.slow
def test_while_a_filter_is_typed_it_says_how_many_runs_match() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        async def typed(text: str) -> str:
            await pilot.press(*text)
            await pilot.pause(2 * PAUSE)
            return str(app.screen.query_one("#preview", Label).render())

        await pilot.press("f")
        assert await typed("") == "2 of 2 runs"
        assert await typed("status:") == "", "not a filter yet"
        assert await typed("999") == "0 of 2 runs"
        await pilot.press("ctrl+u")
        assert await typed("text:x") == "Enter applies it"
        await pilot.press("escape", "slash")
        assert await typed("a") == ""

    look(shared_sample("out-of-sync"), act)


@pytest.mark.slow
def test_what_matches_is_shown_while_a_filter_is_typed(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        every = names(app)
        await pilot.press("f", *"b.exa")
        await pilot.pause(2 * PAUSE)
        assert names(app) == ["b.example"]
        assert "1 shown: b.exa" in screen_text(app)
        app.source.revision += 1
        app.screen.update() if isinstance(app.screen, Runs) else None
        assert names(app) == ["b.example"]
        await pilot.press("escape")
        await pilot.pause()
        assert names(app) == every
        assert "shown" not in screen_text(app).splitlines()[0]

    play(several(tmp_path), act, (80, 24))


@pytest.mark.slow
def test_without_a_filter_the_cursor_is_where_it_was_with_it() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await type_in(pilot, app, "f", "agent:b.example")
        assert under(app).name == "b.example"
        await pilot.press("escape")
        await pilot.pause()
        assert len(names(app)) > 1
        assert under(app).name == "b.example"

    look(shared(), act)


@pytest.mark.slow
def test_marked_runs_are_gone_through(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        rows = app.screen.query_one(Rows)
        await pilot.press("apostrophe")
        await pilot.pause()
        assert "No run is marked; m marks one." in screen_text(app)
        await pilot.press("home", "m", "end", "apostrophe")
        assert rows.at == 0
        await pilot.press("end", "quotation_mark")
        assert rows.at == 0

    play(sample("out-of-sync", tmp_path), act)


@pytest.mark.slow
def test_a_failure_that_is_over_says_so_in_the_list_and_in_its_run(tmp_path: Path) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("home")
        await pilot.pause()
        shown = screen_text(app)
        assert shown.count("Over since run 2: web1.example failed: S01") == 1
        assert "over since run 2: S01 no catalog" in shown
        assert "Fix at the time: nothing is to be done now" in shown
        app.open_run(1)
        await pilot.pause()
        await pilot.press("c")
        await pilot.pause()
        shown = screen_text(app)
        assert "Over since run 2: web1.example failed: S01" in shown
        assert "over since run 2" in shown

    play(indexed(save(tmp_path / "healed.sqlite", *uncompiled(1), *well(1, 5000))), act)


@pytest.mark.slow
def test_the_runs_stay_above_a_message_of_several_lines() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        rows = app.screen.query_one(RunRows)
        before = rows.size.height
        await type_in(pilot, app, "f", "nonsense:foo")
        assert app.screen.query_one("#message").size.height == 3
        assert rows.size.height >= 5, "the heads of the columns, and all four runs"
        await pilot.press("down")
        await settled(pilot, app)
        assert rows.size.height == before

    look(shared(), act, SIZES[0])


def test_the_heading_of_an_agent_has_the_outcome_of_its_latest_run() -> None:
    bad, good = RunBrief(number=1, outcome="failed"), RunBrief(number=3, outcome="complete")
    assert str(_outcome(RunLine(good, (bad, bad, good)))) == "complete, 2 bad"
    assert str(_outcome(RunLine(good, (good,)))) == "complete"


@pytest.mark.slow
def test_w_says_whether_the_newest_run_is_followed() -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        await pilot.press("W")
        await settled(pilot, app)
        assert "The newest run is followed" in screen_text(app)
        await pilot.press("W")
        await settled(pilot, app)
        assert "No run is followed" in screen_text(app)
        await pilot.press("escape", "W")
        await settled(pilot, app)
        assert "The newest run is followed" in screen_text(app)

    look(shared(), act)
