"""Real agents that have no certificate yet, played on both roads."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from tests.real.through import RunSummary, Stage, a_run, run_summaries

if TYPE_CHECKING:
    from tests.real.agent import CompletedRun, RealAgent
    from tests.real.through import Road

WHOLE = "certificates node plugins catalog files report"
BOTH = pytest.mark.parametrize("own", [False, True])


def _waits(agent: RealAgent, road: Road) -> CompletedRun:
    with road.start(agent, waitforcert=1) as running:
        pending = road.master.cadir / f"requests/{agent.certname}.pem"
        while not pending.exists() and running.process.poll() is None:
            time.sleep(0.05)
        time.sleep(2.5)  # some polls
        road.master.sign(agent.certname)
        return running.wait()


def _comes_with_a_new_key(agent: RealAgent, road: Road) -> CompletedRun:
    road.master.generate(agent.certname)
    return road.run(agent)


def test_waiting_and_signing(stage: Stage) -> None:
    straight, through = stage.agent("boot-direct.example"), stage.agent("boot.example")
    assert stage.compare(_waits, straight, through, status=2) == [
        RunSummary("boot.example", "complete", WHOLE, ""),
    ]


def test_nobody_signs(stage: Stage) -> None:
    straight, through = stage.agent("unsigned-direct.example"), stage.agent("unsigned.example")
    assert stage.compare(a_run, straight, through, status=1) == [
        RunSummary("unsigned.example", "waiting", "certificates", ""),
    ]


@BOTH
def test_autosign(stage: Stage, own: bool) -> None:
    name = f"auto-{'own' if own else 'mitmdump'}.example"
    straight, through = stage.agent(f"auto-direct-{own}.example".lower()), stage.agent(name)
    assert stage.compare(a_run, straight, through, status=2, own=own) == [
        RunSummary(name, "complete", WHOLE, ""),
    ]


def test_mismatched_key(stage: Stage) -> None:
    straight, through = stage.agent("lost-direct.example"), stage.agent("lost.example")
    assert stage.compare(_comes_with_a_new_key, straight, through, status=1) == [
        RunSummary("lost.example", "waiting", "certificates", "B18 error, B23 error"),
    ]


def test_two_agents_interleaved(stage: Stage) -> None:
    """Both from one address, each on a master's connection of its own."""
    one, two = stage.agent("auto-one.example"), stage.agent("auto-two.example")
    with (
        stage.proxy(f"mint:{stage.master.cadir}") as road,
        road.start(one) as first,
        road.start(two) as second,
    ):
        assert (first.wait().status, second.wait().status) == (2, 2)
    assert sorted(run_summaries(stage.capture), key=lambda run: run.certname or "") == [
        RunSummary("auto-one.example", "complete", WHOLE, ""),
        RunSummary("auto-two.example", "complete", WHOLE, ""),
    ]
