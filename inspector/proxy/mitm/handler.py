"""A faster connection handler for mitmproxy's layers.

For every event mitmproxy asks each of its forty addons for a hook, creates a task for every hook, takes a lock, and
reads through a stream that passes the data from one task to another. That is more than half of the cost of a request.
Here the functions of each hook are looked up once, a hook is a plain call, and data goes to the layers directly.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import inspect
import logging
import time
from collections import deque
from typing import TYPE_CHECKING, Any, ClassVar, cast
from weakref import WeakValueDictionary

from mitmproxy import addonmanager, flow
from mitmproxy.addons import next_layer
from mitmproxy.connection import ConnectionState
from mitmproxy.exceptions import AddonHalt
from mitmproxy.proxy import commands, events, mode_servers, server
from mitmproxy.proxy.layers import http
from OpenSSL import SSL

from inspector.proxy.faults.injection import Pace, end_with_reset
from inspector.proxy.limits import BODY_TIME, FULL, HANDSHAKE, HEAD_TIME, PIECE, READ
from inspector.proxy.mitm import fence

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator

    from mitmproxy.connection import Connection
    from mitmproxy.proxy.layer import CommandGenerator, Layer

    from inspector.proxy.limits.admission import Admission
    from inspector.proxy.limits.pool import Ticket

    type Calls = Generator[Awaitable[None]]

log = logging.getLogger(__name__)

STALLED = {"head": HEAD_TIME, "body": BODY_TIME}
CHECK = 5.0
"""Seconds between checks of these."""
LOOK = 0.05
"""Seconds between looks whether an agent's body can be passed on."""
WITHIN = ("request", "responseheaders")
"""Hooks in the middle of an exchange. At its ends another exchange may follow on the same connection (pipelining), and
the layers on the other side must first finish this one."""
_next_layer: Any = next_layer
_http: Any = http
_ORIGINALS = mode_servers.ProxyConnectionHandler, _next_layer.HttpLayer, _http.Http1Client
_tasks: set[asyncio.Task[None]] = set()
"""Tasks of hooks that wait; the event loop itself keeps only weak references to tasks."""


class Listeners:
    """The functions of mitmproxy's addons for a hook, in the addons' order."""

    def __init__(self, addons: Any) -> None:
        self._addons = addons
        self._loaded: tuple[Any, ...] = ()
        self._functions: dict[str, tuple[Callable[..., Any], ...]] = {}

    def of(self, name: str) -> tuple[Callable[..., Any], ...]:
        """Return the functions of the current addons for a hook: a script that is reloaded has new ones."""
        if (loaded := tuple(self._addons.lookup.values())) != self._loaded:
            self._loaded = loaded
            self._functions.clear()
        functions = self._functions.get(name)
        if functions is None:
            attributes = (getattr(addon, name, None) for addon in addonmanager.traverse(self._addons.chain))  # type: ignore[no-untyped-call]
            # A script may import a module with the name of a hook: that is not a function.
            functions = self._functions[name] = tuple(function for function in attributes if callable(function))
        return functions

    def call(self, hook: commands.StartHook) -> Call:
        """Call a hook's functions, up to the first one that has to wait."""
        return Call(self._calls(hook))

    def _calls(self, hook: commands.StartHook) -> Calls:
        message, *_ = arguments = hook.args()
        yield from self._call_all(hook.name, *arguments)
        if isinstance(message, flow.Flow):
            yield from self._call_all("update", [message])
            if message.intercepted:
                yield message.wait_for_resume()  # type: ignore[no-untyped-call]

    def _call_all(self, name: str, *arguments: Any) -> Calls:
        for function in self.of(name):
            try:
                result = function(*arguments)
                if result is not None and inspect.isawaitable(result):
                    yield result
            except AddonHalt:
                return
            except Exception:
                # As in mitmproxy. Where an error must not let anything through, our addon handles that itself.
                log.exception("Addon error in %s", name)


class Call:
    """A call of a hook. Most do not wait for anything, and are complete at once."""

    __slots__ = ("_calls", "waiting")

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self.waiting = next(calls, None)

    async def resume(self) -> None:
        """Wait for the current function, and call the next ones."""
        assert self.waiting  # noqa: S101 - there is something to wait for
        try:
            await self.waiting
        except Exception as error:  # noqa: BLE001 - the generator handles it
            try:
                self.waiting = self._calls.throw(error)
            except StopIteration:
                self.waiting = None
        else:
            self.waiting = next(self._calls, None)


class _HttpLayer(http.HttpLayer):
    """mitmproxy's HTTP layer with our streams, and with limits."""

    stream: type[_Stream]

    def _handle_event(self, event: events.Event) -> CommandGenerator[None]:
        if isinstance(event, events.Start):
            server = fence.FencedServer(self.context.fork())
            server.streams = self.streams
            self.connections.setdefault(self.context.client, server)
        yield from super()._handle_event(event)

    def register_connection(self, command: http.RegisterHttpConnection) -> CommandGenerator[None]:
        # For mitmproxy every check of ours that fails is an "unspecified certificate verification error".
        if command.err and command.connection.error:
            command.err = command.connection.error
        yield from super().register_connection(command)

    def make_stream(self, stream_id: int) -> CommandGenerator[None]:
        self.streams[stream_id] = stream = self.stream(self.context.fork(), stream_id)
        yield from self.event_to_child(stream, events.Start())


class _Stream(http.HttpStream):
    """An exchange. mitmproxy passes a hook up through all layers, and its completion down again. Here a hook within the
    exchange that does not wait is completed in place."""

    listeners: Listeners

    def handle_event(self, event: events.Event) -> CommandGenerator[None]:
        for command in super().handle_event(event):
            if isinstance(command, commands.StartHook) and command.name in WITHIN:
                call = self.listeners.call(command)
                if not call.waiting:
                    if command.blocking:
                        yield from self.handle_event(events.HookCompleted(command))
                    continue
                command.call = call  # type: ignore[attr-defined]
            yield command


class Handler(mode_servers.ProxyConnectionHandler):
    """A connection whose events go directly to the layers and hooks."""

    open: ClassVar[WeakValueDictionary[str, Handler]] = WeakValueDictionary()
    """All of them, by the identifier of the agent's connection."""

    listeners: Listeners
    """The hook functions of the mitmproxy master that the connection belongs to."""
    admission: Admission

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)  # type: ignore[no-untyped-call]
        self._events: deque[events.Event] = deque()
        self._processing = False
        self._unsent: dict[Any, list[bytes]] = {}
        self._closed = False
        """Whether both ends are disconnected."""
        self.ticket: Ticket | None = None
        """As long as the connection has limits."""
        self._opened = 0.0
        """When it was admitted."""
        self._paused = False
        """Whether nothing is read from the agent, because too much is unsent."""
        self.pace: Pace | None = None
        """What slows the master's answer down on purpose."""
        self.open[self.client.id] = self

    async def handle_client(self) -> None:
        """Handle the connection from its beginning to its end, once it is admitted."""
        writer = self.transports[self.client].writer
        if not isinstance(writer, asyncio.StreamWriter):
            await self._handle()  # no TCP: the addon refuses it
            return
        transport = cast("asyncio.Transport", writer.transport)
        host, descriptor = (self.client.peername or ("",))[0], writer.get_extra_info("socket").fileno()
        ticket = self.ticket = self.admission.enter(self.client.id, host, descriptor, self._close)
        try:
            if not ticket.admitted.done():
                transport.pause_reading()
            if await self.admission.wait(ticket):
                transport.resume_reading()
                # Many of these may be read before it is the turn of the first one.
                vars(transport)["max_size"] = PIECE
                await self._handle()
            else:
                transport.abort()
        finally:
            self.admission.leave(ticket)
            self._free()

    async def _handle(self) -> None:
        self._opened = time.monotonic()
        self._check_later()
        await super().handle_client()
        self._closed = True
        self._check.cancel()

    def _free(self) -> None:
        """Remove what refers to each other. Python's garbage collector would free it late, as it does not know that
        these small objects use a hundred kilobytes, most of it in OpenSSL."""
        self.ticket = None
        self.timeout_watchdog.callback = _nothing
        for layer in _related(self.layer):
            vars(layer).clear()

    # -- deadlines ----------------------------------------------------------------------------------

    def _check_later(self) -> None:
        self._check = asyncio.get_running_loop().call_later(CHECK, self._check_progress)

    def _check_progress(self) -> None:
        """Close the connection of an agent that does not finish what it began to send."""
        self._check_later()
        now = time.monotonic()
        served = fence.FencedServer.open.get(self.client.id)
        stalled = served.stalled(now) if served and not self._paused else None
        # What has arrived and is due is our delay.
        if self.ticket is not None and self.ticket.due:
            self._opened = max(self._opened, now - HANDSHAKE / 2)
        if (stalled and stalled[1] > STALLED[stalled[0]]) or (
            not self.client.tls_established and now - self._opened > HANDSHAKE
        ):
            self._close("the agent did not finish what it began to send")

    def _close(self, reason: str) -> None:
        """Close the connection to the agent."""
        agent = self.transports.get(self.client)
        if agent is not None and agent.handler is not None:
            agent.handler.cancel(reason)

    def pause(self, connection: Connection, *, paused: bool) -> None:
        """Note that reading from a connection has paused, or continues."""
        if connection is self.client:
            self._paused = paused
            if served := fence.FencedServer.open.get(self.client.id):
                served.resume()

    # -- hooks --------------------------------------------------------------------------------------

    async def handle_hook(self, hook: commands.StartHook) -> None:
        """Call a hook's functions, and wait for those that wait."""
        if (call := self.listeners.call(hook)).waiting:
            await self._wait(call)

    def _hook(self, hook: commands.StartHook) -> None:
        call = getattr(hook, "call", None) or self.listeners.call(hook)
        if call.waiting:
            _start(self._complete(hook, call))
        elif hook.blocking:
            self._events.append(events.HookCompleted(hook))

    async def _complete(self, hook: commands.StartHook, call: Call) -> None:
        await self._wait(call)
        if hook.blocking:
            self._dispatch(events.HookCompleted(hook))

    async def _wait(self, call: Call) -> None:
        with self.timeout_watchdog.disarm():
            while call.waiting:
                await call.resume()

    # -- events -------------------------------------------------------------------------------------

    async def server_event(self, event: events.Event) -> None:
        """Pass an event to the layers, and execute their commands."""
        self._dispatch(event)

    def _dispatch(self, event: events.Event) -> bool:
        """Pass an event to the layers, and execute their commands; return whether too many bytes are unsent."""
        if self._closed:
            return False  # a flow was resumed after its agent had disconnected
        self._events.append(event)
        if self._processing:
            return False  # called from within the loop below, which will process this event too
        self._processing = True
        try:
            while self._events:
                self.timeout_watchdog.register_activity()  # type: ignore[no-untyped-call]
                for command in self.layer.handle_event(self._events.popleft()):
                    self._execute(command)
        except Exception:
            log.exception("a connection from %s failed", self.client.peername)
        finally:
            self._processing = False
        return self._send()

    def _send(self) -> bool:
        """Send in one call what the layers produced in pieces (a head, then a body).

        Return whether too many bytes are unsent.
        """
        unsent, self._unsent = self._unsent, {}
        full = False
        for writer, data in unsent.items():
            if not writer.is_closing():
                writer.write(data[0] if len(data) == 1 else b"".join(data))
                if isinstance(writer, asyncio.StreamWriter):
                    full |= writer.transport.get_write_buffer_size() > FULL
        return full

    def _execute(self, command: commands.Command) -> None:
        match command:
            case commands.SendData() if command.connection in self.transports:
                writer = self.transports[command.connection].writer
                if writer is not None:
                    self._unsent.setdefault(writer, []).append(command.data)
            case commands.StartHook():
                self._hook(command)
            case commands.OpenConnection():
                opening = asyncio.create_task(self.open_connection(command))
                self.transports[command.connection] = server.ConnectionIO(handler=opening)
            case commands.RequestWakeup():
                self.wakeup_timer.add(asyncio.create_task(self.wakeup(command)))
            case commands.ConnectionCommand() if command.connection not in self.transports:
                pass  # it is already closed
            case commands.CloseConnection():
                self._send()
                self.close_connection(command.connection, getattr(command, "half_close", False))
            case commands.Log():
                self.log(command.message, command.level)
            case _:
                raise TypeError(f"unknown command of mitmproxy: {command}")

    # -- reading ------------------------------------------------------------------------------------

    async def handle_connection(self, connection: Connection) -> None:
        """Pass data to the layers until the connection ends. The end has many forms, and is left to mitmproxy."""
        io = self.transports[connection]
        if not isinstance(io.reader, asyncio.StreamReader) or not isinstance(io.writer, asyncio.StreamWriter):
            await super().handle_connection(connection)
            return
        reader = _DirectReader(self, connection, io.reader, io.writer.transport)
        io.reader = cast("asyncio.StreamReader", reader)
        try:
            await super().handle_connection(connection)
        finally:
            reader.detach()

    def receive(self, connection: Connection, data: bytes) -> bool:
        """Pass received data to the layers; return whether no more should be read: too many bytes are unsent, or
        wait."""
        # In one piece from the master, as files are large. What an agent sends is passed on in small ones: OpenSSL's
        # buffers stay as large as the largest piece as long as the connection lives.
        size = PIECE if connection is self.client else READ
        full = False
        if self.pace is not None and connection is not self.client:
            if self.pace.add(data):
                self.pace.later(functools.partial(self._hurry_on, self.pace, connection))
            return True
        if self.ticket is not None:
            if connection is self.client:
                self.ticket.heard = time.monotonic()
            if self.ticket.verified:
                self.ticket = None
        for at in range(0, len(data), size):
            if not connection.state & ConnectionState.CAN_READ:
                return False
            full |= self._dispatch(events.DataReceived(connection, data[at : at + size]))
        return full or self.waits(connection)

    def _hurry_on(self, pace: Pace, connection: Connection) -> None:
        """Pass on the next piece of an answer that is slowed down."""
        if connection.state & ConnectionState.CAN_READ:
            self._dispatch(events.DataReceived(connection, pace.piece()))
            if pace.pending:
                pace.later(functools.partial(self._hurry_on, pace, connection))
        else:
            pace.clear()

    def send_rest(self, connection: Connection, tls: SSL.Connection) -> None:
        """Send what OpenSSL still has to send: mitmproxy closes a connection whose handshake failed without that."""
        writer = io.writer if (io := self.transports.get(connection)) else None
        with contextlib.suppress(SSL.Error):  # nothing is left
            while writer is not None:
                self._unsent.setdefault(writer, []).append(tls.bio_read(READ))

    def break_off(self, *, reset: bool) -> None:
        """Close the connection to the agent once everything is sent, without TLS's farewell; or reset it."""
        io = self.transports.get(self.client)
        if io is None or not isinstance(io.writer, asyncio.StreamWriter):
            return
        if reset:
            end_with_reset(io.writer.get_extra_info("socket"))
            cast("asyncio.Transport", io.writer.transport).abort()
        else:
            io.writer.transport.close()

    def waits(self, connection: Connection) -> bool:
        """Whether what an agent sends only waits in memory, for example for the connection to the master; or whether
        what the master sends is slowed down."""
        if connection is not self.client:
            return self.pace is not None and self.pace.pending
        served = fence.FencedServer.open.get(self.client.id)
        return served is not None and served.waits()


class _DirectReader:
    """Replaces the reader of a connection: data goes to the layers directly, and only the end is left to be read."""

    def __init__(
        self, handler: Handler, connection: Connection, reader: asyncio.StreamReader, transport: asyncio.WriteTransport
    ) -> None:
        self._handler = handler
        self._connection = connection
        self._reader: Any = reader
        self._transport: Any = transport

    async def read(self, _number: int) -> bytes:
        """Return data that arrived earlier, or nothing at the end of the connection. Raises OSError."""
        if not self._reader._buffer:
            self._reader.feed_data = self._receive
        data: bytes = await self._reader.read(READ)
        return data

    def detach(self) -> None:
        """Remove itself from the reader that it replaces: they refer to each other."""
        vars(self._reader).pop("feed_data", None)

    def _receive(self, data: bytes) -> None:
        ticket = self._handler.ticket
        if ticket is None:
            self._pass_on(data)
        else:
            ticket.due += 1
            self._transport.pause_reading()
            ticket.limits.turns.add(functools.partial(self._take_turn, ticket, data))

    def _take_turn(self, ticket: Ticket, data: bytes) -> None:
        """Pass on what waited for its turn."""
        ticket.due -= 1
        self._transport.resume_reading()
        self._pass_on(data)

    def _pass_on(self, data: bytes) -> None:
        if self._handler.receive(self._connection, data):
            self._transport.pause_reading()
            self._handler.pause(self._connection, paused=True)
            _start(self._resume_reading())

    async def _resume_reading(self) -> None:
        await self._handler.drain_writers()  # type: ignore[no-untyped-call]
        while self._handler.waits(self._connection) and not self._transport.is_closing():
            await asyncio.sleep(LOOK)
        self._handler.pause(self._connection, paused=False)
        self._transport.resume_reading()


def close(agent: str, *, reset: bool = False) -> None:
    """Break off an agent's connection when what is being done is sent; with ``reset`` at once."""
    if fenced := fence.FencedServer.open.get(agent):
        fenced.cut_off = True
    if served := Handler.open.get(agent):
        asyncio.get_running_loop().call_soon(functools.partial(served.break_off, reset=reset))


def send_alert(agent: str, connection: Connection, tls: SSL.Connection | None) -> None:
    """Send the alert of a handshake that failed, on an agent's connection or on the one to the master made for it."""
    if tls is not None and (served := Handler.open.get(agent)):
        served.send_rest(connection, tls)


def slow_down(agent: str, rate: int) -> None:
    """Slow down what the master answers an agent, to so many bytes a second; 0: no more."""
    if served := Handler.open.get(agent):
        served.pace = Pace(rate) if rate else None


async def _nothing() -> None:
    """Do nothing when a connection that has ended is idle for too long."""


def _related(layer: Layer) -> set[Layer]:
    """Return a layer and its related layers: mitmproxy's HTTP layer has others for its connections and streams."""
    related = set(layer.context.layers)
    for parent in list(related):
        if isinstance(parent, http.HttpLayer):
            children = (*parent.connections.values(), *parent.streams.values())
            related.update(*(child.context.layers for child in children))
    return related


def _start(coroutine: Coroutine[Any, Any, None]) -> None:
    """Run a coroutine as a task, at once: most end without waiting."""
    task = asyncio.Task(coroutine, loop=asyncio.get_running_loop(), eager_start=True)
    if not task.done():
        _tasks.add(task)
        task.add_done_callback(_tasks.discard)


def install(addons: Any, admission: Admission) -> None:
    """Make mitmproxy use this handler for the new connections that are admitted, with the hooks of these addons."""
    listeners = {"listeners": Listeners(addons)}
    stream = type("Stream", (_Stream,), listeners)
    _next_layer.HttpLayer = type("HttpLayer", (_HttpLayer,), {"stream": stream})
    _http.Http1Client = fence.FencedClient
    mode_servers.ProxyConnectionHandler = type("Handler", (Handler,), {**listeners, "admission": admission})  # type: ignore[assignment,misc]


def uninstall() -> None:
    """Restore mitmproxy's own handler."""
    mode_servers.ProxyConnectionHandler, _next_layer.HttpLayer, _http.Http1Client = _ORIGINALS  # type: ignore[misc]
