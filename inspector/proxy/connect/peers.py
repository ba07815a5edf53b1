"""Whose connection it is: the user that owns a socket of this host."""

from __future__ import annotations

import ipaddress
from pathlib import Path

TABLES = {4: Path("/proc/net/tcp"), 6: Path("/proc/net/tcp6")}


def owner(peer: tuple[str, int], own: tuple[str, int]) -> int | None:
    """Return the number of the user whose process on this host has the connection from ``peer`` to ``own``; None if
    there is no such process (any more).

    For a socket that is closed the kernel keeps no owner, and prints that of root; such a one has no inode.
    """
    version = ipaddress.ip_address(peer[0]).version
    wanted = _hex(*peer), _hex(*own)
    try:
        with TABLES[version].open(encoding="ascii") as table:
            for line in table:
                words = line.split(maxsplit=10)
                if (words[1], words[2]) == wanted:
                    return int(words[7]) if words[9] != "0" else None
    except OSError:
        return None
    return None


def _hex(host: str, port: int) -> str:
    """Return an address as the kernel prints it: words of four bytes in the machine's order (proc(5))."""
    packed = ipaddress.ip_address(host).packed
    words = (packed[at : at + 4][::-1] for at in range(0, len(packed), 4))
    return f"{b''.join(words).hex().upper()}:{port:04X}"
