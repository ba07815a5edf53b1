"""Distribution of connections among several processes that listen on the same port.

The kernel distributes them by a hash of address and port. But some state of an agent is stored by its address (requests
without a name, the probe, the order of its requests). So all connections from one address must go to the same process.
"""

from __future__ import annotations

import contextlib
import ctypes
import socket
import struct

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
