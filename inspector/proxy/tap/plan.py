"""What a tap has found out about the master on its host, and how its proxy is set."""

from __future__ import annotations

import socket
from collections.abc import Sequence

import msgspec

from inspector.errors import InspectorError

DIRECT = "-- direct from now on: "
"""What a line begins with about an agent that could not be served: its address and the reason follow."""
_IPV6_TRANSPARENT = 75
LISTENS = (("127.0.0.1", socket.AF_INET), ("::1", socket.AF_INET6))


class TapPlan(msgspec.Struct, frozen=True, tag="tap"):
    """How the proxy stands in for the master of this host."""

    descriptors: Sequence[int]
    """The sockets to which the kernel hands connections."""
    master: tuple[str, int]
    name: str
    """A name in the master's certificate."""
    certificate: str
    key: str
    ca: str
    crl: str
    cadir: str = ""
    """The directory of the CA whose key makes identities; empty: there is none, and no identity."""


def listen() -> list[socket.socket]:
    """Return sockets that take connections to any address of this host, one for each version of IP that it has.

    They are reached at loopback only, and from elsewhere through the kernel's table. Raises InspectorError.
    """
    made: list[socket.socket] = []
    port = 0
    for host, family in LISTENS:
        listening = socket.socket(family, socket.SOCK_STREAM)
        try:
            if family == socket.AF_INET6:
                listening.setsockopt(socket.IPPROTO_IPV6, _IPV6_TRANSPARENT, 1)
            else:
                listening.setsockopt(socket.SOL_IP, socket.IP_TRANSPARENT, 1)
            listening.bind((host, port))
        except PermissionError as error:
            listening.close()
            raise InspectorError("Only root can take over connections to the master.", "Run as root.") from error
        except OSError as error:
            listening.close()
            if made:  # no IPv6, or the port is taken there
                break
            raise InspectorError(f"Cannot listen on {host}: {error.strerror}.", "Run as root on Linux.") from error
        port = listening.getsockname()[1]
        made.append(listening)
    return made
