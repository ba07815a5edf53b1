"""Work in turns."""

from __future__ import annotations

import asyncio
import functools
import time

from inspector.proxy.limits.turns import Turns


def test_others_get_as_much_time_as_what_is_done_in_turns() -> None:
    log: list[str] = []

    def work() -> None:
        log.append("work")
        time.sleep(0.005)

    async def play() -> None:
        turns = Turns()
        for _ in range(3):
            turns.add(work)
        for _ in range(4):
            await asyncio.sleep(0)
            log.append("others")

    asyncio.run(play())
    assert log == ["work", "others", "work", "others", "work", "others", "others"]


def test_where_others_take_long_more_is_done_in_a_turn() -> None:
    log: list[str] = []

    def work() -> None:
        log.append("work")
        time.sleep(0.006)

    async def play() -> None:
        turns = Turns()
        for _ in range(4):
            turns.add(work)
        await asyncio.sleep(0)
        log.append("others")
        time.sleep(0.05)
        await asyncio.sleep(0)

    asyncio.run(play())
    assert log == ["work", "others", "work", "work", "work"]


def test_the_newest_work_is_done_first() -> None:
    log: list[int] = []

    async def play() -> None:
        turns = Turns()
        for number in range(3):
            turns.add(functools.partial(log.append, number))
        await asyncio.sleep(0)

    asyncio.run(play())
    assert log == [2, 1, 0]


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
