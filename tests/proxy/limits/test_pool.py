"""A connection without a verified certificate: when it has been silent."""

from __future__ import annotations

import asyncio
import socket
import time
from typing import Any

import pytest

from inspector.proxy.limits import pool
from inspector.proxy.limits.pool import Pool, Ticket
from inspector.proxy.limits.quota import Share


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


def test_of_a_closed_connection_nothing_is_unread() -> None:
    with socket.socket() as closed:
        descriptor = closed.fileno()
    assert pool.unread(descriptor) == 0
