"""All connections of one address come to the same of several that listen on one port."""

from __future__ import annotations

import select
import socket
from collections import Counter
from contextlib import ExitStack

import pytest

from inspector.proxy import reuseport
from tests.support.proxies import APART


def listening(stack: ExitStack, host: str, number: int) -> list[socket.socket]:
    """Sockets that share a port."""
    made: list[socket.socket] = []
    for _ in range(number):
        listener = stack.enter_context(socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET))
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.bind((host, made[0].getsockname()[1] if made else 0))
        listener.listen()
        made.append(listener)
        reuseport.by_address(listener, number)
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
    monkeypatch.setattr(reuseport, "ATTACH", 9999)
    with ExitStack() as stack:
        sockets = listening(stack, "127.0.0.1", 2)
        assert len({dealt(sockets, "127.0.0.1") for _ in range(60)}) == 2
