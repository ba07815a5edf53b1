"""Two workers, and connections that meet the wrong one."""

from __future__ import annotations

import asyncio
import select
import socket
from collections import Counter
from contextlib import ExitStack
from typing import TYPE_CHECKING

import pytest

from inspector.proxy.engine import handover as module
from inspector.proxy.engine.handover import Handover
from tests.support.proxies import APART

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


def test_many_at_once_wait_for_each_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system holds a few messages only."""
    monkeypatch.setattr(module, "PATIENCE", 60.0)  # on a busy machine

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


def listening(stack: ExitStack, host: str, number: int) -> list[socket.socket]:
    """Sockets that share a port."""
    made: list[socket.socket] = []
    for _ in range(number):
        listener = stack.enter_context(socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind((host, made[0].getsockname()[1] if made else 0))
        listener.listen()
        made.append(listener)
        module.by_address(listener, number)
    return made


def dealt(sockets: list[socket.socket], source: str) -> int:
    """Which of them an agent with this address meets."""
    address = sockets[0].getsockname()[:2]
    with socket.create_connection(address, 5, (source, 0)):
        (met,), _, _ = select.select(sockets, [], [], 5)
        met.accept()[0].close()
    return sockets.index(met)


def test_two_that_meet_different_ones() -> None:
    with ExitStack() as stack:
        sockets = listening(stack, "127.0.0.1", 2)
        assert {dealt(sockets, source) for source in APART} == {0, 1}


@pytest.mark.parametrize("number", [2, 3])
def test_an_address_always_meets_the_same_and_addresses_are_spread(number: int) -> None:
    with ExitStack() as stack:
        sockets = listening(stack, "127.0.0.1", number)
        met = {f"127.0.0.{end}": dealt(sockets, f"127.0.0.{end}") for end in range(1, 61)}
        assert all(dealt(sockets, source) == at for source, at in met.items())
    shares = Counter(met.values())
    assert len(shares) == number
    assert min(shares.values()) > 60 / number / 2
    # Sites number their machines as they like.
    for step in (2, 4, 16):
        assert len({at for source, at in met.items() if int(source.rpartition(".")[2]) % step == 0}) > 1, step


def test_so_it_is_with_ipv6() -> None:
    with ExitStack() as stack:
        sockets = listening(stack, "::1", 2)
        # Had anything but its address been looked at, it were the first, or now this and now that one.
        assert {dealt(sockets, "::1") for _ in range(30)} == {1}


def test_where_the_system_can_not_it_is_by_chance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "ATTACH", 9999)
    with ExitStack() as stack:
        sockets = listening(stack, "127.0.0.1", 2)
        assert len({dealt(sockets, "127.0.0.1") for _ in range(60)}) == 2
