"""A connection between an agent and its master, as mitmproxy's layers see it, with less around them.

mitmproxy asks each of its forty addons about every event whether it cares, makes a task of every hook, takes a lock for
every event, and reads through a stream that hands each piece from one task to another. That is more than half of what
a request costs. Here it is known who listens to a hook, a hook is a call, and what came goes to the layers at once.
``mitmdump -s addons/puppet.py`` and ``puppet-inspector proxy`` both have it.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections import deque
from typing import TYPE_CHECKING, Any, cast

from mitmproxy import addonmanager, flow
from mitmproxy.addons import next_layer
from mitmproxy.connection import ConnectionState
from mitmproxy.exceptions import AddonHalt
from mitmproxy.proxy import commands, events, mode_servers, server
from mitmproxy.proxy.layers import http

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Generator

    from mitmproxy.connection import Connection
    from mitmproxy.proxy.layer import CommandGenerator, Layer

    type Calls = Generator[Awaitable[None]]

log = logging.getLogger(__name__)

READ = 2**18
"""Bytes that are taken from a connection at a time: as many as asyncio reads from a socket."""
FULL = 2**16
"""Bytes that wait to be sent from which on no more is read: asyncio's own limit."""
WITHIN = ("request", "responseheaders")
"""Hooks at which an exchange has begun and has not ended. At its ends another one may follow on the same connection
(pipelining), for which the layers on the other side must be done with this one first."""
_next_layer: Any = next_layer
_MITMPROXYS = mode_servers.ProxyConnectionHandler, _next_layer.HttpLayer
_tasks: set[asyncio.Task[None]] = set()
"""Hooks that wait for something: the event loop itself would forget them."""


class Listeners:
    """Which functions of mitmproxy's addons listen to a hook, in the addons' order."""

    def __init__(self, addons: Any) -> None:
        self._addons = addons
        self._known: tuple[Any, ...] = ()
        self._functions: dict[str, tuple[Callable[..., Any], ...]] = {}

    def of(self, name: str) -> tuple[Callable[..., Any], ...]:
        """Those of the addons that are there now: a script that is loaded anew has others."""
        if (now := tuple(self._addons.lookup.values())) != self._known:
            self._known = now
            self._functions.clear()
        found = self._functions.get(name)
        if found is None:
            each = (getattr(addon, name, None) for addon in addonmanager.traverse(self._addons.chain))  # type: ignore[no-untyped-call]
            # A script that imports a module of a hook's name has no hook.
            found = self._functions[name] = tuple(function for function in each if callable(function))
        return found

    def call(self, hook: commands.StartHook) -> Call:
        """Call them, as far as nobody wants to be waited for."""
        return Call(self._called(hook))

    def _called(self, hook: commands.StartHook) -> Calls:
        message, *_ = given = hook.args()
        yield from self._each(hook.name, *given)
        if isinstance(message, flow.Flow):
            yield from self._each("update", [message])
            if message.intercepted:
                yield message.wait_for_resume()  # type: ignore[no-untyped-call]

    def _each(self, name: str, *given: Any) -> Calls:
        for act in self.of(name):
            try:
                waiting = act(*given)
                if waiting is not None and inspect.isawaitable(waiting):
                    yield waiting
            except AddonHalt:
                return
            except Exception:
                # As mitmproxy does. Where a mistake must not let anything through, our addon sees to that itself.
                log.exception("Addon error in %s", name)


class Call:
    """A hook that is being called. Most have nothing to wait for, and are over at once."""

    __slots__ = ("_calls", "waiting")

    def __init__(self, calls: Calls) -> None:
        self._calls = calls
        self.waiting = next(calls, None)

    async def go_on(self) -> None:
        """Wait, and call those that come after."""
        assert self.waiting  # noqa: S101 - there is something to wait for
        try:
            await self.waiting
        except Exception as error:  # noqa: BLE001 - it is for whoever called
            try:
                self.waiting = self._calls.throw(error)
            except StopIteration:
                self.waiting = None
        else:
            self.waiting = next(self._calls, None)


class _HttpLayer(http.HttpLayer):
    """mitmproxy's, with streams of ours."""

    stream: type[_Stream]

    def make_stream(self, stream_id: int) -> CommandGenerator[None]:
        self.streams[stream_id] = stream = self.stream(self.context.fork(), stream_id)
        yield from self.event_to_child(stream, events.Start())


class _Stream(http.HttpStream):
    """An exchange. mitmproxy hands a hook up through all layers, and its completion down again; here one within
    the exchange that has nothing to wait for is over where it began."""

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
    """A connection whose events go straight to those whom they concern."""

    listeners: Listeners
    """Of the master that it belongs to."""

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)  # type: ignore[no-untyped-call]
        self._events: deque[events.Event] = deque()
        self._at_it = False
        self._unsent: dict[Any, list[bytes]] = {}
        self._over = False
        """Whether both ends are gone."""

    async def handle_client(self) -> None:
        """From its beginning to its end."""
        await super().handle_client()
        self._over = True
        # The layers refer to each other: Python would let them go at some time, but does not know that what it sees as
        # small things are a hundred kilobytes, most of them OpenSSL's.
        for each in _around(self.layer):
            vars(each).clear()

    # -- hooks --------------------------------------------------------------------------------------

    async def handle_hook(self, hook: commands.StartHook) -> None:
        """Call whoever listens, and wait for those who want to be waited for."""
        if (call := self.listeners.call(hook)).waiting:
            await self._wait(call)

    def _hook(self, hook: commands.StartHook) -> None:
        call = getattr(hook, "call", None) or self.listeners.call(hook)
        if call.waiting:
            _start(self._go_on(hook, call))
        elif hook.blocking:
            self._events.append(events.HookCompleted(hook))

    async def _go_on(self, hook: commands.StartHook, call: Call) -> None:
        await self._wait(call)
        if hook.blocking:
            self._have(events.HookCompleted(hook))

    async def _wait(self, call: Call) -> None:
        with self.timeout_watchdog.disarm():
            while call.waiting:
                await call.go_on()

    # -- events -------------------------------------------------------------------------------------

    async def server_event(self, event: events.Event) -> None:
        """Let the layers have an event, and do what they ask for."""
        self._have(event)

    def _have(self, event: events.Event) -> bool:
        """Returns whether more waits to be sent now than should."""
        if self._over:
            return False  # somebody has made up his mind about a flow when its agent was gone
        self._events.append(event)
        if self._at_it:
            return False  # a task that was begun just now: whoever is at it comes to this one as well
        self._at_it = True
        try:
            while self._events:
                self.timeout_watchdog.register_activity()  # type: ignore[no-untyped-call]
                for command in self.layer.handle_event(self._events.popleft()):
                    self._do(command)
        except Exception:
            log.exception("a connection of %s failed", self.client.peername)
        finally:
            self._at_it = False
        return self._send()

    def _send(self) -> bool:
        """What the layers gave out bit by bit (a head, then a body) goes in one call, and arrives at once. Returns
        whether more waits to be sent than should."""
        unsent, self._unsent = self._unsent, {}
        full = False
        for writer, data in unsent.items():
            if not writer.is_closing():
                writer.write(data[0] if len(data) == 1 else b"".join(data))
                if isinstance(writer, asyncio.StreamWriter):
                    full |= writer.transport.get_write_buffer_size() > FULL
        return full

    def _do(self, command: commands.Command) -> None:
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
                pass  # it is closed already
            case commands.CloseConnection():
                self._send()
                self.close_connection(command.connection, getattr(command, "half_close", False))
            case commands.Log():
                self.log(command.message, command.level)
            case _:
                raise TypeError(f"mitmproxy asks for {command}")

    # -- reading ------------------------------------------------------------------------------------

    async def handle_connection(self, connection: Connection) -> None:
        """Give the layers what comes, until it ends. The end, of which there are many kinds, is left to mitmproxy."""
        io = self.transports[connection]
        if isinstance(io.reader, asyncio.StreamReader) and isinstance(io.writer, asyncio.StreamWriter):
            io.reader = cast("asyncio.StreamReader", _Taker(self, connection, io.reader, io.writer.transport))
        await super().handle_connection(connection)

    def take(self, connection: Connection, data: bytes) -> bool:
        """Data that came; returns whether what they became is slow to leave."""
        return bool(connection.state & ConnectionState.CAN_READ) and self._have(events.DataReceived(connection, data))


class _Taker:
    """Stands for the reader of a connection: what comes goes to the layers at once, and to be read remains the end."""

    def __init__(
        self, handler: Handler, connection: Connection, reader: asyncio.StreamReader, transport: asyncio.WriteTransport
    ) -> None:
        self._handler = handler
        self._connection = connection
        self._reader: Any = reader
        self._transport: Any = transport

    async def read(self, _number: int) -> bytes:
        """What came before anybody took it, or nothing when no more will come. Raises OSError."""
        if not self._reader._buffer:
            self._reader.feed_data = self._take
        data: bytes = await self._reader.read(READ)
        return data

    def _take(self, data: bytes) -> None:
        if self._handler.take(self._connection, data):
            self._transport.pause_reading()
            _start(self._go_on())

    async def _go_on(self) -> None:
        await self._handler.drain_writers()  # type: ignore[no-untyped-call]
        self._transport.resume_reading()


def _around(layer: Layer) -> set[Layer]:
    """A layer and those around it: mitmproxy's HTTP layer has others for each of its ends."""
    around = set(layer.context.layers)
    for each in list(around):
        if isinstance(each, http.HttpLayer):
            around.update(*(end.context.layers for end in (*each.connections.values(), *each.streams.values())))
    return around


def _start(coroutine: Coroutine[Any, Any, None]) -> None:
    """Most end before they had to wait for anything."""
    task = asyncio.Task(coroutine, loop=asyncio.get_running_loop(), eager_start=True)
    if not task.done():
        _tasks.add(task)
        task.add_done_callback(_tasks.discard)


def install(addons: Any) -> None:
    """Let the connections of a master with these addons be handled so from now on."""
    listeners = {"listeners": Listeners(addons)}
    stream = type("Stream", (_Stream,), listeners)
    _next_layer.HttpLayer = type("HttpLayer", (_HttpLayer,), {"stream": stream})
    mode_servers.ProxyConnectionHandler = type("Handler", (Handler,), listeners)  # type: ignore[assignment,misc]


def uninstall() -> None:
    """Give mitmproxy's back."""
    mode_servers.ProxyConnectionHandler, _next_layer.HttpLayer = _MITMPROXYS  # type: ignore[misc]
