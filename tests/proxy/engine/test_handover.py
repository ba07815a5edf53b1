"""Two workers, and connections that meet the wrong one."""

from __future__ import annotations

import asyncio
import socket
from typing import TYPE_CHECKING

from inspector.proxy.engine.handover import Handover

if TYPE_CHECKING:
    from pathlib import Path


class Worker(asyncio.Protocol):
    """What a worker gets."""

    def __init__(self, folder: Path, number: int) -> None:
        self.early: list[bytes] = []
        self.data = b""
        self.handover = Handover(folder, number, 2, self.accept)

    def accept(self, early: bytes) -> asyncio.Protocol:
        self.early.append(early)
        return self

    def data_received(self, data: bytes) -> None:
        self.data += data


def foreign(worker: Worker) -> str:
    """An address that the other worker serves."""
    return next(address for address in map(str, range(99)) if worker.handover.elsewhere(address))


def test_a_connection_goes_to_the_worker_of_its_address(tmp_path: Path) -> None:
    async def play() -> None:
        one, other = Worker(tmp_path, 0), Worker(tmp_path, 1)
        address = foreign(one)
        assert not other.handover.elsewhere(address)
        for early in (b"read before", b""):
            near, far = socket.socketpair()
            with far:
                with near:
                    assert await one.handover.pass_on(near, early, address)
                far.send(b"and after")
                while not other.data:
                    await asyncio.sleep(0)
                assert other.early.pop() == early
                assert other.data == b"and after"
                other.data = b""
        assert one.early == []
        for worker in (one, other):
            worker.handover.close()

    asyncio.run(asyncio.wait_for(play(), 60))


def test_many_at_once_wait_for_each_other(tmp_path: Path) -> None:
    """The system holds a few messages only."""

    async def play() -> None:
        one, other = Worker(tmp_path, 0), Worker(tmp_path, 1)
        pairs = [socket.socketpair() for _ in range(600)]
        passed = await asyncio.gather(*(one.handover.pass_on(near, b"a", foreign(one)) for near, _ in pairs))
        assert all(passed)
        while len(other.early) < len(pairs):
            await asyncio.sleep(0)
        for pair in pairs:
            for end in pair:
                end.close()
        for worker in (one, other):
            worker.handover.close()

    asyncio.run(asyncio.wait_for(play(), 60))


def test_who_cannot_be_passed_on_stays(tmp_path: Path) -> None:
    async def play() -> None:
        one = Worker(tmp_path, 0)
        near, far = socket.socketpair()
        with near, far:
            assert not await one.handover.pass_on(near, b"", foreign(one)), "there is no other worker"
            other = Worker(tmp_path, 1)
            assert await one.handover.pass_on(near, b"", foreign(one)), "it was started again"
        assert not await one.handover.pass_on(near, b"", foreign(one)), "the connection is closed"
        for worker in (one, other):
            worker.handover.close()

    asyncio.run(asyncio.wait_for(play(), 60))
