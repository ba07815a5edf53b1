"""An agent's connection as mitmproxy handles it, with those to the master that are made for it.

mitmproxy's own handler stays as it is. It reads a connection through an object of its ``transports``, and this module
puts another one there, before anything is read: it reads in turns what comes without a verified certificate, and
nothing while more would only wait in memory.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import time
from typing import TYPE_CHECKING, Any, ClassVar, cast
from weakref import WeakValueDictionary

from mitmproxy import ctx as _untyped
from mitmproxy.connection import ConnectionState, Server
from mitmproxy.proxy import events
from OpenSSL import SSL

from inspector.proxy.engine.framing import Refused
from inspector.proxy.faults.injection import Pace, end_with_reset
from inspector.proxy.limits import BODY_TIME, BUSY, FULL, HANDSHAKE, HEAD_TIME, IDLE, PIECE, READ
from inspector.proxy.limits.admission import PATIENCE
from inspector.proxy.limits.agents import RESTING
from inspector.proxy.limits.waiting_bytes import limit_system, untaken
from inspector.proxy.mitm.fence import Clear, Exchange, FencedAgent, FencedMaster

if TYPE_CHECKING:
    from collections.abc import Awaitable, Coroutine

    from mitmproxy import http
    from mitmproxy.connection import Client, Connection
    from mitmproxy.proxy.server_hooks import ServerConnectionHookData

    from inspector.proxy.limits.admission import Admission

ctx: Any = _untyped
"""mitmproxy's context; its addon manager has no type annotations."""

REFUSED = "this proxy serves Puppet agents only"
STALLED = {"head": HEAD_TIME, "body": BODY_TIME}
CHECK = 5.0
"""Seconds between checks of these."""
LOOK = 0.05
"""Seconds between looks whether there is room for something."""
TURN = 0.004
"""Seconds of work after which a peer's next bytes wait for a turn: one handshake."""
LEAST = 512
"""Bytes that are read at a time at least."""
log = logging.getLogger(__name__)
_tasks: set[asyncio.Task[None]] = set()
"""Tasks that wait; the event loop itself keeps only weak references to tasks."""


class Link:
    """An agent's connection, and those to the master."""

    __slots__ = (
        "__weakref__", "_admission", "_client",
        "agent", "clear", "exchange", "handler", "held", "left", "masters", "pace", "paused", "ticket", "turns",
    )  # fmt: skip
    open: ClassVar[dict[str, Link]] = {}
    """All of them, by the identifier of the agent's connection."""

    exchange: Exchange
    clear: Clear

    def __init__(self, handler: Any, client: Client, admission: Admission) -> None:
        self.handler = handler
        """mitmproxy's."""
        self._client = client
        self._admission = admission
        transport = self.transport(client)
        host, descriptor = (client.peername or ("",))[0], transport.get_extra_info("socket").fileno()
        self.ticket = admission.enter(client.id, host, descriptor, self.close)
        self.turns = admission.turns
        self.agent: FencedAgent | None = None
        self.masters: dict[str, FencedMaster] = {}
        """The connections to the master, by mitmproxy's identifier."""
        self.left = False
        """Whether the master has closed one."""
        self.held = self.paused = False
        """Whether the request waits for room, and whether nothing is read from the agent."""
        self.pace: Pace | None = None
        """What slows the master's answer down on purpose."""

    # -- the beginning and the end ------------------------------------------------------------------

    async def admit(self) -> None:
        """Wait until the connection is admitted, or refuse it."""
        self._client.error = REFUSED  # until then, whatever fails
        transport = self.transport(self._client)
        if not self.ticket.admitted.done():
            transport.pause_reading()
        if not await self._admission.wait(self.ticket) or transport.is_closing():  # it has left meanwhile
            transport.abort()
            return
        transport.resume_reading()
        self.exchange, self.clear = Exchange(self.ticket), Clear()
        self.watch(self._client)
        self._client.error = None

    def watch(self, connection: Connection) -> None:
        """Read a connection from now on."""
        io, transport = self.handler.transports[connection], self.transport(connection)
        limit_system(transport.get_extra_info("socket"))
        # asyncio reads four times what it may hold, at a time.
        transport.max_size = PIECE  # type: ignore[attr-defined]
        io.reader = _Reader(self, connection, io.reader)

    def leave(self) -> None:
        """The agent's connection has ended."""
        self._admission.leave(self.ticket)
        if self.agent is not None:
            self.agent.close()
        # What refers to each other is freed late, and there may be thousands.
        self.ticket.close = _nothing
        self.let_go()

    def leave_master(self, connection: Server) -> None:
        """A connection to the master has ended."""
        self.left = True
        if (master := self.masters.pop(connection.id, None)) is not None:
            master.close()

    def let_go(self) -> None:
        """Let what mitmproxy has for its connections be freed, once all of them have ended."""
        if not self.handler.transports:
            self.handler.layer.context.layers.clear()
            self.handler.timeout_watchdog.callback = None

    def transport(self, connection: Connection) -> asyncio.Transport:
        """Return what a connection is sent through. Raises LookupError if it is closed."""
        return cast("asyncio.Transport", self.handler.transports[connection].writer.transport)

    def close(self, _reason: str = "") -> None:
        """Close the connection to the agent at once."""
        with contextlib.suppress(LookupError):
            self.transport(self._client).abort()
            if (handling := self.handler.transports[self._client].handler) is not None:
                handling.cancel()

    def check(self, now: float) -> None:
        """Close the connection of an agent that does not finish what it began to send."""
        ticket = self.ticket
        if not ticket.admitted.done():
            return
        stalled = self.agent.stalled(now) if self.agent is not None and not self.paused else None
        if (stalled and stalled[1] > STALLED[stalled[0]]) or (
            not self._client.tls_established and not ticket.due and now - ticket.since - ticket.delay > HANDSHAKE
        ):
            self.close()
        elif self._idle(now):
            self._part()

    def _idle(self, now: float) -> bool:
        """Whether the connection ends as the master's has, or would; not while its agent might still ask."""
        agent = self.agent
        if agent is None or agent.over or not self._client.tls_established or len(self.handler.transports) != 1:
            return False
        if self.exchange.under_way or agent.waiting or agent.stalled(now):
            return False
        return now - agent.since > (RESTING if self.left else IDLE)

    def _part(self) -> None:
        """Close the connection to the agent in order."""
        if self.agent is not None:
            with contextlib.suppress(SSL.Error):
                self.agent.shutdown()
            self.send_rest(self._client, cast("SSL.Connection", self.agent))
        self._finish()

    def count_unsent(self) -> None:
        """Count what waits until the agent takes it against its share of what may wait in memory."""
        with contextlib.suppress(LookupError):
            self.ticket.note_waiting(untaken(self.transport(self._client).get_write_buffer_size()))

    # -- TLS ----------------------------------------------------------------------------------------

    def fence_agent(self, tls: SSL.Connection) -> SSL.Connection:
        """Return the TLS connection with the agent as mitmproxy may read it."""
        self.agent = FencedAgent(tls, self.exchange)
        return cast("SSL.Connection", self.agent)

    def fence_master(self, tls: SSL.Connection, connection: Connection) -> SSL.Connection:
        """Return a TLS connection to the master as mitmproxy may read it."""
        master = self.masters[connection.id] = FencedMaster(tls, self.exchange)
        return cast("SSL.Connection", master)

    def send_rest(self, connection: Connection, tls: SSL.Connection | None) -> None:
        """Send what OpenSSL still has to send: mitmproxy closes a connection whose handshake failed without that, and
        the peer would not get the alert."""
        with contextlib.suppress(SSL.Error, LookupError):  # nothing is left; it is closed
            while tls is not None:
                self.transport(connection).write(tls.bio_read(READ))

    # -- exchanges ----------------------------------------------------------------------------------

    async def room(self) -> bool:
        """Wait until there is room for the exchange; return whether there is."""
        until, self.held = time.monotonic() + PATIENCE, True
        try:
            while self._client.id in self.open:
                if self.ticket.begin():
                    return True
                if time.monotonic() > until:
                    self.ticket.refuse(BUSY)
                    return False
                await asyncio.sleep(LOOK)
        finally:
            self.held = False
        return False

    def end(self) -> None:
        """The exchange is over: the next request is read."""
        self.exchange.under_way, self.pace = False, None
        self.ticket.end()
        if self.agent is not None:
            self.agent.since = time.monotonic()
            if self.agent.waiting:
                asyncio.get_running_loop().call_soon(self._read_on)

    def _read_on(self) -> None:
        _start(self.handler.server_event(events.DataReceived(self._client, b"")))

    def answer(self, data: bytes) -> None:
        """Answer in mitmproxy's place, for the last time."""
        if self.agent is not None:
            self.agent.answer(data)
            self.send_rest(self._client, cast("SSL.Connection", self.agent))

    def cut_off(self, pieces: int) -> None:
        """Close the connection to the agent after so many more pieces, which are about to be sent."""
        if self.agent is not None:
            self.agent.left = pieces
        asyncio.get_running_loop().call_soon(self._finish)

    def _finish(self) -> None:
        with contextlib.suppress(LookupError):
            self.transport(self._client).close()

    def reset(self) -> None:
        """Reset the connection to the agent."""
        with contextlib.suppress(LookupError):
            transport = self.transport(self._client)
            end_with_reset(transport.get_extra_info("socket"))
            asyncio.get_running_loop().call_soon(transport.abort)

    # -- reading ------------------------------------------------------------------------------------

    def waits(self, connection: Connection) -> bool:
        """Whether what an agent sends would only wait in memory, for example for the connection to the master."""
        if connection is not self._client or self.agent is None:
            return False
        taken = self.exchange.taken
        return self.held or (taken is not None and self.agent.passed - taken > FULL)

    def pause(self, connection: Connection, *, paused: bool) -> None:
        """Reading from a connection pauses, or continues."""
        if connection is self._client:
            self.paused = paused
            if self.agent is not None:
                self.agent.since = time.monotonic()

    def readable(self, connection: Connection, data: bytes) -> bytes:
        """Return what mitmproxy may read of what has arrived. Raises Refused."""
        if connection is not self._client:
            return data
        self.ticket.heard = time.monotonic()
        return data if self.clear.over else self.clear.read(data)


class Links:
    """The addon that makes them, and ends them: whatever becomes of ours, an exchange that is over is over."""

    def __init__(self) -> None:
        self._admission: Admission | None = None
        self._leaving: WeakValueDictionary[str, Link] = WeakValueDictionary()
        """Those of agents that have left, by the identifier of the agent's connection, while others are open."""

    def begin(self, admission: Admission) -> None:
        """Begin to admit agents."""
        self._admission = admission
        self._check()

    def _check(self) -> None:
        now = time.monotonic()
        for link in list(Link.open.values()):
            link.check(now)
        asyncio.get_running_loop().call_later(CHECK, self._check)

    def client_connected(self, client: Client) -> Awaitable[None] | None:
        """Let a connection wait until it is admitted. A failure here must not serve anybody."""
        if client.error or self._admission is None:
            return None
        try:
            handler = ctx.master.addons.get("proxyserver").connections[client.id]
            link = Link.open[client.id] = Link(handler, client, self._admission)
            return link.admit()
        except Exception as error:  # noqa: BLE001
            log.warning("puppet-inspector could not admit a connection: %r", error)
            client.error = REFUSED
            return None

    def client_disconnected(self, client: Client) -> None:
        """Give back what a connection had."""
        if link := Link.open.pop(client.id, None):
            link.leave()
            self._leaving[client.id] = link

    def server_connected(self, data: ServerConnectionHookData) -> None:
        """Read a connection to the master as the agent's."""
        if link := Link.open.get(data.client.id):
            link.watch(data.server)

    def server_disconnected(self, data: ServerConnectionHookData) -> None:
        """Give back what a connection to the master had."""
        if link := Link.open.get(data.client.id) or self._leaving.get(data.client.id):
            link.leave_master(data.server)
            if data.client.id in self._leaving:
                link.let_go()

    def response(self, flow: http.HTTPFlow) -> None:
        """An exchange is over."""
        if flow.live and (link := Link.open.get(flow.client_conn.id)):
            link.end()

    error = response


class _Reader:
    """What mitmproxy reads a connection through: it gets only its end, everything before that is handled in between."""

    __slots__ = ("_connection", "_link", "_reader", "_size", "_slow")

    def __init__(self, link: Link, connection: Connection, reader: asyncio.StreamReader) -> None:
        self._link = link
        self._connection = connection
        self._reader = reader
        self._size = PIECE
        """Bytes that are read at a time: fewer of a peer whose bytes take long to handle."""
        self._slow = False
        """Whether the last of them took longer than a turn."""

    async def read(self, _size: int) -> bytes:
        """Let mitmproxy handle what arrives, and return at the end of the connection. Raises OSError."""
        while True:
            if self._link.waits(self._connection):
                await self._wait()
            data = await self._reader.read(self._size)
            if not data:
                return data
            try:
                data = self._link.readable(self._connection, data)
            except Refused:
                return b""
            if data:
                await self._pass_on(data)
                self._link.count_unsent()
                await self._link.handler.drain_writers()
                self._link.count_unsent()

    async def _wait(self) -> None:
        """Wait until there is room."""
        self._link.pause(self._connection, paused=True)
        while self._link.waits(self._connection) and not self._reader.at_eof():
            await asyncio.sleep(LOOK)
        self._link.pause(self._connection, paused=False)

    async def _pass_on(self, data: bytes) -> None:
        pace = self._link.pace if isinstance(self._connection, Server) else None
        if pace is not None:
            await self._slow_down(data, pace)
        elif self._slow or not self._link.ticket.verified:
            await self._in_turn(data)
        else:
            await self._handle(data)

    async def _slow_down(self, data: bytes, pace: Pace) -> None:
        pace.add(data)
        while pace.pending:
            due: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            pace.later(functools.partial(_complete, due))
            await due
            await self._handle(pace.piece())

    async def _in_turn(self, data: bytes) -> None:
        """Handle it when it is its turn, and within it."""
        done: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        ticket = self._link.ticket
        ticket.await_turn()

        def work() -> None:
            if not done.done():  # as it is when the connection was closed meanwhile
                _start(self._handle(data))
                _complete(done)
            ticket.take_turn()

        self._link.turns.add(work, ticket.payer if ticket.verified else "")
        await done

    async def _handle(self, data: bytes) -> None:
        if not self._connection.state & ConnectionState.CAN_READ:
            return
        began = time.monotonic()
        await self._link.handler.server_event(events.DataReceived(self._connection, data))
        self._slow = time.monotonic() - began > TURN
        self._size = max(self._size // 2, LEAST) if self._slow else min(self._size * 2, PIECE)


def _nothing(_reason: str) -> None:
    """Do not close what is closed."""


def _complete(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)


def _start(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine as a task, at once: most end without waiting."""
    task = asyncio.Task(coroutine, loop=asyncio.get_running_loop(), eager_start=True)
    if not task.done():
        _tasks.add(task)
        task.add_done_callback(_tasks.discard)
