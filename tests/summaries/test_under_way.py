"""Whether a run is over, and what its agent does meanwhile."""

from __future__ import annotations

import dataclasses
import itertools
from typing import TYPE_CHECKING

import msgspec
import pytest

from inspector.analysis.analyzer import Analyzer
from inspector.model import OpenConnection, OpenRequest, Phase, Present
from inspector.runs.snapshot import RunState
from inspector.summaries.under_way import CALL, LEAST, PATIENCE, RUN_TIMEOUT, Habit, Moment, patience, settled
from tests.support.conversations import Agent, together

if TYPE_CHECKING:
    from collections.abc import Callable

    from inspector.runs.snapshot import Activity, RunSnapshot


def run_of(agent: Agent) -> RunSnapshot:
    """An agent's latest run, as far as it went."""
    analyzer = Analyzer()
    for record in together(agent):
        analyzer.feed(record)
    return analyzer.runs[-1].snapshot()


def at(
    run: RunSnapshot, seconds: float, *requests: OpenRequest, names: tuple[str, ...] = (),
    legs: tuple[str, ...] = (), recording: str = "open", last: float = 0.0, connected: float = 0.0,
) -> Moment:  # fmt: skip
    """A moment after a run's latest record."""
    now, number = run.ended + seconds, itertools.count()
    connections = [OpenConnection(f"other{next(number)}", connected, "192.0.2.9", name) for name in names]
    connections += [OpenConnection(leg, 0.0, "192.0.2.1", None, last) for leg in legs]
    return Moment(Present(recording, now, requests, tuple(connections)), now)  # type: ignore[arg-type]


def begun() -> Agent:
    return Agent(leg="1").node().plugins()


@pytest.mark.parametrize(
    ("script", "activity"),
    [
        (lambda agent: agent.ca().crl(), "key"),
        (lambda agent: agent.ca().crl().csr().poll(), "certificate"),
        (lambda agent: agent.node().plugins(), "facts"),
        (lambda agent: agent.node().plugins().catalog(), "applying"),
        (lambda agent: agent.node().plugins().catalog().file(), "applying"),
        (lambda agent: agent.node().plugins().catalog(status=500), "uncompiled"),
        (lambda agent: agent.node().plugins().catalog(status=503), "retry"),
        (lambda agent: agent.node().plugins().refused(), "refused"),
        (lambda agent: agent.bootstrap(), "other"),
    ],
)
def test_what_an_agent_does_takes_its_time(script: Callable[[Agent], Agent], activity: Activity) -> None:
    run = run_of(script(Agent(leg="1")))
    assert run.activity == activity
    enough = PATIENCE[activity]
    assert patience(run) == enough
    assert at(run, enough - 1).state(run) is RunState.OPEN
    assert at(run, enough).state(run) is RunState.OVER


def test_it_is_over_with_its_report_or_its_agents_next_run() -> None:
    run = run_of(begun().catalog().report())
    assert at(run, 0.1, legs=run.legs).state(run) is RunState.OVER
    run = run_of(begun())
    assert at(run, 0.1, legs=run.legs).state(run, next_run=True) is RunState.OVER


def test_it_goes_on_as_long_as_its_agent_is_connected() -> None:
    run = run_of(begun())
    assert at(run, 1e5, legs=run.legs[:1]).state(run) is RunState.OPEN
    assert at(run, 1e5, OpenRequest(run.legs[0], 0.0, "GET", "/x")).state(run) is RunState.OPEN
    assert at(run, 1e5, names=("a.example",)).state(run) is RunState.OPEN
    assert at(run, 1e5, names=("b.example",)).state(run) is RunState.OVER


def test_it_was_cut_off_when_the_recording_ended() -> None:
    run = run_of(begun())
    for recording in ("ended", "cut off"):
        assert at(run, 60, recording=recording).state(run) is RunState.CUT_OFF
        assert at(run, 1e5, recording=recording).state(run) is RunState.OVER
    assert at(run, 60, recording="unknown").state(run) is RunState.OVER


@pytest.mark.parametrize(("took", "enough"), [(0.5, LEAST), (100.0, 300.0), (5000.0, RUN_TIMEOUT)])
def test_an_agent_may_take_three_times_as_long_as_it_ever_did(took: float, enough: float) -> None:
    habit = Habit()
    habit.add(run_of(begun().wait(took).catalog().report()))
    habit.add(run_of(begun().wait(0.2).catalog().report()))
    run = run_of(begun())
    assert patience(run, habit) == pytest.approx(enough, abs=1)
    assert patience(run_of(begun().catalog()), habit) == RUN_TIMEOUT  # it never applied anything


def test_the_call_of_a_tool_ends_with_its_connection() -> None:
    run = msgspec.structs.replace(run_of(begun()), tool="curl/7.88.1")
    assert patience(run) == CALL


def test_it_waits_for_a_signature_after_some_seconds_and_goes_on_waiting_when_it_asks_again() -> None:
    once = run_of(Agent(leg="1").ca().crl().csr().poll())
    assert not settled(once, 1.0)
    assert settled(once, 5.0)
    again = run_of(Agent(leg="1").ca().crl().csr().poll().wait(120).poll())
    assert settled(again, 0.0)
    assert not settled(run_of(begun()), 1000.0)


# -- what agents do ------------------------------------------------------------------------------------


def doing(moment: Moment, *runs: RunSnapshot, habit: Habit | None = None) -> list[str]:
    return [str(each) for each in moment.under_way((run, habit or Habit()) for run in runs)]


def test_silence_is_named_by_what_came_before() -> None:
    run = run_of(begun())
    assert doing(at(run, 7.4, legs=run.legs), run) == ["a.example gathers facts, 7 s"]
    assert doing(at(run, 200), run) == ["a.example gathers facts, or has ended, 3 min"]
    run = run_of(begun().catalog().wait(100).file())
    assert doing(at(run, 30, legs=run.legs), run) == ["a.example applies its catalog, 2 min"]  # with the file in it
    run = run_of(begun().catalog(status=500))
    assert doing(at(run, 30), run) == ["a.example is silent since it got no catalog, 30 s"]


def test_an_agent_that_left_before_its_catalog_came_applies_none() -> None:
    agent = begun().catalog()
    agent.records[-1] = dataclasses.replace(agent.records[-1], error="the agent disconnected")  # type: ignore[arg-type]
    run = run_of(agent)
    assert doing(at(run, 30), run) == ["a.example is silent since it got no catalog, 30 s"]


def test_a_request_is_named_by_what_the_agent_waits_for_whatever_connection_it_uses() -> None:
    run = run_of(begun())
    target = "/puppet/v3/catalog/a.example?environment=production"
    habit = Habit()
    habit.add(run_of(begun().catalog().report()))
    for moment in (
        at(run, 20, OpenRequest(run.legs[-1], run.ended + 8, "POST", target), legs=run.legs),
        at(run, 20, OpenRequest("other0", run.ended + 8, "POST", target), names=("a.example",)),
    ):
        (each,) = moment.under_way([(run, habit)])
        assert each.run is run
        assert each.phase is Phase.CATALOG
        assert each.seconds == pytest.approx(12)
        assert str(each) == "a.example waits for its catalog, 12 s so far (10 ms last time)"


def test_a_request_without_a_run_has_the_name_that_was_verified() -> None:
    run = run_of(begun())
    now = run.ended
    requests = [
        OpenRequest("other0", now + 1, "POST", "/puppet/v3/catalog/b.example"),
        OpenRequest("x", now + 2, "PUT", "/puppet-ca/v1/certificate_request/c.example"),
        OpenRequest("y", now + 3, "POST", "/puppet/v3/catalog/d.example"),
        OpenRequest("z", now + 4, "GET", "/x\x1b[2J?secret"),
    ]
    moment = at(run, 10, *requests, names=("b.example",), legs=("x", "y"))
    assert doing(moment) == [
        "b.example waits for its catalog, 9 s so far",
        "c.example sends its certificate request, 8 s so far",
        "192.0.2.1 waits for its catalog, 7 s so far",
        r"an unnamed agent waits for GET /x\x1b[2J, 6 s so far",
    ]


def test_nothing_is_said_of_a_run_whose_next_record_is_not_here_yet() -> None:
    run = run_of(begun())
    assert doing(at(run, 10, legs=run.legs, last=run.ended + 9), run) == []


def test_a_killed_agent_that_comes_back_does_not_go_on_with_what_it_did() -> None:
    run, mine = run_of(begun().catalog()), ("a.example",)
    assert doing(at(run, 30), run) == ["a.example applies its catalog, or has ended, 30 s"]
    assert doing(at(run, 30, names=mine, connected=run.ended + 29), run) == []
    assert doing(at(run, 30, names=("b.example",), connected=run.ended + 29), run) == doing(at(run, 30), run)
    # One that asks nothing for long, and one of before, say nothing of what it does.
    for connected in (run.ended + 10, run.ended - 1):
        moment = at(run, 100, names=mine, connected=connected)
        assert doing(moment, run) == ["a.example applies its catalog, 100 s"]
