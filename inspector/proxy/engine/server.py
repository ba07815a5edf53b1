"""`puppet-inspector proxy`: the server that accepts agents, in its own process."""

from __future__ import annotations

import asyncio
import errno
import gc
import json
import signal
import socket
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from inspector.errors import InspectorError
from inspector.proxy import options
from inspector.proxy.connect.plan import Plan
from inspector.proxy.console import Console
from inspector.proxy.engine.handover import Handover, by_address
from inspector.proxy.engine.link import Link
from inspector.proxy.limits import admission
from inspector.proxy.runtime import DRAIN, Runtime
from inspector.proxy.tap.plan import TapPlan
from inspector.proxy.telemetry.metrics import reporter
from inspector.text import address

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

STOPPING = (signal.SIGINT, signal.SIGTERM)
"""The signals that end a proxy. Whoever starts a server may block them until it handles them."""
LISTENS = "listening"
"""The line that one of several workers prints when it accepts connections."""
CHECK = 5.0
"""Seconds between looks for agents that do not finish what they began to send."""
SYNC = 0.2
"""The same where agents use the proxy as their HTTP proxy: what they learn is passed on meanwhile, too."""
ARRIVING = 4.0
"""Seconds for which connections may still be handed over to a proxy in the master's place that ends."""
SILENT = 5.0
"""Seconds after which an agent asks nothing more over a connection: it keeps one for 4 (http_keepalive_timeout)."""
PARTING = 120.0
"""Seconds that agents have to go over to the master itself."""
POLL = 0.05
"""Seconds between looks whether the last exchange has ended."""


class Server:
    """Accepts agents, from its start to a signal."""

    def __init__(
        self,
        option_values: Mapping[str, Any],
        workers: int = 1,
        number: int = 0,
        folder: Path | None = None,
        report_waiting: Callable[[int], None] = lambda _: None,
    ) -> None:
        """``option_values`` are the options, and with `run` its ``plan``. ``workers`` processes listen on the same
        port, of which this one has the ``number``, and share a ``folder``. ``report_waiting`` gets the bytes that wait
        to be recorded."""
        values = dict(option_values)
        plan = values.pop("plan", None)
        self._plan = msgspec.convert(plan, Plan | TapPlan) if plan else None
        self._options = options.with_defaults(**values)
        self._workers, self._number, self._folder = workers, number, folder
        self._report_waiting = report_waiting
        self._handover: Handover | None = None
        self._links: set[Link] = set()
        self._servers: list[asyncio.Server] = []
        self._runtime: Runtime
        self.stopped = asyncio.Event()

    async def serve(self) -> None:
        """Serve until ``stopped`` is set. Raises InspectorError."""
        shared = self._workers > 1
        if self._plan:
            settings = options.of_plan(self._options, self._plan)
        else:
            settings = options.resolve(self._options, own_mode=False, shared=shared)
        console = Console()
        try:
            settings = await self._bind(settings, shared=shared)
            self._runtime = Runtime(
                settings, console.write_line, analyzes=not shared, workers=self._workers,
                report_waiting=self._report_waiting,
            )  # fmt: skip
            if settings.balancers and self._folder:
                self._handover = Handover(self._folder, self._number, self._workers, self._accept)
            await self._listen(settings, shared=shared)
            if shared:
                print(LISTENS, flush=True)
            else:
                sockets = [each for server in self._servers for each in server.sockets]
                addresses = [address(*listening.getsockname()[:2]) for listening in sockets]
                for line in options.startup_lines(settings, addresses):
                    console.write_line(line)
            # The objects so far are permanent, and most later ones are freed without the garbage collector.
            gc.freeze()
            gc.set_threshold(10_000, 2, 5)
            await self._check_until_stopped()
            await self._end()
        finally:
            console.close()

    async def _bind(self, settings: options.Settings, *, shared: bool) -> options.Settings:
        """Reserve the address; return the settings with it. Raises InspectorError."""
        loop = asyncio.get_running_loop()
        while True:
            try:
                if settings.descriptors:
                    self._servers = [
                        await loop.create_server(self._accept, sock=socket.socket(fileno=each), start_serving=False)
                        for each in settings.descriptors
                    ]
                else:
                    server = await loop.create_server(
                        self._accept, *settings.listen, reuse_port=shared or None, backlog=admission.BURST,
                        start_serving=False,
                    )  # fmt: skip
                    self._servers = [server]
            except OSError as error:
                if not settings.any_port or error.errno != errno.EADDRINUSE:
                    raise _not_listening(settings, error) from error
                settings = options.listen_again(settings)
            else:
                return settings

    async def _listen(self, settings: options.Settings, *, shared: bool) -> None:
        """Accept agents. Raises InspectorError."""
        while True:
            try:
                for server in self._servers:
                    await server.start_serving()
                break
            except OSError as error:  # another program was faster
                if not settings.any_port or error.errno != errno.EADDRINUSE:
                    raise _not_listening(settings, error) from error
                self._close()
                settings = await self._bind(options.listen_again(settings), shared=shared)
        admission.lengthen(self._servers)
        for server in self._servers if shared and not self._handover else ():
            for listening in server.sockets:
                by_address(listening, self._workers)

    def _close(self) -> None:
        for server in self._servers:
            server.close()

    def _accept(self, early: bytes = b"") -> asyncio.BufferedProtocol:
        agent = Link(self._runtime, self._links, self._handover).agent
        agent.early = early
        return agent

    async def _check_until_stopped(self) -> None:
        interception = self._runtime.interception
        while not self.stopped.is_set():
            try:
                await asyncio.wait_for(self.stopped.wait(), SYNC if interception else CHECK)
            except TimeoutError:
                if interception:
                    interception.sync()
                now = time.monotonic()
                for link in list(self._links):
                    link.check(now)

    async def _part(self) -> None:
        """Let agents go over to the master in whose place the proxy was; none of them loses a request."""
        self._runtime.parting = True
        began = time.monotonic()
        while (passed := time.monotonic() - began) < ARRIVING or (self._links and passed < PARTING):
            for link in list(self._links):
                link.part(SILENT)
                link.check(time.monotonic())
            await asyncio.sleep(POLL)

    async def _end(self) -> None:
        """Accept no more connections, let exchanges under way end, and write the rest of the capture."""
        if self._runtime.settings.stands_in:
            await self._part()
        self._close()
        if self._handover:
            self._handover.close()
        self._runtime.admission.close()
        until = time.monotonic() + DRAIN
        # The agent of a run has ended, and waits for no answer.
        while any(link.busy and not (self._plan and link.abandoned) for link in self._links):
            if time.monotonic() > until:
                break
            await asyncio.sleep(POLL)
        for link in list(self._links):
            link.shut()
        await asyncio.sleep(0)  # the ends of the connections are recorded
        await asyncio.sleep(0)
        await asyncio.to_thread(self._runtime.finish)


def _not_listening(settings: options.Settings, error: OSError) -> InspectorError:
    return InspectorError(
        f"Cannot listen on {settings.listen_address}: {error.strerror}.",
        "Choose another address with puppet_listen=HOST:PORT.",
    )


def main(argv: list[str]) -> int:
    """Run with ``OPTIONS [WORKERS NUMBER FOLDER WAITING]``: the options as JSON; how many processes listen on the same
    port, which one of them this is, a folder of theirs, and the descriptor of memory for what waits in each."""
    try:
        asyncio.run(_main(json.loads(argv[0]), *argv[1:]))
    except InspectorError as error:
        print(f"puppet-inspector: {error.message}\n  {error.hint}", file=sys.stderr)
        return 2
    return 0


def _orphaned(server: Server) -> None:
    asyncio.get_running_loop().remove_reader(sys.stdin.fileno())
    server.stopped.set()


async def _main(
    option_values: dict[str, Any], workers: str = "1", number: str = "0", folder: str = "", waiting: str = ""
) -> None:
    report = reporter(int(waiting), int(number)) if waiting else lambda _: None
    server = Server(option_values, int(workers), int(number), Path(folder) if folder else None, report)
    loop = asyncio.get_running_loop()
    for each in STOPPING:
        loop.add_signal_handler(each, server.stopped.set)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, STOPPING)
    if int(workers) > 1:
        # End of file: the process that started this worker has ended.
        loop.add_reader(sys.stdin.fileno(), _orphaned, server)
    await server.serve()
