"""The queue of connections that the system has accepted and the proxy has not yet.

asyncio has one figure for its length and for the connections that it accepts before it does anything else. A long queue
is wanted, as an agent that finds it full tries again only after a second; but all of it at once would delay others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Iterable

BURST = 16
"""Connections that are accepted at a time: they take some 5 ms."""
QUEUE = 4096
"""The length of the queue, if the system allows so much (`net.core.somaxconn`)."""


def lengthen(servers: Iterable[asyncio.Server]) -> None:
    """Make the queues of servers longer."""
    for server in servers:
        for listening in server.sockets:
            shared: Any = listening.dup()
            with shared:
                shared.listen(QUEUE)
