"""A lab that goes on: what is broken can be chosen and taken back."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from inspector.cli import demo
from inspector.lab import FAULTS, HEALTHY, Lab, LabLoop
from inspector.lab.faults import NODE

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PATIENCE = 60.0


@pytest.fixture
def lab() -> Iterator[Lab]:
    with Lab(answers=demo.recorded(), spread=True) as made:
        yield made


def until(holds: Callable[[], bool]) -> None:
    limit = time.monotonic() + PATIENCE
    while not holds():
        assert time.monotonic() < limit, "it never came"
        time.sleep(0.02)


def rounds(loop: LabLoop, number: int = 2) -> None:
    """Wait for so many whole rounds."""
    before = loop.rounds
    until(lambda: loop.rounds >= before + number)
    assert loop.trouble == ""


@pytest.mark.slow
def test_all_nodes_are_signed_and_run(lab: Lab) -> None:
    with LabLoop(lab, interval=0.05) as loop:
        rounds(loop)
        assert {lab.ca.state(name) for name in (NODE, "web2.lab.example", "db1.lab.example")} == {"signed"}
    assert not loop._thread.is_alive()


@pytest.mark.slow
@pytest.mark.parametrize("name", FAULTS)
def test_each_fault_can_be_chosen_and_taken_back(lab: Lab, name: str) -> None:
    with LabLoop(lab, interval=0.05) as loop:
        rounds(loop, 1)
        certificate = lab.ca.certificate(NODE)
        loop.choose(FAULTS[name])
        rounds(loop, 3)
        loop.choose(HEALTHY)
        rounds(loop, 3)
        assert lab.ca.state(NODE) == "signed"
        assert lab.ca.certificate(NODE) != certificate
        assert lab.master.instead == {}
        agent = next(agent for agent in lab.agents.values() if agent.certname == NODE)
        assert agent.run().status in (0, 2)


@pytest.mark.slow
def test_a_mistake_in_a_scenario_is_shown_and_ends_nothing(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_: object) -> None:
        raise OSError("no more ports")

    with LabLoop(lab, interval=0.05) as loop:
        rounds(loop, 1)
        monkeypatch.setattr(lab, "restore", broken)
        loop.choose(FAULTS["revoked"])
        until(lambda: "no more ports" in loop.trouble)
        monkeypatch.undo()
        loop.choose(HEALTHY)
        rounds(loop)


def test_machines_have_addresses_of_their_own_if_they_are_spread(lab: Lab) -> None:
    first, clone, second = lab.agent("a.example"), lab.agent("a.example", directory="clone"), lab.agent("b.example")
    sources = [agent.server.source for agent in (first, clone, second)]
    assert len(set(sources)) == 3
    assert lab.agent("a.example").server.source == sources[0]
