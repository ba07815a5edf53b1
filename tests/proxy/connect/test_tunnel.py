"""A connection that is passed on unread, over real sockets."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from typing import TYPE_CHECKING

import pytest

from inspector.proxy.connect import tunnel

if TYPE_CHECKING:
    from asyncio import StreamReader, StreamWriter
    from collections.abc import Awaitable, Callable

ESTABLISHED = b"HTTP/1.1 200 Connection established\r\n\r\n"
PATIENCE = 120.0


class Dug:
    """A tunnel, as its two users see it."""

    def __init__(self) -> None:
        self.ends = 0
        self.server: tuple[StreamReader, StreamWriter]
        self.agent: tuple[StreamReader, StreamWriter]
        self.sockets: tuple[socket.socket, socket.socket]


async def dug(early: bytes = b"", asked: bytes = b"") -> Dug:
    """Dig a tunnel; ``early`` is what the server says at once, ``asked`` what the agent says behind its request."""
    made = Dug()
    (agent, to_agent), (server, to_server) = pair(), pair()
    made.sockets = agent, server
    server.sendall(early)
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_connection(asyncio.Protocol, sock=to_agent)
    transport.pause_reading()

    def ended() -> None:
        made.ends += 1

    await tunnel.join(transport, to_server, ESTABLISHED, ended, asked)
    made.agent = await asyncio.open_connection(sock=agent, limit=2**22)
    made.server = await asyncio.open_connection(sock=server, limit=2**22)
    assert await made.agent[0].readexactly(len(ESTABLISHED)) == ESTABLISHED
    return made


def pair() -> tuple[socket.socket, socket.socket]:
    """Two ends of a TCP connection."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        near = socket.create_connection(listening.getsockname())
        far, _ = listening.accept()
    near.settimeout(0)
    far.settimeout(0)
    return near, far


def played(play: Callable[[], Awaitable[None]]) -> None:
    async def within() -> None:
        async with asyncio.timeout(PATIENCE):
            await play()

    asyncio.run(within())


async def over(made: Dug) -> None:
    """Wait until the tunnel has ended, once."""
    while not made.ends:
        await asyncio.sleep(0.01)
    await asyncio.sleep(0.05)
    assert made.ends == 1


async def shut(*writers: StreamWriter) -> None:
    for writer in writers:
        writer.close()
    await asyncio.gather(*(writer.wait_closed() for writer in writers), return_exceptions=True)


def test_it_passes_everything_both_ways() -> None:
    async def play() -> None:
        made = await dug()
        large = bytes(range(256)) * 40_000
        (read_a, write_a), (read_s, write_s) = made.agent, made.server
        write_a.write(b"\0\r\n" + large)
        write_s.write(large[::-1])
        assert list(await asyncio.gather(read_s.readexactly(len(large) + 3), read_a.readexactly(len(large)))) == [
            b"\0\r\n" + large, large[::-1],
        ]  # fmt: skip
        await shut(write_a, write_s)
        await over(made)

    played(play)


def test_the_answer_comes_before_what_the_server_says() -> None:
    async def play() -> None:
        made = await dug(b"220 the server speaks first\r\n")
        assert await made.agent[0].readline() == b"220 the server speaks first\r\n"
        await shut(made.agent[1], made.server[1])
        await over(made)

    played(play)


def test_what_the_agent_said_behind_its_request_is_the_servers() -> None:
    async def play() -> None:
        made = await dug(asked=b"\x16\x03\x01")
        made.agent[1].write(b"more")
        assert await made.server[0].readexactly(7) == b"\x16\x03\x01more"
        await shut(made.agent[1], made.server[1])
        await over(made)

    played(play)


def test_a_side_may_have_said_everything_and_still_listen() -> None:
    async def play() -> None:
        made = await dug()
        (read_a, write_a), (read_s, write_s) = made.agent, made.server
        write_a.write(b"all I have")
        write_a.write_eof()
        assert await read_s.read() == b"all I have"
        write_s.write(b"an answer")
        assert await read_a.readexactly(9) == b"an answer"
        assert made.ends == 0
        write_s.write_eof()
        assert await read_a.read() == b""
        await over(made)
        await shut(write_a, write_s)

    played(play)


def test_the_server_may_be_the_first_to_end() -> None:
    async def play() -> None:
        made = await dug()
        (read_a, write_a), (_, write_s) = made.agent, made.server
        write_s.write(b"farewell")
        write_s.close()
        assert await read_a.read() == b"farewell"
        write_a.close()
        await over(made)
        await shut(write_a, write_s)

    played(play)


def reset(end: socket.socket) -> None:
    """Let a connection end with a reset when it is closed."""
    end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


def test_it_ends_when_one_side_is_lost() -> None:
    async def play(lost: int) -> None:
        made = await dug()
        ends = made.agent, made.server
        reset(ends[lost][1].get_extra_info("socket"))
        ends[lost][1].close()
        with pytest.raises(ConnectionResetError):  # as it is without us
            await ends[1 - lost][0].read()
        await over(made)
        await shut(made.agent[1], made.server[1])

    for lost in (0, 1):
        played(lambda lost=lost: play(lost))  # type: ignore[misc]


def test_an_agent_that_has_left_meanwhile_keeps_no_server() -> None:
    async def play() -> None:
        (agent, to_agent), (server, to_server) = pair(), pair()
        transport, _ = await asyncio.get_running_loop().create_connection(asyncio.Protocol, sock=to_agent)
        transport.abort()
        await tunnel.join(transport, to_server, ESTABLISHED, lambda: None)
        read, write = await asyncio.open_connection(sock=server)
        with contextlib.suppress(ConnectionResetError):
            assert await read.read() == b""
        agent.close()
        await shut(write)

    played(play)


def test_who_takes_nothing_stops_the_other_side() -> None:
    """Else a large file would be held in memory."""

    async def play() -> None:
        made = await dug()
        _, write_s = made.server
        piece = bytes(2**20)
        made.agent[0]._limit = 1  # type: ignore[attr-defined]
        made.agent[1].transport.pause_reading()  # type: ignore[attr-defined]
        sent = 0
        while sent < 2**28:
            write_s.write(piece)
            sent += len(piece)
            try:
                await asyncio.wait_for(write_s.drain(), 0.5)
            except TimeoutError:
                break
        assert sent < 2**28
        made.agent[1].transport.abort()
        await over(made)
        await shut(write_s)

    played(play)
