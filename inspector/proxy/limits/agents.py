"""The connections of verified agents, and which of them ends when there is no room for all."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

    from inspector.proxy.limits.quota import Charged

CONNECTIONS = 4000
"""Connections that are open at a time: with the one to the master, each takes 140 to 250 kB."""
RESTING = 5.0
"""Seconds without a request after which an agent sends none over a connection any more: it keeps one for 4
(http_keepalive_timeout)."""
FEW = 8
"""Connections of one certname that are left to it: an agent has one or two at a time."""
SHARE, FRESH = 128, 1024
"""Connections of one certname above which its idle ones end: those over which something was asked; above the second
number also those over which it may still be. Nodes that share a certificate, or a balancer that has one of its own,
have as many requests under way as they like."""


class Agents:
    """The connections of verified agents. Who has most loses first."""

    def __init__(self, limit: int = CONNECTIONS) -> None:
        self.limit = limit
        self.total = 0
        self._resting: OrderedDict[Charged, None] = OrderedDict()
        """Those without a request, in the order in which they were last heard of."""
        self._names: dict[str, dict[Charged, bool]] = {}
        """By certname, with whether anything was asked over it."""
        self._addresses: dict[str, dict[Charged, None]] = {}
        self._crowds: dict[str, dict[Charged, bool]] = {}
        """Of the names those with more than a few connections."""

    def add(self, ticket: Charged) -> None:
        """Count a connection."""
        self.total += 1
        self._resting[ticket] = None
        tickets = self._names.setdefault(ticket.payer, {})
        tickets[ticket] = False
        if len(tickets) > FEW:
            self._crowds[ticket.payer] = tickets
        self._addresses.setdefault(ticket.address, {})[ticket] = None

    def remove(self, ticket: Charged) -> bool:
        """Count a connection no more; return whether it was counted."""
        tickets = self._names.get(ticket.payer, {})
        if ticket not in tickets:
            return False
        self.total -= 1
        self._resting.pop(ticket, None)
        del tickets[ticket], self._addresses[ticket.address][ticket]
        if len(tickets) <= FEW:
            self._crowds.pop(ticket.payer, None)
        if not tickets:
            del self._names[ticket.payer]
        if not self._addresses[ticket.address]:
            del self._addresses[ticket.address]
        return True

    def ask(self, ticket: Charged) -> None:
        """A request begins."""
        self._resting.pop(ticket, None)
        if ticket in (tickets := self._names.get(ticket.payer, {})):
            tickets[ticket] = True

    def rest(self, ticket: Charged) -> None:
        """A request has ended."""
        if ticket in self._names.get(ticket.payer, ()):
            ticket.heard = time.monotonic()
            self._resting[ticket] = None
            self._resting.move_to_end(ticket)

    def hear(self, ticket: Charged) -> None:
        """A connection has sent something."""
        if ticket in self._resting:
            self._resting.move_to_end(ticket)

    def loser(self, newcomer: Charged | None = None) -> Charged | None:
        """Return the connection that ends first when there is no room: one over which no agent would ask any more, or
        one of the certname that has most; for a newcomer that is verified also one of an address that has more than
        half. None: all have as many as they need."""
        if self._resting:
            longest = next(iter(self._resting))
            if time.monotonic() - longest.heard >= RESTING:
                return longest
        if self._crowds:
            return self._longest(max(self._crowds.values(), key=len))
        if newcomer is not None:
            for address, tickets in self._addresses.items():
                if address != newcomer.address and len(tickets) > self.total // 2:
                    return self._longest(tickets)
        return None

    def surplus(self, newcomer: Charged) -> Charged | None:
        """Return the idle connection that ends because its certname has another one now; None: it has its share, or
        none of the others is idle."""
        tickets = self._names[newcomer.payer]
        if len(tickets) <= SHARE:
            return None
        all_of_them = len(tickets) > FRESH
        idle = (
            ticket
            for ticket, asked in tickets.items()
            if ticket in self._resting and ticket is not newcomer and (asked or all_of_them)
        )
        return min(idle, key=lambda ticket: ticket.heard, default=None)

    def _longest(self, tickets: Collection[Charged]) -> Charged:
        """Of some connections the one that has rested longest; of those with a request the oldest."""
        return min(tickets, key=lambda ticket: (ticket not in self._resting, ticket.heard))
