"""What waits in memory: who has too much of it loses a connection."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from inspector.proxy.limits.pool import Ticket
from inspector.proxy.limits.quota import Share
from inspector.proxy.limits.waiting_bytes import REASON, WaitingBytes

if TYPE_CHECKING:
    from collections.abc import Callable


def play(act: Callable[[WaitingBytes, Callable[[str], Ticket]], None]) -> list[str]:
    """Connections by the names of their agents and numbers; returns those that were closed, in their order."""
    closed: list[str] = []
    waiting = WaitingBytes(Share(100, 200))

    async def run() -> None:
        def connect(name: str) -> Ticket:
            limits = SimpleNamespace(bytes=waiting, refusals=SimpleNamespace(add=lambda *_: None))
            label = f"{name}{next(numbers)}"
            return Ticket(limits, name, -1, lambda reason: closed.append(f"{label} {reason == REASON}"))  # type: ignore[arg-type]

        numbers = iter(range(100))
        act(waiting, connect)
        assert not closed, "in the next round"
        await asyncio.sleep(0)

    asyncio.run(run())
    return closed


def test_of_who_has_too_much_the_one_that_waits_longest_ends() -> None:
    def act(waiting: WaitingBytes, connect: Callable[[str], Ticket]) -> None:
        tickets = [connect("a") for _ in range(4)]
        for ticket in tickets:
            ticket.note_waiting(30)
        assert waiting.total == 90, "the first counts no more"
        tickets[1].note_waiting(0)
        tickets[1].note_waiting(35)
        assert waiting.total == 95

    assert play(act) == ["a0 True"]


def test_the_only_one_never_ends() -> None:
    def act(waiting: WaitingBytes, connect: Callable[[str], Ticket]) -> None:
        connect("a").note_waiting(1000)
        connect("b").note_waiting(1000)
        assert waiting.many

    assert play(act) == []


def test_of_all_together_who_has_most_loses() -> None:
    def act(waiting: WaitingBytes, connect: Callable[[str], Ticket]) -> None:
        for name, size in (("a", 20), ("a", 20), ("b", 45), ("b", 45)):
            connect(name).note_waiting(size)
        assert waiting.many
        connect("c").note_waiting(60)
        connect("d").note_waiting(15)
        assert waiting.total == 160

    assert play(act) == ["b2 True"]


def test_who_has_nothing_is_forgotten() -> None:
    def act(waiting: WaitingBytes, connect: Callable[[str], Ticket]) -> None:
        tickets = [connect("a"), connect("a"), connect("b")]
        for size in (10, 20, 0):
            for ticket in tickets:
                ticket.note_waiting(size)
        assert waiting.total == 0
        assert not any((waiting._sizes, waiting._tickets, waiting._several, waiting.many))

    assert play(act) == []


@pytest.mark.parametrize("size", [10, 0])
def test_nothing_is_counted_twice(size: int) -> None:
    def act(waiting: WaitingBytes, connect: Callable[[str], Ticket]) -> None:
        ticket = connect("a")
        for _ in range(50):
            ticket.note_waiting(10)
        ticket.note_waiting(size)
        assert waiting.total == size

    assert play(act) == []
