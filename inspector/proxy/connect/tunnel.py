"""A connection that is passed on unread."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, cast

from inspector.proxy.faults.injection import end_with_reset

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable


class _Side(asyncio.Protocol):
    """One of the two connections of a tunnel."""

    def __init__(self, on_end: Callable[[], None]) -> None:
        self._on_end = on_end
        self.transport: asyncio.Transport
        self.other: _Side
        self.ended = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        self.other.transport.write(data)

    def eof_received(self) -> bool:
        self.other.transport.write_eof()
        self.ended = True
        return not self.other.ended

    def pause_writing(self) -> None:
        self.other.transport.pause_reading()

    def resume_writing(self) -> None:
        if not self.other.transport.is_closing():
            self.other.transport.resume_reading()

    def connection_lost(self, exc: Exception | None) -> None:
        if exc is not None:
            _reset(self.other.transport)
        else:
            self.other.transport.close()
        self._on_end()


def _reset(transport: asyncio.Transport) -> None:
    """Break a connection off as the other one was."""
    end_with_reset(transport.get_extra_info("socket"))
    transport.abort()


async def join(
    agent: asyncio.Transport, server: socket.socket, established: bytes, on_end: Callable[[], None], early: bytes = b""
) -> None:
    """Join an agent's connection, which is paused, with one to a server, and tell the agent so. ``on_end`` is called
    once the agent's connection is lost; ``early`` is what the agent has sent already."""
    there = _Side(lambda: None)
    here = _Side(on_end)
    here.other, there.other, here.transport = there, here, agent
    server.settimeout(0)
    await asyncio.get_running_loop().create_connection(lambda: there, sock=server)
    if agent.is_closing():
        there.transport.abort()
        return
    there.transport.write(early)
    agent.write(established)
    agent.set_protocol(here)
    agent.resume_reading()
