"""`puppet-inspector proxy`: the addon in a mitmproxy that has only the parts a Puppet proxy needs.

It has no interception, no scripts and no user interfaces (``mitmdump -s addons/puppet.py`` has them). It does not have
mitmproxy's TLS addon either: both legs use our own TLS contexts, and no CA key is made or written.
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
from inspector.proxy import options as addon_options
from inspector.proxy.addon import PuppetInspector
from inspector.proxy.console import Console
from inspector.proxy.fast import accept_queue, reuseport
from inspector.proxy.fast.workers import LISTENS

if TYPE_CHECKING:
    from collections.abc import Mapping


class Server(master.Master):
    """mitmproxy's master with our addon and those of its own that a Puppet proxy needs."""

    def __init__(self, option_values: Mapping[str, Any], workers: int = 1) -> None:
        """``option_values`` are the addon's options; ``workers`` processes listen on the same port.

        Raises InspectorError.
        """
        super().__init__(options.Options())
        self.addon = PuppetInspector()
        proxyserver_class: Any = proxyserver.Proxyserver
        parts = (proxyserver_class(), block.Block(), disable_h2c.DisableH2C(), next_layer.NextLayer(), self.addon)
        self.addons.add(*parts)  # type: ignore[no-untyped-call]
        self.options.update(server=False, **option_values)  # type: ignore[no-untyped-call]
        self._workers = workers
        self._servers: list[asyncio.Server] = []
        # mitmproxy makes a deep copy of an option's value at every access; these values never change.
        all_options: Any = self.options
        self._fixed = SimpleNamespace(**{name: option.current() for name, option in all_options.items()})

    @property
    def _shared(self) -> bool:
        """Whether other processes listen on the same port."""
        return self._workers > 1

    async def serve(self) -> None:
        """Serve until a signal arrives. Raises InspectorError."""
        settings = addon_options.resolve(self.options, own_mode=False, shared=self._shared)
        addresses: list[tuple[str, int]] = []
        while not addresses:
            try:
                # Until begin() the addon accepts no connections.
                addresses = await self.listen(*settings.listen, settings.master_address)
            except OSError as error:
                if not settings.any_port or error.errno != errno.EADDRINUSE:
                    raise InspectorError(
                        f"Cannot listen on {settings.listen_address}: {error.strerror}.",
                        "Choose another address with puppet_listen=HOST:PORT.",
                    ) from error
                settings = addon_options.listen_again(settings)
        self.addon.begin(settings, Console(), analyzes=not self._shared)
        if self._shared:
            print(LISTENS, flush=True)
        else:
            self.addon.print_startup(addresses)
        # The objects so far are permanent, and most later ones are freed without the garbage collector.
        gc.freeze()
        gc.set_threshold(10_000, 2, 5)
        await self.should_exit.wait()
        self.close()
        await self.addon.done()

    async def listen(self, host: str, port: int, target: str) -> list[tuple[str, int]]:
        """Listen for agents; return the addresses. Raises OSError."""
        mode = mode_specs.ProxyMode.parse(f"reverse:https://{target}@{host}:{port}")
        accept = functools.partial(self._accept, mode)
        server = await asyncio.start_server(
            accept, host, port, reuse_port=self._shared or None, backlog=accept_queue.BURST
        )
        self._servers.append(server)
        accept_queue.lengthen([server])
        for listening in server.sockets if self._shared else ():
            reuseport.by_address(listening, self._workers)
        return [listening.getsockname()[:2] for listening in server.sockets]

    async def _accept(
        self, mode: mode_specs.ProxyMode, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        # Ours (``handler``) once the addon has started.
        handler_class: Any = mode_servers.ProxyConnectionHandler
        connection = handler_class(self, reader, writer, self._fixed, mode)
        connection.layer = layers.modes.ReverseProxy(connection.layer.context)
        await connection.handle_client()

    def close(self) -> None:
        """Accept no more connections."""
        for server in self._servers:
            server.close()


def main(argv: list[str]) -> int:
    """Run with ``OPTIONS WORKERS``: the addon's options as JSON, and how many processes listen on the same port."""
    logging.basicConfig(level=logging.WARNING, format="%(message)s", stream=sys.stdout)
    logging.getLogger("mitmproxy.proxy.server").setLevel(logging.ERROR)
    try:
        asyncio.run(_main(json.loads(argv[0]), int(argv[1])))
    except InspectorError as error:
        print(f"puppet-inspector: {error.message}\n  {error.hint}", file=sys.stderr)
        return 2
    return 0


async def _main(option_values: dict[str, Any], workers: int) -> None:
    server = Server(option_values, workers)
    loop = asyncio.get_running_loop()
    loop.set_task_factory(asyncio.eager_task_factory)
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, server.should_exit.set)
    if workers > 1:
        # End of file: the process that started this worker has ended.
        loop.add_reader(sys.stdin.fileno(), server.should_exit.set)
    await server.serve()
