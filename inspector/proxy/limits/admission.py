"""Limits for all connections, and for peers that have not presented a verified certificate: everybody who can reach the
port is one at first.

A connection is admitted at once while there is room. Otherwise it waits, unread, until it has sent something and there
is room: a thousand agents behind one address wait for each other's handshakes, and none is refused. The newest is
admitted first, as in a flood it is the likeliest to be an agent. While others wait, whoever is silent loses its place.

Addresses from which a verified agent came lately have a larger limit of their own. Verified agents have all the room
there is; when it is not enough, who has most of it loses first (``agents``, ``waiting_bytes``).
"""

from __future__ import annotations

import asyncio
import ctypes
import selectors
import time
from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Any

from inspector.proxy.limits import agents, waiting_bytes
from inspector.proxy.limits.pool import Limits, Pool, Ticket, Turns, unread
from inspector.proxy.limits.quota import Quota, Refusals, Share, counted_as

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from inspector.proxy.limits.quota import Charged

KNOWN, STRANGERS = Share(384, 512), Share(96, 160)
"""Connections that are served at a time: of addresses from which a verified agent came lately, and of others. A
handshake occupies the processor for some 5 ms, so agents are not served faster with more at a time. Each takes some
70 kB."""
WAITING = Share(1500, 2000)
"""Connections that wait: more than the thousand agents that may start behind one address. Each takes 10 kB."""
EXCHANGES = Share(24, 48)
"""Exchanges under way, each with a connection to the master. A bootstrap has one at a time, for some milliseconds."""
BYTES = Share(8 * 2**20, 32 * 2**20)
"""Bytes of requests under way. The largest of a bootstrap, the signing request, has 2 to 4 kB."""
SPARE = 256
"""Descriptors for everything else: the capture, copies of bodies, connections that are just being accepted."""
NEEDED = KNOWN.total + STRANGERS.total + WAITING.total + EXCHANGES.total
"""Descriptors that these limits allow. If a process may open few, the limits are smaller, and take half of them."""
PATIENCE = 90.0
"""Seconds that a connection or a request waits. Agents wait for two minutes for an answer to their handshake."""
LATELY = 86_400.0
"""Seconds for which an address is known: agents run every half hour, some once a day."""
ADDRESSES = 50_000
"""Known addresses that are remembered."""
NO_ROOM = "too many connections were open (see ulimit -n)"
"""Why a connection is refused, or closed for others."""
IDLE = "a certname had too many that were idle"
"""Why a connection is closed for others of its own."""
SWEEP = 0.1
"""Seconds between searches for silent connections while others wait."""
FLOOD = 64
"""Connections after which memory is given back."""
TRIM_DELAY = 2.0
"""Seconds between their end and that: their tasks end, too."""
BURST = 16
"""Connections that are accepted at a time: they take some 5 ms."""
QUEUE = 4096
"""The length of the queue of connections that the system has accepted and the proxy has not yet, if the system allows
so much (`net.core.somaxconn`): an agent that finds it full tries again only after a second."""


def trim() -> bool:
    """Give free memory back to the system; return whether there was any. Other C libraries than glibc do it anyway."""
    function = getattr(ctypes.CDLL(None), "malloc_trim", None)
    return function is not None and bool(function(0))


class Peaks:
    """Gives memory back after a flood of connections has ended: the C library keeps it, in case as many come again."""

    def __init__(self) -> None:
        self._most = 0

    def count(self, number: int) -> None:
        """Note how many connections there are."""
        self._most = max(self._most, number)
        if self._most >= FLOOD and number <= self._most // 4:
            self._most = 0
            loop = asyncio.get_running_loop()
            loop.call_later(TRIM_DELAY, loop.run_in_executor, None, trim)


def lengthen(servers: Iterable[asyncio.Server]) -> None:
    """Make the queues of servers longer.

    asyncio has one figure for the length and for the connections that it accepts before it does anything else: all of a
    long queue at once would delay others.
    """
    for server in servers:
        for listening in server.sockets:
            shared: Any = listening.dup()
            with shared:
                shared.listen(QUEUE)


class Admission(Limits):
    """Decides which connections are served."""

    def __init__(self, descriptors: int, report: Callable[[str], None], workers: int = 1) -> None:
        """``descriptors`` is how many the process may open; ``report`` gets a sentence about what was refused. Of
        ``workers`` processes each has its share of what they have together: memory, and connections to the master."""
        self.descriptors = max(descriptors - SPARE, 16)
        self.scale = min(1.0, self.descriptors / 2 / NEEDED)
        known, strangers, waiting, exchanges = (
            share.scaled(self.scale).divided(workers) for share in (KNOWN, STRANGERS, WAITING, EXCHANGES)
        )
        self._known, self._strangers = Pool(known), Pool(strangers)
        super().__init__(
            Quota(waiting), Quota(exchanges), Quota(BYTES.divided(workers)), Refusals(report), Turns(),
            Refusals(report, "closed, as others needed the room"),
            # Each takes two descriptors. An eighth of them is for whoever comes.
            agents.Agents(min(self.descriptors * 7 // 16, agents.CONNECTIONS // workers)),
            waiting_bytes.WaitingBytes(waiting_bytes.BYTES.divided(workers)),
        )  # fmt: skip
        self._peaks = Peaks()
        self._addresses: OrderedDict[str, float] = OrderedDict()
        """When a verified agent last came from an address."""
        self._idle: dict[int, Ticket] = {}
        """By descriptor: those that wait and have sent nothing yet, in the order in which they came."""
        self._selector: selectors.DefaultSelector | None = None
        self._sweeping: asyncio.TimerHandle | None = None

    def enter(
        self, identifier: str, host: str, descriptor: int, close: Callable[[str], None], *, sent: bool = False
    ) -> Ticket:
        """Admit a connection, or let it wait, or refuse it; ``sent``: something that it sent was read already."""
        ticket = Ticket(self, counted_as(host), descriptor, close)
        unverified = self._unverified
        self._peaks.count(unverified + self.agents.total)
        pool = self._pool_of(ticket)
        if unverified + 2 * self.agents.total >= self.descriptors and not self._close_agent():
            self._refuse(ticket, NO_ROOM)
        # Where many have a place, it is for those that have something to say.
        elif (pool.crowded(ticket.address) and not sent and not unread(descriptor)) or not pool.admit(ticket):
            self._wait(ticket, sent=sent)
        Ticket.open[identifier] = ticket
        return ticket

    async def wait(self, ticket: Ticket) -> bool:
        """Wait until a connection is admitted; return False if it is refused."""
        if not ticket.admitted.done():
            await asyncio.wait([ticket.admitted], timeout=PATIENCE)
            self._refuse(ticket, "it waited too long")
        return ticket.admitted.result()

    def verify(self, identifier: str, certname: str = "") -> None:
        """Lift the limits of strangers from a connection: its certificate is verified, with this name."""
        ticket = Ticket.open.get(identifier)
        if ticket is None or ticket.pool is None:
            return
        ticket.end()
        ticket.note_waiting(0)
        address, pool = ticket.address, ticket.pool
        ticket.verified, ticket.payer, ticket.heard = True, certname or address, time.monotonic()
        self.agents.add(ticket)
        if self.agents.total > self.agents.limit:
            self._close_agent(ticket)
        elif certname and (idle := self.agents.surplus(ticket)):
            self._close_verified(idle, IDLE)
        pool.free(ticket)
        self._addresses[address] = time.monotonic()
        self._addresses.move_to_end(address)
        if len(self._addresses) > ADDRESSES:
            self._addresses.popitem(last=False)
        if address in self._strangers.ready:
            self._known.ready[address] = self._strangers.ready.pop(address)
        self._fill()

    def leave(self, ticket: Ticket) -> None:
        """Take back what a connection has that ends."""
        self._remove(ticket)
        ticket.end()
        ticket.note_waiting(0)
        self.agents.remove(ticket)
        if ticket.pool is not None:
            ticket.pool.free(ticket)
            self._fill()
        self._peaks.count(self._unverified + self.agents.total)

    def close(self) -> None:
        """Let no connection wait any longer, and report."""
        ready = [ticket for pool in self._pools for queue in pool.ready.values() for ticket in queue]
        for ticket in [*self._idle.values(), *ready]:
            self._refuse(ticket, "the proxy ended")
        if self._sweeping is not None:
            self._sweeping.cancel()
        if self._selector is not None:
            asyncio.get_running_loop().remove_reader(self._selector.fileno())
            self._selector.close()
        self.refusals.report()
        self.closings.report()

    def _close_agent(self, newcomer: Ticket | None = None) -> bool:
        """Close a verified agent's connection, as there is no room for it and others; return whether there was one. If
        nobody has too many, and the newcomer is verified, it is that."""
        loser = self.agents.loser(newcomer) or newcomer
        if loser is None:
            return False
        self._close_verified(loser, NO_ROOM)
        return True

    def _close_verified(self, loser: Charged, reason: str) -> None:
        self.agents.remove(loser)  # at once: it ends in the next round
        loser.refuse(reason)
        asyncio.get_running_loop().call_soon(loser.close, reason)

    @property
    def _unverified(self) -> int:
        """How many descriptors connections without a verified certificate use, those to the master included."""
        return self._known.total + self._strangers.total + self.waiting.total + self.exchanges.total

    @property
    def _pools(self) -> tuple[Pool, Pool]:
        return self._known, self._strangers

    def _pool_of(self, ticket: Ticket) -> Pool:
        known = time.monotonic() - self._addresses.get(ticket.address, -LATELY) < LATELY
        return self._known if known else self._strangers

    # -- waiting ------------------------------------------------------------------------------------

    def _wait(self, ticket: Ticket, *, sent: bool) -> None:
        """Let a connection wait; if too many do, instead of the one that has sent nothing for the longest time."""
        if not self.waiting.take(ticket.address):
            anyone = self.waiting.full
            oldest = next((other for other in self._idle.values() if anyone or other.address == ticket.address), None)
            if oldest is None:
                self._refuse(ticket, "too many waited")
                return
            self._refuse(oldest, "it sent nothing while others waited")
            self.waiting.take(ticket.address)
        ticket.waits = True
        if sent:
            self._pool_of(ticket).ready.setdefault(ticket.address, deque()).append(ticket)
            self._fill()
            return
        self._idle[ticket.descriptor] = ticket
        if self._selector is None:
            self._selector = selectors.DefaultSelector()
            asyncio.get_running_loop().add_reader(self._selector.fileno(), self._look)
        self._selector.register(ticket.descriptor, selectors.EVENT_READ)

    def _look(self) -> None:
        """Note which of those that wait have sent something, or have left."""
        assert self._selector is not None  # noqa: S101 - it called this
        for key, _ in self._selector.select(0):
            self._selector.unregister(key.fd)
            ticket = self._idle.pop(key.fd)
            self._pool_of(ticket).ready.setdefault(ticket.address, deque()).append(ticket)
        self._fill()

    def _fill(self) -> None:
        for pool in self._pools:
            pool.fill()
        if self._sweeping is None and any(pool.ready for pool in self._pools):
            self._sweeping = asyncio.get_running_loop().call_later(SWEEP, self._sweep)

    def _sweep(self) -> None:
        self._sweeping = None
        for pool in self._pools:
            if pool.ready:
                pool.make_room()
        self._fill()

    def _refuse(self, ticket: Ticket, reason: str) -> None:
        """Refuse a connection, unless it was admitted."""
        if not ticket.admitted.done():
            self._remove(ticket)
            ticket.refuse(reason)
            ticket.admitted.set_result(False)

    def _remove(self, ticket: Ticket) -> None:
        """Remove a connection from those that wait."""
        if ticket.waits:
            ticket.stop_waiting()
            if self._idle.pop(ticket.descriptor, None) is None:
                for pool in self._pools:
                    pool.remove(ticket)
            elif self._selector is not None:
                self._selector.unregister(ticket.descriptor)
