"""Workers pass connections on to each other.

One address has one worker (``reuseport``). Behind a balancer the kernel does not know which agent comes; the worker
that the connection meets does, once it has read what the balancer sends first. If another worker serves that agent's
address, it gets the socket and what was read of it, and reads that as if it had come there.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import time
import zlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SIZE = 2**17
"""Bytes of a message: more than an end reads at a time before its agent is admitted."""
NOTHING = b"\0"
"""Instead of data, if none was read: a descriptor must come with some."""
PATIENCE = 2.0
"""Seconds in which another worker must take a connection."""
AGAIN = 0.01
"""Seconds until another attempt, if too many wait there."""


class Handover:
    """What one worker passes on, and what it gets."""

    def __init__(
        self, folder: Path, number: int, workers: int, accept: Callable[[bytes], asyncio.BaseProtocol]
    ) -> None:
        """Get connections from now on. ``folder`` is the workers' own; this one is ``number`` of so many.

        ``accept`` returns the protocol of a connection of which these bytes were read.
        """
        self._folder, self._number, self._workers, self._accept = folder, number, workers, accept
        self._tasks: set[asyncio.Task[None]] = set()
        path = folder / str(number)
        path.unlink(missing_ok=True)  # of a worker that died
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.settimeout(0)
        self._socket.bind(str(path))
        asyncio.get_running_loop().add_reader(self._socket.fileno(), self._receive)

    def elsewhere(self, address: str) -> bool:
        """Return whether another worker serves agents at this address."""
        return self._owner(address) != self._number

    def _owner(self, address: str) -> int:
        return zlib.crc32(address.encode()) % self._workers

    async def pass_on(self, connection: socket.socket, data: bytes, address: str) -> bool:
        """Pass on a connection, and what was read of it; return False if it is closed or the other worker is gone."""
        path = str(self._folder / str(self._owner(address)))
        until = time.monotonic() + PATIENCE
        while True:
            # Its descriptor is asked for each time: that of a closed one may be another connection's by now.
            rights = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, struct.pack("i", connection.fileno()))]
            try:
                self._socket.sendmsg([data or NOTHING], rights, 0, path)  # send_fds ignores the path
            except BlockingIOError:
                if time.monotonic() > until:
                    return False
                await asyncio.sleep(AGAIN)
            except OSError:
                return False
            else:
                return True

    def _receive(self) -> None:
        with contextlib.suppress(BlockingIOError):
            while True:
                data, descriptors, _, _ = socket.recv_fds(self._socket, SIZE, 1)
                for descriptor in descriptors:
                    connection = socket.socket(fileno=descriptor)
                    connection.settimeout(0)
                    read = b"" if data == NOTHING else data
                    task = asyncio.get_running_loop().create_task(self._begin(connection, read))
                    self._tasks.add(task)
                    task.add_done_callback(self._tasks.discard)

    async def _begin(self, connection: socket.socket, data: bytes) -> None:
        with contextlib.suppress(OSError):  # the agent has left
            await asyncio.get_running_loop().connect_accepted_socket(lambda: self._accept(data), connection)

    def close(self) -> None:
        """Get nothing any more."""
        asyncio.get_running_loop().remove_reader(self._socket.fileno())
        self._socket.close()
