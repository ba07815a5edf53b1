"""Which of several processes that listen on one port an agent's connections come to.

The system deals connections out by chance. What we know of an agent is by its address, though: who asked without a
name, who is probed, and what came after what. So all of one address go to the same process.
"""

from __future__ import annotations

import contextlib
import ctypes
import socket
import struct

ATTACH = 51
"""SO_ATTACH_REUSEPORT_CBPF (Linux 4.5), which ``socket`` does not name."""
NETWORK = 0xFFF00000
"""SKF_NET_OFF: from here on offsets count from the head of the IP packet (linux/filter.h)."""
# The classic filter's instructions (linux/bpf_common.h), as far as they are needed.
LOAD_BYTE, LOAD_WORD = 0x30, 0x20
SHIFT_RIGHT, MULTIPLY, MODULO = 0x74, 0x24, 0x94
IF_EQUAL, SKIP, RETURN = 0x15, 0x05, 0x16


def by_address(listening: socket.socket, number: int) -> None:
    """Let each address come to the same one of ``number`` sockets that listen on this one's port.

    Where the system can't, it goes on dealing them out by chance.
    """
    program = [
        (LOAD_BYTE, 0, 0, NETWORK),
        (SHIFT_RIGHT, 0, 0, 4),
        (IF_EQUAL, 0, 2, 6),  # not IPv6: two further
        (LOAD_WORD, 0, 0, NETWORK + 20),  # where the agent's address ends
        (SKIP, 0, 0, 1),
        (LOAD_WORD, 0, 0, NETWORK + 12),
        # Addresses of a site are alike: without mixing, those with an even end could all go to one.
        (MULTIPLY, 0, 0, 0x9E3779B1),
        (SHIFT_RIGHT, 0, 0, 16),
        (MODULO, 0, 0, number),
        (RETURN, 0, 0, 0),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *each) for each in program))
    with contextlib.suppress(OSError):
        listening.setsockopt(socket.SOL_SOCKET, ATTACH, struct.pack("@HP", len(program), ctypes.addressof(code)))
