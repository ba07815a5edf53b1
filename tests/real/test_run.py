"""Runs of a real agent that has its certificate, played on both roads."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.real.through import RunSummary, Stage, a_run

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.real.agent import CompletedRun, RealAgent
    from tests.real.through import Road

AGAIN = "plugins catalog files report"

PAUSE = b"""Facter.add(:pause) do
  setcode { File.exist?("#{Puppet[:confdir]}/pause") ? sleep(3) : 0 }
end
"""
BOTH = pytest.mark.parametrize("own", [False, True])


def _drifts(agent: RealAgent, road: Road) -> CompletedRun:
    (agent.target / "single.txt").write_text("changed by hand\n")
    return road.run(agent)


def _cannot_compile(agent: RealAgent, road: Road) -> CompletedRun:
    road.master.manifest(agent.certname, "fail('no such role')")
    return road.run(agent)


def _misses_a_file(agent: RealAgent, road: Road) -> CompletedRun:
    absent = f"file {{ '{agent.target}/absent': source => 'puppet:///modules/demo/absent' }}"
    road.master.manifest(agent.certname, absent)
    return road.run(agent)


@BOTH
def test_steady_state(stage: Stage, steady: RealAgent, own: bool) -> None:
    assert stage.compare(a_run, steady, steady, status=0, own=own) == [RunSummary("steady.example", "complete", AGAIN)]


def test_out_of_sync(stage: Stage, steady: RealAgent) -> None:
    assert stage.compare(_drifts, steady, steady, status=2) == [RunSummary("steady.example", "complete", AGAIN)]


def test_compile_error(stage: Stage, steady: RealAgent) -> None:
    assert stage.compare(_cannot_compile, steady, steady, status=1, own=True) == [
        RunSummary("steady.example", "failed", "plugins catalog report", "R20 error, S01 error"),
    ]


def test_missing_file(stage: Stage, steady: RealAgent) -> None:
    assert stage.compare(_misses_a_file, steady, steady, status=4) == [
        RunSummary("steady.example", "failed", AGAIN, "F02 error, P01 error"),
    ]


@pytest.fixture
def slow(stage: Stage, steady: RealAgent) -> Iterator[RealAgent]:
    """The steady agent, which thinks for 3 s between its plugins and its catalog."""
    stage.master.module_file("demo", "lib/facter/pause.rb", PAUSE)
    pause = steady.confdir / "pause"
    pause.touch()
    yield steady
    pause.unlink()


@BOTH
def test_three_seconds_of_silence(stage: Stage, slow: RealAgent, own: bool) -> None:
    """Meanwhile the master closes its connection; the POST that follows must find another one."""
    assert stage.compare(a_run, slow, slow, status=0, own=own) == [RunSummary("steady.example", "complete", AGAIN)]
