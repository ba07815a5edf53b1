"""`puppet-inspector proxy`: the addon in a mitmproxy of our own, which has only the parts that a Puppet proxy needs.

mitmproxy's addon manager asks forty addons about every event, which is a third of what a request costs; here the four
that matter are called directly. What goes with that is mitmproxy's interception, its scripts and its user interfaces
(``mitmdump -s addons/puppet.py`` has them). Its TLS addon is not there either: both legs have our own contexts, and
nothing makes or writes a CA key.
"""

from __future__ import annotations

import asyncio
import errno
import functools
import gc
import json
import logging
import signal
import sys
from collections import deque
from typing import TYPE_CHECKING, Any, cast

from mitmproxy import master, options
from mitmproxy.addons import block, disable_h2c, next_layer, proxyserver
from mitmproxy.proxy import commands, events, layers, mode_specs, server

from inspector import options as given_options
from inspector.console import Console
from inspector.errors import InspectorError
from inspector.live import REFUSED, PuppetInspector
from inspector.workers import LISTENS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mitmproxy.connection import Connection

log = logging.getLogger(__name__)

READ = 2**18
"""Bytes that are taken from a connection at a time: as many as asyncio reads from a socket."""

_HOOKS = (
    "client_connected", "client_disconnected", "server_connect", "server_disconnected", "next_layer",
    "tls_start_client", "tls_failed_client", "tls_start_server", "tls_failed_server",
    "requestheaders", "request", "responseheaders", "response", "error",
)  # fmt: skip


class _Reader:
    """Gives mitmproxy all that came at once, where it asks for 64 KiB: a large body takes a quarter of the steps."""

    def __init__(self, reader: Any) -> None:
        self._reader = reader

    async def read(self, _number: int) -> bytes:
        data: bytes = await self._reader.read(READ)
        return data


class _Handler(server.LiveConnectionHandler):
    """A connection whose events go straight to those whom they concern.

    mitmproxy makes a task of every hook and takes a lock for every event. Here a hook is a call, and its completion the
    next event: what happens on a connection happens one after the other by itself.
    """

    hooks: Mapping[str, Sequence[Callable[..., None]]]

    def __init__(self, *given: Any) -> None:
        super().__init__(*given)
        self._events: deque[events.Event] = deque()
        self._at_it = False
        self._unsent: dict[Any, list[bytes]] = {}

    async def handle_connection(self, connection: Connection) -> None:
        transport = self.transports[connection]
        transport.reader = cast("asyncio.StreamReader", _Reader(transport.reader))
        await super().handle_connection(connection)

    async def handle_hook(self, hook: commands.StartHook) -> None:
        """For the hooks that come from outside the layers."""
        self._call(hook)

    def _call(self, hook: commands.StartHook) -> None:
        for act in self.hooks.get(hook.name, ()):
            try:
                act(*hook.args())
            except Exception:
                # Where a mistake must not let anything through, the addon sees to that itself.
                log.exception("%s failed", hook.name)
                if hook.name == "client_connected":
                    self.client.error = REFUSED

    async def server_event(self, event: events.Event) -> None:
        """Let the layers have an event, and do what they ask for."""
        self._events.append(event)
        if self._at_it:
            return  # a task that was begun just now: whoever is at it comes to this one as well
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
            self._send()

    def _send(self) -> None:
        """What the layers gave out bit by bit (a head, then a body) goes in one call, and arrives at once."""
        unsent, self._unsent = self._unsent, {}
        for writer, data in unsent.items():
            if not writer.is_closing():
                writer.write(data[0] if len(data) == 1 else b"".join(data))

    def _do(self, command: commands.Command) -> None:
        match command:
            case commands.StartHook():
                self._call(command)
                if command.blocking:
                    self._events.append(events.HookCompleted(command))
            case commands.OpenConnection():
                opening = asyncio.create_task(self.open_connection(command))
                self.transports[command.connection] = server.ConnectionIO(handler=opening)
            case commands.RequestWakeup():
                self.wakeup_timer.add(asyncio.create_task(self.wakeup(command)))
            case commands.ConnectionCommand() if command.connection not in self.transports:
                pass  # it is closed already
            case commands.SendData():
                writer = self.transports[command.connection].writer
                if writer is not None:
                    self._unsent.setdefault(writer, []).append(command.data)
            case commands.CloseConnection():
                self._send()
                self.close_connection(command.connection, getattr(command, "half_close", False))
            case commands.Log():
                self.log(command.message, command.level)
            case _:
                raise TypeError(f"mitmproxy asks for {command}")


class Server(master.Master):
    """mitmproxy's master with the addon and the three of its own that a Puppet proxy needs."""

    def __init__(self, given: Mapping[str, Any], *, shared: bool = False) -> None:
        """``given`` are the addon's options; ``shared``: other processes listen on the same port. Raises
        InspectorError."""
        super().__init__(options.Options())
        self.addon = PuppetInspector()
        serving: Any = proxyserver.Proxyserver
        parts = (serving(), block.Block(), disable_h2c.DisableH2C(), next_layer.NextLayer(), self.addon)
        self.addons.add(*parts)  # type: ignore[no-untyped-call]
        self.options.update(server=False, **given)  # type: ignore[no-untyped-call]
        self._shared = shared
        self._servers: list[asyncio.Server] = []
        hooks = {name: [act for part in parts[1:] if (act := getattr(part, name, None))] for name in _HOOKS}
        self._handler = type("Handler", (_Handler,), {"hooks": hooks})

    async def serve(self) -> None:
        """Until it is told to end. Raises InspectorError."""
        settings = given_options.settle(self.options, own_mode=False, shared=self._shared)
        addresses: list[tuple[str, int]] = []
        while not addresses:
            try:
                # Before it has begun, the addon lets nobody in.
                addresses = await self.listen(*settings.listen, settings.master_address)
            except OSError as error:
                if not settings.any_port or error.errno != errno.EADDRINUSE:
                    raise InspectorError(
                        f"The proxy can't listen on {settings.listen_address}: {error.strerror}.",
                        "Choose another address with puppet_listen=HOST:PORT.",
                    ) from error
                settings = given_options.listen_again(settings)
        self.addon.begin(settings, Console(), tells=not self._shared)
        if self._shared:
            print(LISTENS, flush=True)
        else:
            self.addon.introduce(addresses)
        # What is there now stays; and what comes is mostly freed without looking for circles.
        gc.freeze()
        gc.set_threshold(20_000, 20, 20)
        await self.should_exit.wait()
        self.close()
        await self.addon.done()

    async def listen(self, host: str, port: int, target: str) -> list[tuple[str, int]]:
        """Let agents come in; returns the addresses. Raises OSError."""
        mode = mode_specs.ProxyMode.parse(f"reverse:https://{target}@{host}:{port}")
        meet = functools.partial(self._meet, mode)
        started = await asyncio.start_server(meet, host, port, reuse_port=self._shared or None, backlog=1024)
        self._servers.append(started)
        return [each.getsockname()[:2] for each in started.sockets]

    async def _meet(
        self, mode: mode_specs.ProxyMode, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        handler = self._handler(reader, writer, self.options, mode)
        handler.layer = layers.modes.ReverseProxy(handler.layer.context)
        await handler.handle_client()

    def close(self) -> None:
        """Let nobody in any more."""
        for each in self._servers:
            each.close()


def main(argv: list[str]) -> int:
    """``OPTIONS WORKER``: the addon's options as JSON; WORKER: one of several on the same port (0 or 1)."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stdout)
    logging.getLogger("mitmproxy.proxy.server").setLevel(logging.ERROR)
    try:
        asyncio.run(_main(json.loads(argv[0]), worker=argv[1] == "1"))
    except InspectorError as error:
        print(f"puppet-inspector: {error.message}\n  {error.hint}", file=sys.stderr)
        return 2
    return 0


async def _main(given: dict[str, Any], *, worker: bool) -> None:
    serving = Server(given, shared=worker)
    loop = asyncio.get_running_loop()
    loop.set_task_factory(asyncio.eager_task_factory)
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, serving.should_exit.set)
    if worker:
        # Whoever started us has ended, in whatever way: so do we.
        loop.add_reader(sys.stdin.fileno(), serving.should_exit.set)
    await serving.serve()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
