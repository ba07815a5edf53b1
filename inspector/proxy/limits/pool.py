"""Connections, the places for those without a verified certificate, and the turns in which work is done."""

from __future__ import annotations

import asyncio
import fcntl
import struct
import termios
import time
from collections import OrderedDict, deque
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, ClassVar
from weakref import WeakValueDictionary

from inspector.proxy.limits.agents import Agents
from inspector.proxy.limits.quota import Quota, Refusals, Share
from inspector.proxy.limits.waiting_bytes import WaitingBytes

if TYPE_CHECKING:
    from collections.abc import Callable

SILENT = 10.0
"""Seconds of silence after which a connection gives its place to one that waits: agents that start all at once on one
machine take their time, too."""
LONGEST = 60.0
"""Seconds after which it does so even if it is not silent."""
SLICE = 0.001
"""Seconds of a turn at least: a piece of work. A handshake takes longer."""
LONGEST_TURN = 0.004
"""Seconds after which no other piece of work begins in the same turn."""
AT_ONCE = 0.002
"""Seconds of a round of the event loop in which an agent's work is done at once. What it causes beyond has turns."""


@dataclass
class Limits:
    """What all connections share; ``waiting`` to ``refusals`` are of those without a verified certificate."""

    waiting: Quota
    exchanges: Quota
    sizes: Quota
    refusals: Refusals
    turns: Turns
    closings: Refusals
    """Connections of verified agents that were closed for others."""
    agents: Agents = field(default_factory=Agents)
    bytes: WaitingBytes = field(default_factory=WaitingBytes)
    under_way: dict[Ticket, None] = field(default_factory=dict, init=False)
    """Connections with an exchange, in the order in which these began."""

    def close_slow(self, address: str) -> None:
        """Close the connection whose request takes the longest, if that is long: one from this address waits for its
        place."""
        now = time.monotonic()
        for ticket in self.under_way:
            if now - ticket.began < SILENT:
                return
            if not ticket.answering and (self.exchanges.full or ticket.address == address):
                ticket.refuse("its request took too long while others waited")
                ticket.close("its request took too long while others waited")
                return


@dataclass(eq=False, slots=True, weakref_slot=True)
class Ticket:
    """A connection, from its admission to its end."""

    open: ClassVar[WeakValueDictionary[str, Ticket]] = WeakValueDictionary()
    """All of them, by the identifier of the connection."""

    limits: Limits
    address: str
    """The address that it is counted by (``counted_as``)."""
    descriptor: int
    close: Callable[[str], None]
    """Closes the connection, for a reason."""
    admitted: asyncio.Future[bool] = field(default_factory=asyncio.Future)
    """Whether it is served; not done while it waits."""
    waits: bool = False
    pool: Pool | None = None
    """Where it has a place."""
    verified: bool = False
    """Whether it presented a verified certificate."""
    payer: str = field(init=False)
    """To whom its work and its bytes are charged: its address, or the name in its verified certificate."""
    since: float = 0.0
    """When it was admitted."""
    heard: float = 0.0
    """When it last sent something, or its last exchange ended."""
    size: int = 0
    """Bytes of its request under way."""
    due: int = 0
    """Received pieces, of either side, that wait for their turn."""
    due_since: float = 0.0
    """When the first of these arrived."""
    delay: float = 0.0
    """Seconds for which received pieces waited for their turn: ours, and not the peer's."""
    exchange: bool = False
    """Whether it has an exchange under way."""
    began: float = 0.0
    """When that began."""
    answering: bool = False
    """Whether it waits for the answer of the master."""
    waiting_bytes: int = 0
    """Bytes of it that wait in memory."""

    def __post_init__(self) -> None:
        self.payer = self.address

    def begin(self) -> bool:
        """Begin an exchange; return whether there is room for it."""
        if self.verified:
            self.limits.agents.ask(self)
        elif not self.exchange:
            self.exchange = self.limits.exchanges.take(self.address)
            if self.exchange:
                self.began = time.monotonic()
                self.limits.under_way[self] = None
            else:
                self.limits.close_slow(self.address)
        return self.verified or self.exchange

    def add(self, size: int) -> bool:
        """Count bytes of a request; return whether there is room for them."""
        if not self.verified:
            if not self.limits.sizes.take(self.address, size):
                return False
            self.size += size
        return True

    def end(self) -> None:
        """End an exchange."""
        if self.verified:
            self.limits.agents.rest(self)
        if self.exchange:
            self.limits.exchanges.give(self.address)
            del self.limits.under_way[self]
        if self.size:
            self.limits.sizes.give(self.address, self.size)
        self.exchange, self.size, self.answering = False, 0, False

    def hear(self, now: float) -> None:
        """Note that it has sent something."""
        self.heard = now
        if self.verified:
            self.limits.agents.hear(self)

    def await_turn(self) -> None:
        """A received piece waits for its turn."""
        if not self.due:
            self.due_since = time.monotonic()
        self.due += 1

    def take_turn(self) -> None:
        """A received piece has had its turn: what answers it can only come from now on."""
        now = time.monotonic()
        self.due -= 1
        if not self.due:
            self.delay += now - self.due_since
        self.hear(now)

    def note_waiting(self, size: int) -> None:
        """Note how many bytes of it wait in memory."""
        if size != self.waiting_bytes:
            self.limits.bytes.note(self, size)

    def stop_waiting(self) -> None:
        """Give back its place among those that wait."""
        if self.waits:
            self.waits = False
            self.limits.waiting.give(self.address)

    def refuse(self, reason: str) -> None:
        """Count that something of it was refused, or that it is closed."""
        if self.verified:
            self.limits.closings.add(self.payer, reason)
        else:
            self.limits.refusals.add(self.address, reason)

    def silent(self, now: float) -> bool:
        """Whether nothing comes although something should, or it has been there for too long."""
        if self.due:
            return False
        if now - self.since - self.delay > LONGEST:
            return True
        return not self.answering and now - self.heard > SILENT and not unread(self.descriptor)


class Pool(Quota):
    """Places for connections without a verified certificate."""

    def __init__(self, share: Share) -> None:
        super().__init__(share)
        self.served: dict[Ticket, None] = {}
        self.ready: OrderedDict[str, deque[Ticket]] = OrderedDict()
        """By address: those that wait for a place and have sent something."""

    def crowded(self, address: str) -> bool:
        """Whether more than half of the places are taken, of all or of an address."""
        return self.total > self.share.total // 2 or self.of(address) > self.share.address // 2

    def admit(self, ticket: Ticket) -> bool:
        """Give a connection a place; return whether there was one."""
        if not self.take(ticket.address):
            return False
        ticket.stop_waiting()
        ticket.pool, ticket.since = self, time.monotonic()
        ticket.heard = ticket.since
        self.served[ticket] = None
        ticket.admitted.set_result(True)
        return True

    def free(self, ticket: Ticket) -> None:
        """Take a place back."""
        self.give(ticket.address)
        del self.served[ticket]
        ticket.pool = None

    def fill(self) -> None:
        """Admit who waits, of each address in turn the newest."""
        blocked = 0
        while blocked < len(self.ready) and not self.full:
            address, queue = self.ready.popitem(last=False)
            if self.admit(queue[-1]):
                queue.pop()
                blocked = 0
            else:
                blocked += 1
            if queue:
                self.ready[address] = queue

    def remove(self, ticket: Ticket) -> None:
        """Remove a connection from those that wait here, if it does."""
        if ticket in (queue := self.ready.get(ticket.address, deque())):
            queue.remove(ticket)
            if not queue:
                del self.ready[ticket.address]

    def make_room(self) -> None:
        """Close silent connections for those that wait: of the same address if its own limit is what they wait for."""
        now = time.monotonic()
        silent = sorted((ticket for ticket in self.served if ticket.silent(now)), key=lambda ticket: ticket.heard)
        for address, queue in self.ready.items():
            concerned = [ticket for ticket in silent if self.full or ticket.address == address][: len(queue)]
            for ticket in concerned:
                silent.remove(ticket)
                ticket.refuse("it was silent while others waited")
                ticket.close("it was silent while others waited")


def unread(descriptor: int) -> int:
    """Return how many bytes of a connection have arrived and were not read yet."""
    try:
        (number,) = struct.unpack("i", fcntl.ioctl(descriptor, termios.FIONREAD, bytes(4)))
    except OSError:
        return 0  # it is closed
    return int(number)


class Turns:
    """Work that is due, some of which is done in each round of the event loop: much at once would delay other agents.

    A handshake occupies the processor for milliseconds. Hundreds of them may be due in the same round, in which no
    other connection is served. In turns they get some time of each round: as much as verified agents took, but little
    where these have much to do. (What strangers cost besides, above all reading, makes no turn longer.) Time is the
    processor's: while another program has it, nothing is done. The newest work is done first, and the oldest after it:
    a flood delays hardly anybody who comes later, and whoever it has overtaken is not left waiting for its end. A
    connection has one piece of work from each side here at the most, so nothing is done in the wrong order.

    Work for verified agents is done at once, as long as it is little. What an agent causes beyond (over many
    connections, or in many small pieces) has turns, too: of each agent one after the other, the oldest first.
    """

    def __init__(self) -> None:
        self._due: deque[Callable[[], None]] = deque()
        self._oldest_is_next = False
        self._crowds: OrderedDict[str, deque[Callable[[], None]]] = OrderedDict()
        """By payer: work of verified agents."""
        self._crowd_is_next = False
        self._spent: dict[str, float] = {}
        """By payer: seconds of this round in which work was done at once. A turn comes before they are forgotten."""

    def add(self, work: Callable[[], None], payer: str = "") -> None:
        """Do some work when it is due; ``payer``: of a verified agent."""
        if not self._due and not self._crowds:
            asyncio.get_running_loop().call_soon(self._run)
        if payer:
            self._crowds.setdefault(payer, deque()).append(work)
        else:
            self._due.append(work)

    def allows(self, payer: str) -> bool:
        """Whether work of a verified agent is done at once."""
        return self._spent.get(payer, 0.0) < AT_ONCE and payer not in self._crowds

    def spend(self, payer: str, seconds: float) -> None:
        """Note how long such work took."""
        if not self._spent:
            asyncio.get_running_loop().call_soon(self._spent.clear)  # the first thing in the next round
        self._spent[payer] = self._spent.get(payer, 0.0) + seconds

    def _next(self) -> Callable[[], None]:
        """Remove what is done next: in turns something of a verified agent and of all others."""
        self._crowd_is_next = not self._crowd_is_next
        if not self._crowds or (self._due and not self._crowd_is_next):
            oldest, self._oldest_is_next = self._oldest_is_next, not self._oldest_is_next
            return self._due.popleft() if oldest else self._due.pop()
        payer, queue = self._crowds.popitem(last=False)
        work = queue.popleft()
        if queue:
            self._crowds[payer] = queue
        return work

    def _run(self) -> None:
        now = time.thread_time()
        until = now + min(max(SLICE, sum(self._spent.values())), LONGEST_TURN)
        try:
            while (self._due or self._crowds) and now < until:
                self._next()()
                now = time.thread_time()
        finally:
            if self._due or self._crowds:
                asyncio.get_running_loop().call_soon(self._run)
