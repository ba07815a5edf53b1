"""A connection without a verified certificate: when it has been silent."""

from __future__ import annotations

import asyncio
import functools
import socket
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest

from inspector.proxy.limits import pool
from inspector.proxy.limits.pool import Limits, Pool, Ticket, Turns
from inspector.proxy.limits.quota import Quota, Refusals, Share

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.mark.parametrize("busy", ["", "answering", "due", "unread"])
def test_who_waits_for_us_or_the_master_is_not_silent(busy: str) -> None:
    async def play() -> None:
        ours, theirs = socket.socketpair()
        with ours, theirs:
            unlimited: Any = None
            ticket = Ticket(unlimited, "a", ours.fileno(), lambda _: None)
            assert Pool(Share(1, 1)).admit(ticket)
            now = time.monotonic()
            assert not ticket.silent(now + pool.SILENT / 2)
            if busy == "unread":
                theirs.send(b"hello")
            elif busy:
                setattr(ticket, busy, 1)
            assert ticket.silent(now + pool.SILENT + 1) == (not busy)
            assert ticket.silent(now + pool.LONGEST + 1) == (busy != "due")

    asyncio.run(play())


def test_time_in_which_a_piece_waits_for_its_turn_is_not_its_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    async def play() -> None:
        unlimited: Any = None
        clock = [100.0]
        monkeypatch.setattr("time.monotonic", lambda: clock[0])
        ours, theirs = socket.socketpair()
        with ours, theirs:
            ticket = Ticket(unlimited, "a", ours.fileno(), lambda _: None)
            assert Pool(Share(1, 1)).admit(ticket)
            ticket.await_turn()
            clock[0] += pool.SILENT / 2 + 1
            ticket.await_turn()
            clock[0] += pool.SILENT / 2
            for _ in range(2):
                ticket.take_turn()
            assert ticket.delay == pool.SILENT + 1, "two pieces wait at the same time"
            assert not ticket.silent(clock[0] + pool.SILENT), "it answers to what we sent just now"
            assert ticket.silent(clock[0] + pool.SILENT + 1)

    asyncio.run(play())


def test_of_a_closed_connection_nothing_is_unread() -> None:
    with socket.socket() as closed:
        descriptor = closed.fileno()
    assert pool.unread(descriptor) == 0


def test_a_request_that_takes_long_loses_its_place_when_others_wait() -> None:
    async def play() -> None:
        closed: list[str] = []
        refusals = Refusals(closed.append)
        limits = Limits(Quota(Share(9, 9)), Quota(Share(2, 3)), Quota(Share(9, 9)), refusals, Turns(), refusals)

        def ticket(address: str, name: str) -> Ticket:
            return Ticket(limits, address, -1, lambda _: closed.append(name))

        slow, answering, other, waiting = (
            ticket("a", "slow"), ticket("a", "answering"), ticket("b", "other"), ticket("c", "waiting")
        )  # fmt: skip
        assert all(one.begin() for one in (answering, slow, other))
        answering.answering = True
        assert not waiting.begin()
        assert closed == [], "none of them is slow yet"
        for one in (answering, slow, other):
            one.began -= pool.SILENT + 1
        assert not waiting.begin()
        assert closed == ["slow"], "the oldest that has not asked completely"
        slow.end()
        assert waiting.begin()
        limits.refusals.report()

    asyncio.run(play())


class Clock:
    """The processor's time, in seconds; what happens with it."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        self.log: list[str] = []
        monkeypatch.setattr(pool, "time", SimpleNamespace(thread_time=lambda: self.now, monotonic=time.monotonic))

    def spend(self, who: str, seconds: float) -> None:
        self.log.append(who)
        self.now += seconds

    def work(self, seconds: float) -> Callable[[], None]:
        return lambda: self.spend("work", seconds)


def test_others_get_as_much_time_as_what_is_done_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)

    async def play() -> None:
        turns = Turns()
        for _ in range(3):
            turns.add(clock.work(0.005))
        for _ in range(4):
            await asyncio.sleep(0)
            clock.spend("others", 0)

    asyncio.run(play())
    assert clock.log == ["work", "others", "work", "others", "work", "others", "others"]


@pytest.mark.parametrize(("agents", "turns"), [(0.0003, [2, 2, 1]), (0.0021, [4, 1]), (0.05, [5])])
def test_where_agents_take_longer_more_is_done_in_a_turn(
    monkeypatch: pytest.MonkeyPatch, agents: float, turns: list[int]
) -> None:
    clock = Clock(monkeypatch)

    async def play() -> None:
        waiting = Turns()
        for _ in range(5):
            waiting.add(clock.work(0.0006))
        while clock.log.count("work") < 5:
            waiting.spend("agent", agents)
            clock.spend("round", 0.05)  # also of strangers, which makes no turn longer
            await asyncio.sleep(0)

    asyncio.run(play())
    assert [len(turn.split()) for turn in " ".join(clock.log).split("round")[1:]] == turns


def test_a_turn_is_short_where_others_take_long(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)

    async def play() -> None:
        turns = Turns()
        for _ in range(5):
            turns.add(clock.work(0.003))
        turns.spend("agent", 1.0)
        await asyncio.sleep(0)
        clock.spend("others", 1.0)

    asyncio.run(play())
    assert clock.log[:3] == ["work", "work", "others"]


def test_the_newest_work_is_done_first_and_the_oldest_after_it() -> None:
    log: list[int] = []

    async def play() -> None:
        turns = Turns()
        for number in range(5):
            turns.add(functools.partial(log.append, number))
        await asyncio.sleep(0)

    asyncio.run(play())
    assert log == [4, 0, 3, 1, 2]


def test_who_is_overtaken_for_ever_is_served(monkeypatch: pytest.MonkeyPatch) -> None:
    """A flood brings as much in each round as can be done in it."""
    clock = Clock(monkeypatch)

    async def play() -> None:
        turns = Turns()
        for _ in range(8):
            turns.add(clock.work(pool.LONGEST_TURN))
        turns.add(lambda: clock.log.append("agent"))
        for _ in range(8):
            turns.add(clock.work(pool.LONGEST_TURN))
        for _ in range(100):
            turns.add(clock.work(pool.LONGEST_TURN))
            await asyncio.sleep(0)
            if "agent" in clock.log:
                return

    asyncio.run(play())
    assert clock.log.index("agent") <= 2 * 8 + 1


def test_each_agent_has_some_time_of_a_round_and_then_turns() -> None:
    async def play() -> None:
        turns = Turns()
        turns.spend("a", pool.AT_ONCE * 2)
        assert (turns.allows("a"), turns.allows("b")) == (False, True)
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert turns.allows("a"), "it is another round"
        turns.add(lambda: None, "a")
        assert not turns.allows("a"), "what came before is done before"
        await asyncio.sleep(0)
        assert turns.allows("a")

    asyncio.run(play())


def test_agents_take_turns_the_oldest_work_first_and_leave_some_to_strangers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pool, "SLICE", 1000.0)
    log: list[str] = []

    async def play() -> None:
        turns = Turns()
        for number in range(4):
            turns.add(functools.partial(log.append, f"bad{number}"), "bad")
        turns.add(functools.partial(log.append, "good"), "good")
        for number in range(2):
            turns.add(functools.partial(log.append, f"stranger{number}"))
        await asyncio.sleep(0)

    asyncio.run(play())
    assert log == ["bad0", "stranger1", "good", "stranger0", "bad1", "bad2", "bad3"]


def test_work_that_fails_does_not_stop_the_rest() -> None:
    log: list[str] = []

    def fail() -> None:
        raise ValueError

    async def play() -> None:
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: log.append(type(context["exception"]).__name__)
        )
        turns = Turns()
        turns.add(lambda: log.append("work"))
        turns.add(fail)
        await asyncio.sleep(0)
        await asyncio.sleep(0)

    asyncio.run(play())
    assert log == ["ValueError", "work"]
