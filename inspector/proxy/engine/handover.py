"""Connections are distributed among workers that listen on one port: each address has one worker.

Some state of an agent is stored by its address (requests without a name, the probe, the order of its requests). By
itself the kernel distributes connections by a hash of address and port; a filter makes it the address alone. Behind a
balancer the kernel does not know which agent comes; the worker that the connection meets does, once it has read what
the balancer sends first. If another worker serves that agent's address, it gets the socket and what was read of it, and
reads that as if it had come there.
"""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
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
ATTACH = 51
"""SO_ATTACH_REUSEPORT_CBPF (Linux 4.5), which ``socket`` does not name."""
NETWORK = 0xFFF00000
"""SKF_NET_OFF: offsets from here on are relative to the start of the IP packet (linux/filter.h)."""
# The instructions of a classic BPF filter that are needed here (linux/bpf_common.h).
LOAD_BYTE, LOAD_WORD = 0x30, 0x20
SHIFT_RIGHT, MULTIPLY, MODULO = 0x74, 0x24, 0x94
IF_EQUAL, SKIP, RETURN = 0x15, 0x05, 0x16


def by_address(listening: socket.socket, number: int) -> None:
    """Distribute connections by address among the ``number`` sockets that listen on this socket's port.

    On a kernel without this feature nothing changes.
    """
    program = [
        (LOAD_BYTE, 0, 0, NETWORK),
        (SHIFT_RIGHT, 0, 0, 4),
        (IF_EQUAL, 0, 2, 6),  # not IPv6: skip two instructions
        (LOAD_WORD, 0, 0, NETWORK + 20),  # the last four bytes of the agent's address
        (SKIP, 0, 0, 1),
        (LOAD_WORD, 0, 0, NETWORK + 12),
        # Addresses of a site are similar: without mixing, all even ones could go to the same process.
        (MULTIPLY, 0, 0, 0x9E3779B1),
        (SHIFT_RIGHT, 0, 0, 16),
        (MODULO, 0, 0, number),
        (RETURN, 0, 0, 0),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *instruction) for instruction in program))
    with contextlib.suppress(OSError):
        listening.setsockopt(socket.SOL_SOCKET, ATTACH, struct.pack("@HP", len(program), ctypes.addressof(code)))


class Handover:
    """Passes connections on to other workers, and takes those that they pass on."""

    def __init__(
        self, folder: Path, number: int, workers: int, accept: Callable[[bytes], asyncio.BaseProtocol]
    ) -> None:
        """Take connections from now on. ``folder`` is the workers' own; this one is ``number`` of so many.

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
        """Take no connections any more."""
        asyncio.get_running_loop().remove_reader(self._socket.fileno())
        self._socket.close()
