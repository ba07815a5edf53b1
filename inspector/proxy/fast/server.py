"""`puppet-inspector proxy`: the addon in a mitmproxy of our own, which has only the parts that a Puppet proxy needs.

Its other addons are gone, and with them its interception, its scripts and its user interfaces
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
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from mitmproxy import master, options
from mitmproxy.addons import block, disable_h2c, next_layer, proxyserver
from mitmproxy.proxy import layers, mode_servers, mode_specs

from inspector.errors import InspectorError
from inspector.proxy import options as given_options
from inspector.proxy.addon import PuppetInspector
from inspector.proxy.console import Console
from inspector.proxy.fast import reuseport
from inspector.proxy.fast.workers import LISTENS

if TYPE_CHECKING:
    from collections.abc import Mapping


class Server(master.Master):
    """mitmproxy's master with the addon and the three of its own that a Puppet proxy needs."""

    def __init__(self, given: Mapping[str, Any], workers: int = 1) -> None:
        """``given`` are the addon's options; so many ``workers`` listen on the same port. Raises InspectorError."""
        super().__init__(options.Options())
        self.addon = PuppetInspector()
        serving: Any = proxyserver.Proxyserver
        parts = (serving(), block.Block(), disable_h2c.DisableH2C(), next_layer.NextLayer(), self.addon)
        self.addons.add(*parts)  # type: ignore[no-untyped-call]
        self.options.update(server=False, **given)  # type: ignore[no-untyped-call]
        self._workers = workers
        self._servers: list[asyncio.Server] = []
        # mitmproxy copies an option's value deeply whenever it looks at it; here none changes any more.
        all_options: Any = self.options
        self._fixed = SimpleNamespace(**{name: option.current() for name, option in all_options.items()})

    @property
    def _shared(self) -> bool:
        """Whether others listen on the same port."""
        return self._workers > 1

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
        gc.set_threshold(10_000, 2, 5)
        await self.should_exit.wait()
        self.close()
        await self.addon.done()

    async def listen(self, host: str, port: int, target: str) -> list[tuple[str, int]]:
        """Let agents come in; returns the addresses. Raises OSError."""
        mode = mode_specs.ProxyMode.parse(f"reverse:https://{target}@{host}:{port}")
        meet = functools.partial(self._meet, mode)
        started = await asyncio.start_server(meet, host, port, reuse_port=self._shared or None, backlog=1024)
        self._servers.append(started)
        for each in started.sockets if self._shared else ():
            reuseport.by_address(each, self._workers)
        return [each.getsockname()[:2] for each in started.sockets]

    async def _meet(
        self, mode: mode_specs.ProxyMode, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        # Ours (``handler``), as soon as the addon has begun.
        met: Any = mode_servers.ProxyConnectionHandler
        connection = met(self, reader, writer, self._fixed, mode)
        connection.layer = layers.modes.ReverseProxy(connection.layer.context)
        await connection.handle_client()

    def close(self) -> None:
        """Let nobody in any more."""
        for each in self._servers:
            each.close()


def main(argv: list[str]) -> int:
    """``OPTIONS WORKERS``: the addon's options as JSON, and how many processes listen on the same port."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stdout)
    logging.getLogger("mitmproxy.proxy.server").setLevel(logging.ERROR)
    try:
        asyncio.run(_main(json.loads(argv[0]), int(argv[1])))
    except InspectorError as error:
        print(f"puppet-inspector: {error.message}\n  {error.hint}", file=sys.stderr)
        return 2
    return 0


async def _main(given: dict[str, Any], workers: int) -> None:
    serving = Server(given, workers)
    loop = asyncio.get_running_loop()
    loop.set_task_factory(asyncio.eager_task_factory)
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, serving.should_exit.set)
    if workers > 1:
        # Whoever started us has ended, in whatever way: so do we.
        loop.add_reader(sys.stdin.fileno(), serving.should_exit.set)
    await serving.serve()
