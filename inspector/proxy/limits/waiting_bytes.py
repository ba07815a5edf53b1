"""What waits in memory until somebody takes it: answers that agents do not read, requests sent ahead, small bodies."""

from __future__ import annotations

import asyncio
import socket
from collections import OrderedDict

from inspector.proxy.limits.quota import Charged, Share

BYTES = Share(16 * 2**20, 256 * 2**20)
"""Bytes of one agent, and of all."""
CONNECTION = 160 * 2**10
"""Bytes that the two connections take over which an answer waits: they are there only for it."""
REASON = "too much waited in memory until it was taken"


UNSENT, WINDOW = 2**17, 2**20
"""Bytes of a connection that wait in the system's memory: what it has not sent yet, and what it has received. By itself
it takes up to 4 and 6 MB."""


def limit_system(connection: socket.socket) -> None:
    """Limit what of a connection waits in the system's memory, and for how long."""
    # A peer that vanished would otherwise stay connected for ever.
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT, UNSENT)
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_WINDOW_CLAMP, WINDOW)


def untaken(size: int) -> int:
    """Return what an answer costs of which an agent has not taken so many bytes."""
    return size + CONNECTION if size else 0


class WaitingBytes:
    """Counts them by payer. If there are too many, the connection that waits longest of who has most is closed.

    The only one of an agent never is.
    """

    def __init__(self, share: Share = BYTES) -> None:
        self.share = share
        self.total = 0
        self._sizes: dict[str, int] = {}
        self._tickets: dict[str, OrderedDict[Charged, None]] = {}
        """By payer: its connections for which something waits, in the order in which that began."""
        self._several: dict[str, None] = {}
        """Payers with more than one."""

    @property
    def many(self) -> bool:
        """Whether less should be read at a time."""
        return self.total > self.share.total // 2

    def note(self, ticket: Charged, size: int) -> None:
        """Note how many bytes of a connection wait."""
        more, payer = size - ticket.waiting_bytes, ticket.payer
        ticket.waiting_bytes = size
        self.total += more
        self._sizes[payer] = self._sizes.get(payer, 0) + more
        tickets = self._tickets.setdefault(payer, OrderedDict())
        if size:
            tickets.setdefault(ticket)
        else:
            tickets.pop(ticket, None)
        if len(tickets) > 1:
            self._several[payer] = None
        else:
            self._several.pop(payer, None)
        if not tickets:
            del self._tickets[payer], self._sizes[payer]
        if more > 0:
            self._relieve(payer)

    def _relieve(self, payer: str) -> None:
        if self._sizes[payer] <= self.share.address:
            if self.total <= self.share.total or not self._several:
                return
            payer = max(self._several, key=self._sizes.__getitem__)
        if payer not in self._several:
            return
        longest = next(iter(self._tickets[payer]))
        self.note(longest, 0)  # at once: it ends in the next round
        longest.refuse(REASON)
        asyncio.get_running_loop().call_soon(longest.close, REASON)
