"""The queue of connections that are not accepted yet."""

from __future__ import annotations

import asyncio
import socket

from inspector.proxy.limits import accept_queue


def test_more_wait_than_are_accepted_at_a_time() -> None:
    async def play() -> int:
        server = await asyncio.start_server(lambda *_: None, "127.0.0.1", 0, backlog=1)
        accept_queue.lengthen([server])
        address = server.sockets[0].getsockname()
        callers = [socket.socket() for _ in range(50)]
        for caller in callers:  # nobody accepts them meanwhile: the event loop is busy here
            caller.settimeout(0.5)
            caller.connect(address)
        for caller in callers:
            caller.close()
        server.close()
        return len(callers)

    assert asyncio.run(play()) == 50
