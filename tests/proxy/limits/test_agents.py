"""The connections of verified agents: which of them ends when there is no room for all."""

from __future__ import annotations

from typing import Any

import pytest

from inspector.proxy.limits import agents
from inspector.proxy.limits.agents import FEW, RESTING, SHARE, Agents
from inspector.proxy.limits.pool import Ticket


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    monkeypatch.setattr("time.monotonic", lambda: now[0])
    return now


class Fleet:
    """Verified agents with their connections."""

    def __init__(self, clock: list[float]) -> None:
        self._clock = clock
        self.agents = Agents()

    def connect(self, name: str, address: str = "a") -> Ticket:
        nothing: Any = None
        ticket = Ticket(nothing, address, -1, nothing, nothing)
        ticket.verified, ticket.payer, ticket.heard = True, name, self._clock[0]
        self.agents.add(ticket)
        self._clock[0] += 0.001
        return ticket


@pytest.fixture
def fleet(clock: list[float]) -> Fleet:
    return Fleet(clock)


def test_over_which_no_agent_would_ask_any_more_ends_first(fleet: Fleet, clock: list[float]) -> None:
    first, second, third = (fleet.connect(name) for name in "abc")
    clock[0] += RESTING - 1
    assert fleet.agents.loser() is None, "its agent may ask once more"
    fleet.agents.ask(first)
    fleet.agents.hear(second)
    second.heard = clock[0]
    clock[0] += 1.1
    assert fleet.agents.loser() is third, "the first has a request under way, the second has sent something"
    fleet.agents.rest(first)
    assert fleet.agents.remove(third)
    assert fleet.agents.loser() is None
    clock[0] += RESTING
    assert fleet.agents.loser() is second
    assert fleet.agents.remove(second)
    assert fleet.agents.loser() is first


def test_who_has_most_loses_what_has_rested_longest(fleet: Fleet) -> None:
    many = [fleet.connect("bad.example") for _ in range(FEW + 3)]
    more = [fleet.connect("worse.example", "b") for _ in range(FEW + 4)]
    [fleet.connect(f"good{number}.example") for number in range(50)]
    for ticket in more[:-1]:
        fleet.agents.ask(ticket)
    lost = []
    while loser := fleet.agents.loser():
        lost.append(loser)
        assert fleet.agents.remove(loser)
    assert lost[0] is more[-1], "all others have a request under way"
    assert lost[1] in (more[0], many[0])
    assert (len(lost), fleet.agents.total) == (7, 50 + 2 * FEW), "each is left a few"


def test_a_certname_above_its_share_loses_what_has_rested_longest(
    fleet: Fleet, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(name: str, *, asked: bool = True) -> Ticket:
        ticket = fleet.connect(name)
        if asked:
            fleet.agents.ask(ticket)
            fleet.agents.rest(ticket)
        return ticket

    others = [connect(f"good{number}.example") for number in range(2 * SHARE)]
    assert not any(map(fleet.agents.surplus, others))
    many = [connect("bad.example") for _ in range(SHARE)]
    assert fleet.agents.surplus(many[-1]) is None
    fleet.agents.ask(many[0])
    assert fleet.agents.surplus(connect("bad.example")) is many[1], "the first has a request under way"
    for ticket in many:
        fleet.agents.ask(ticket)
    assert fleet.agents.remove(many[1])
    assert fleet.agents.remove(many[2])
    shared = [connect("shared.example", asked=False) for _ in range(SHARE + 1)]
    assert fleet.agents.surplus(shared[-1]) is None, "each is about to ask"
    monkeypatch.setattr(agents, "FRESH", SHARE)
    assert fleet.agents.surplus(shared[-1]) is shared[0]
    for ticket in shared:
        fleet.agents.ask(ticket)
    assert fleet.agents.surplus(connect("shared.example", asked=False)) is None, "all that are not new have a request"


def test_of_an_address_with_more_than_half_one_ends_for_a_newcomer_from_elsewhere(fleet: Fleet) -> None:
    tickets = [fleet.connect(f"node{number}.example", "a") for number in range(10)]
    newcomer = fleet.connect("other.example", "b")
    assert fleet.agents.loser() is None, "who has not proven anything ends nothing"
    assert fleet.agents.loser(tickets[3]) is None
    assert fleet.agents.loser(newcomer) is tickets[0]


def test_what_has_ended_is_forgotten(fleet: Fleet) -> None:
    tickets = [fleet.connect(f"node{number % 2}.example", "ab"[number % 2]) for number in range(4 * FEW)]
    for ticket in tickets:
        fleet.agents.ask(ticket)
        fleet.agents.rest(ticket)
        assert fleet.agents.remove(ticket)
        assert not fleet.agents.remove(ticket)
        fleet.agents.rest(ticket)
    agents = fleet.agents
    assert agents.total == 0
    assert not any((agents._names, agents._addresses, agents._crowds, agents._resting))
