"""What floods cost those who behave: each flood comes from the same address as good agents, most without a certificate.

Flood and agents are processes of their own. The flood's is nicer than all others: an attacker's own work is done on
another machine.
"""

from __future__ import annotations

import contextlib
import os
import resource
import signal
import socket
import ssl
import sys
import threading
import time
from collections import Counter
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from multiprocessing import get_context
from typing import TYPE_CHECKING

from inspector.host.pki import SslDirPaths
from inspector.lab import Lab
from tests.bench import aims
from tests.bench.load import Load, besieged, milliseconds, percentile, resident
from tests.bench.roads import Caller, enrolled, master, ours
from tests.e2e.wire import Peer
from tests.support.floods import FLOODS, POISONED

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from multiprocessing.synchronize import Event

SECONDS = 10.0
"""That each flood lasts."""
AFTER = 10.0
"""Seconds until its memory must be given back."""
AGENTS, PAUSE = 2, 0.2
"""Good agents, and the seconds between their runs."""
SLOWER = 2.0
"""Times that the 99th percentile may be as high as while the same flood goes to another proxy before the same master.
Machine and master, which all share, cost as much then."""
MEMORY = 64.0
"""MB that a flood may take."""
ASK = b"GET %s?environment=production HTTP/1.1\r\nHost: n\r\n\r\n"
BODY = b"PUT /puppet/v3/report/x?environment=production HTTP/1.1\r\nHost: n\r\nContent-Length: 2000000\r\n\r\n"


# -- floods -----------------------------------------------------------------------------------------------


class Flood:
    """Whoever floods: many connections, and what came of them."""

    def __init__(self, peer: Peer, stop: Event) -> None:
        self.peer, self._stop = peer, stop
        self.outcomes: Counter[str] = Counter()
        self._stack = ExitStack()

    @property
    def over(self) -> bool:
        return self._stop.is_set()

    def repeat(self, data: bytes) -> None:
        """Send data on one connection after the other."""
        while not self.over:
            with self.counted(), self.peer.connect() as connection:
                with contextlib.suppress(OSError):
                    connection.sendall(data)
                self.outcomes[connection.recv(12)[9:].decode() or "closed"] += 1

    @contextmanager
    def counted(self) -> Iterator[None]:
        """Count how a connection fails."""
        try:
            yield
        except OSError as error:
            self.outcomes[type(error).__name__] += 1

    def raw(self) -> socket.socket:
        """A connection that stays open until the end, without TLS."""
        return self._stack.enter_context(socket.create_connection(self.peer.address, 5))

    def secure(self) -> ssl.SSLSocket:
        """The same with TLS."""
        return self._stack.enter_context(self.peer.context().wrap_socket(self.raw(), server_hostname=self.peer.name))

    def many(self, number: int, threads: int, begin: Callable[[], object]) -> None:
        """Open so many connections, and keep them until the end."""

        def some(number: int) -> None:
            for _ in range(number):
                if self.over:
                    return
                with self.counted():
                    begin()
                    self.outcomes["begun"] += 1

        workers = [threading.Thread(target=some, args=(number // threads,)) for _ in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        self._stop.wait()

    def close(self) -> None:
        """Close all of them."""
        self._stack.close()


def bodies(flood: Flood) -> None:
    """900 requests whose bodies never end, a megabyte of each."""

    def begin() -> None:
        connection = flood.secure()
        connection.settimeout(5)
        connection.sendall(BODY + b"a" * 1_000_000)

    flood.many(900, 30, begin)


def idle(flood: Flood) -> None:
    """5,000 connections that send nothing."""
    flood.many(5000, 1, lambda: bool(flood.raw()))


def handshakes(flood: Flood) -> None:
    """900 handshakes that stop after the first message: half of them within it."""
    hello = ssl.MemoryBIO()
    with contextlib.suppress(ssl.SSLWantReadError):
        flood.peer.context().wrap_bio(ssl.MemoryBIO(), hello, server_hostname=flood.peer.name).do_handshake()
    data = hello.read()
    sizes = iter(range(900))
    flood.many(900, 1, lambda: flood.raw().sendall(data if next(sizes) % 2 else data[:100]))


def heads(flood: Flood) -> None:
    """300 requests whose heads come a byte a second."""
    connections: list[ssl.SSLSocket] = []

    def drip() -> None:
        while not flood.over:
            for connection in list(connections):
                try:
                    connection.sendall(b"a")
                except OSError:
                    connections.remove(connection)
            time.sleep(1)

    def begin() -> None:
        connection = flood.secure()
        connection.sendall(b"GET /puppet/v3/node/x HTTP/1.1\r\nX: ")
        connections.append(connection)

    threading.Thread(target=drip, daemon=True).start()
    flood.many(300, 10, begin)


def resting(flood: Flood) -> None:
    """1,000 connections over which something was asked once."""

    def begin() -> None:
        connection = flood.secure()
        connection.sendall(ASK % b"/puppet/v3/node/x")
        connection.recv(1)

    flood.many(1000, 10, begin)


def unread(flood: Flood) -> None:
    """400 answers of 20 MB of which nothing is read."""
    flood.many(
        400, 10, lambda: flood.secure().sendall(ASK % b"/puppet/v3/file_content/modules/a/20000000.bin")
    )  # fmt: skip


def chunks(flood: Flood) -> None:
    """Three requests at a time whose bodies come in chunks of a byte."""
    head, body = BODY.partition(b"Content-Length")[0] + b"Transfer-Encoding: chunked\r\n\r\n", b"1\r\na\r\n" * 10_000

    def send() -> None:
        while not flood.over:
            with flood.counted(), flood.peer.connect() as connection:
                connection.sendall(head)
                while not flood.over:
                    connection.sendall(body)

    flood.many(3, 3, lambda: threading.Thread(target=send, daemon=True).start())


def _data(name: str) -> Callable[[Flood], None]:
    return lambda flood: flood.repeat(FLOODS[name][0])


KINDS: dict[str, Callable[[Flood], None]] = {
    "6,000 headers that claim an identity": _data("distinct claims"),
    "a header folded 250,000 times": _data("a folded header"),
    "a header without end": _data("a header without end"),
    "empty lines without end": lambda flood: flood.repeat(b"\r\n" * 2**22),
    "a query that is slow to analyze": lambda flood: flood.repeat(
        f"GET {POISONED} HTTP/1.1\r\nHost: n\r\n\r\n".encode()
    ),
    "900 bodies of 1 MB that never end": bodies,
    "5,000 connections that send nothing": idle,
    "300 heads, a byte a second": heads,
    "900 handshakes that stop": handshakes,
    "3 bodies in chunks of a byte": chunks,
}
ENROLLED: dict[str, Callable[[Flood], None]] = {
    "1,000 idle connections of an enrolled node": resting,
    "400 answers that an enrolled node does not read": unread,
    "3 bodies in chunks of a byte, of an enrolled node": chunks,
}
"""With a certificate: somebody has taken over a node."""


def _flood(name: str, peer: Peer, stop: Event) -> None:
    os.nice(10)
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
    flood = Flood(peer, stop)
    try:
        (KINDS | ENROLLED)[name](flood)
    finally:
        flood.close()
        print(f"{name}: {dict(flood.outcomes)}", file=sys.stderr)


@contextmanager
def flooded(name: str, peer: Peer) -> Iterator[None]:
    """A flood that goes on."""
    context = get_context("spawn")
    stop = context.Event()
    process = context.Process(target=_flood, args=(name, peer, stop), daemon=True)
    process.start()
    try:
        yield
    finally:
        stop.set()
        process.join(30)
        process.kill()
        process.join()


# -- what they cost ---------------------------------------------------------------------------------------


@dataclass
class Memory:
    """A process's resident memory in MB while something goes on."""

    pid: int
    before: float = 0.0
    most: float = 0.0
    after: float = 0.0
    _over: threading.Event = field(default_factory=threading.Event)

    def __post_init__(self) -> None:
        self.before = self.most = resident(self.pid)
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()

    def _watch(self) -> None:
        while not self._over.wait(0.1):
            self.most = max(self.most, resident(self.pid))

    def finish(self) -> None:
        """Look at it for the last time."""
        self._over.set()
        self._thread.join()
        self.after = resident(self.pid)


def table(proxy: str, *, own: bool) -> Iterator[str]:
    """The rows of a proxy: without a flood, and with each."""
    with ExitStack() as stack:
        lab = stack.enter_context(Lab(autosign=True))
        places = [enrolled(lab, f"agent{number}.lab.example", None) for number in range(AGENTS)]
        taken_over = enrolled(lab, "bad.lab.example", None)
        target = stack.enter_context(master(SslDirPaths(lab.directory / "master", lab.master_name)))
        road, other = (stack.enter_context(ours(lab, target, "", own=own)) for _ in range(2))
        callers = [Caller(road.address, lab.proxy_name, place) for place in places]
        besieged(callers, 2, PAUSE)
        yield _row(f"{proxy}, no flood", besieged(callers, SECONDS, PAUSE), None, None)

        def beside(name: str, address: tuple[str, int]) -> Load:
            peer = Peer.of(address, lab.proxy_name, taken_over) if name in ENROLLED else Peer(address, lab.proxy_name)
            with flooded(name, peer):
                return besieged(callers, SECONDS, PAUSE)

        for name in KINDS | ENROLLED:
            elsewhere = beside(name, other.address)
            time.sleep(AFTER)
            memory = Memory(road.pid)
            here = beside(name, road.address)
            time.sleep(AFTER)
            memory.finish()
            yield _row(f"{proxy}, {name}", here, elsewhere, memory)


def _row(name: str, load: Load, elsewhere: Load | None, memory: Memory | None) -> str:
    failed = f"{load.failed}" if not load.failed else f"**{load.failed}**"
    cells = [name, f"{load.runs}", failed]
    for times in (load.requests, load.connects):
        cells += [milliseconds(times, 50), milliseconds(times, 99), milliseconds(times, 100)]
    if memory and elsewhere:
        slower = percentile(load.requests, 99) / percentile(elsewhere.requests, 99)
        cells += [milliseconds(elsewhere.requests, 99), f"{slower:.1f}x", aims.at_most(round(slower, 1), SLOWER, "x")]
        most, after = memory.most - memory.before, memory.after - memory.before
        cells += [f"{most:+.0f} MB", f"{after:+.0f} MB", aims.at_most(round(most), MEMORY, " MB")]
    else:
        cells += [""] * 6
    for why in sorted(load.why)[:5]:
        print(f"failed: {why}", file=sys.stderr)
    return f"| {' | '.join(cells)} |"
