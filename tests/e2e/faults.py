"""What can go wrong around a proxy while agents run: a scene, and each fault as a function that plays it.

`test_faults` plays each once; `make soak` plays all of it, and prints what came of it.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
import json
import os
import resource
import select
import socket
import sqlite3
import ssl
import threading
import time
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self
from unittest import mock

from inspector.capture.store import Capture
from inspector.cli import demo
from inspector.errors import CaptureError
from inspector.lab import Lab
from inspector.model import Exchange, Gap
from inspector.proxy.launcher import Proxy
from tests.e2e import faulty
from tests.e2e.wire import Peer, read, reset
from tests.support import proxies
from tests.support.waiting import PATIENCE, eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from inspector.host.pki import SslDirPaths
    from inspector.model import Record, Request, Response

NAME = "web1.lab.example"
NODE = f"/puppet/v3/node/{NAME}?environment=production"
LATE = 1.0
"""Seconds before a kill within which what was delivered may not be in the capture yet."""
PAUSE = 0.01
"""Seconds between two requests of whoever polls."""


# -- between two ends -------------------------------------------------------------------------------------


class Middle:
    """Passes bytes on between two ends, and can reset both in the middle of what they say."""

    def __init__(self, target: tuple[str, int]) -> None:
        """``target`` is whom callers are led to."""
        self.target = target
        self.limits: tuple[int | None, int | None] = (None, None)
        """Bytes from and to a caller after which a new connection is reset; None: never."""
        self.passed = (0, 0)
        """Bytes that came from and went to the last caller whose connection is over."""
        self.over = threading.Semaphore(0)
        """One for each connection that is over."""
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.address: tuple[str, int] = self._socket.getsockname()
        self._pairs: set[tuple[socket.socket, socket.socket]] = set()
        self._threads: list[threading.Thread] = []
        self._accepting = threading.Thread(target=self._accept)

    def __enter__(self) -> Self:
        self._accepting.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.down()
        for thread in self._threads:
            thread.join()

    def down(self) -> None:
        """Let nobody in any more, and reset every connection."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)  # wakes who waits in accept
        self._accepting.join()
        self._socket.close()
        for pair in list(self._pairs):
            for end in pair:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def up(self) -> None:
        """At the same port again."""
        self._socket = socket.create_server(self.address, backlog=256)
        self._accepting = threading.Thread(target=self._accept)
        self._accepting.start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._socket.accept()
            except OSError:
                return
            self._threads = [thread for thread in self._threads if thread.is_alive()]
            thread = threading.Thread(target=self._pass, args=(near, self.limits))
            self._threads.append(thread)
            thread.start()

    def _pass(self, near: socket.socket, limits: tuple[int | None, int | None]) -> None:
        passed = [0, 0]
        try:
            far = socket.create_connection(self.target)
        except OSError:
            near.close()
            self.over.release()
            return
        pair = near, far
        self._pairs.add(pair)
        for end in pair:
            end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(OSError), near, far:
            while self._turn(pair, passed, limits):
                pass
        self._pairs.discard(pair)
        self.passed = (passed[0], passed[1])
        self.over.release()

    def _turn(
        self, pair: tuple[socket.socket, socket.socket], passed: list[int], limits: tuple[int | None, int | None]
    ) -> bool:
        if any(limit is not None and passed[way] >= limit for way, limit in enumerate(limits)):
            for end in pair:
                reset(end)
            return False
        ready, _, _ = select.select(pair, [], [])
        for one in ready:
            way = pair.index(one)
            limit = limits[way]
            data = one.recv(65536 if limit is None else max(limit - passed[way], 1))
            if not data:
                return False
            pair[1 - way].sendall(data)
            passed[way] += len(data)
        return True


# -- the scene --------------------------------------------------------------------------------------------


@dataclass
class Tally:
    """What came of a fault."""

    tried: int = 0
    same: int = 0
    """Of those, how many ended as without the proxy."""
    lost: int = 0
    """Requests that the master received and the capture does not hold."""
    gaps: list[Gap] = field(default_factory=list)
    """What the capture says of that."""

    def count(self, same: bool) -> None:
        self.tried += 1
        self.same += same

    def __add__(self, other: Tally) -> Tally:
        return Tally(
            self.tried + other.tried, self.same + other.same, self.lost + other.lost, [*self.gaps, *other.gaps]
        )


@dataclass(frozen=True)
class Done:
    """How a run ended: what must not depend on a proxy."""

    status: int
    log: tuple[str, ...]
    requests: tuple[tuple[str, str, str | None], ...]
    """Method, path and whom the master took it to come from, of what it received."""


class Scene:
    """A lab, a proxy in whose process things can be broken, and a way to cut what is between them.

    As long as its context is entered: agents -- ``near`` -- proxy -- ``far`` -- master.
    """

    def __init__(self, folder: Path, *, own: bool, speed: float = 1.0) -> None:
        """``own``: `puppet-inspector proxy`; else mitmdump with the addon. ``speed``: of the proxy's clock."""
        self._folder, self._speed = folder, speed
        self.own = own
        self.capture = folder / "captures" / "test.sqlite"
        self._number = 0
        self._places: dict[str, SslDirPaths] = {}
        self._without: Done | None = None
        self.broken = faulty.switch(folder)
        """Which hook of the proxy raises."""

    def __enter__(self) -> Self:
        with contextlib.ExitStack() as stack:
            self.lab = stack.enter_context(Lab(self._folder / "lab", demo.recorded(), autosign=True))
            self.far = stack.enter_context(Middle(self.lab.master_address))
            self.proxy = self._proxy()
            stack.push(self.proxy.__exit__)
            self.near = stack.enter_context(Middle(self.proxy.address))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _proxy(self) -> Proxy:
        options = proxies.options(self.lab, self.capture) | {"puppet_master": "{}:{}".format(*self.far.address)}
        with mock.patch("sys.executable", str(faulty.stand_in(self._folder, speed=self._speed))):
            return Proxy(options, own=self.own).__enter__()

    # -- agents -----------------------------------------------------------------------------------------

    def place(self, certname: str) -> SslDirPaths:
        """An enrolled agent's keys."""
        if certname not in self._places:
            self._places[certname] = self.lab.agent(certname, enrolled=True).place
        return self._places[certname]

    def peer(self, certname: str = NAME, address: tuple[str, int] | None = None) -> Peer:
        """An agent that asks what it is told to: through the proxy, or at another address."""
        return Peer.of(address or self.proxy.address, self.lab.proxy_name, self.place(certname))

    def direct(self) -> Peer:
        """An agent without the proxy."""
        return Peer.of(self.lab.master_address, self.lab.master_name, self.place(NAME))

    def run(self, address: tuple[str, int] | None) -> Done:
        """A first run of another agent, through the proxy at ``address`` or (None) without."""
        self._number += 1
        name = f"node{self._number}.lab.example"
        before = len(self.lab.master.received)
        done = self.lab.agent(name, address, enrolled=True).run()
        return Done(
            done.status,
            tuple(line.replace(name, "NODE") for line in done.log),
            tuple(
                (entry.request.method, entry.request.path.replace(name, "NODE"), entry.certname and "NODE")
                for entry in self.lab.master.received[before:]
            ),
        )

    def runs_as_without(self) -> bool:
        """Whether a run through the proxy ends as one without it."""
        self._without = self._without or self.run(None)
        return self.run(self.proxy.address) == self._without

    # -- what was recorded --------------------------------------------------------------------------------

    def records(self, after: int = 0) -> list[Record]:
        with Capture.open(self.capture) as capture:
            return list(capture.records(after))

    def has_printed(self, text: str, before: int) -> bool:
        """Whether the proxy has said something since its line of that number."""
        return any(text in line for line in self.proxy.lines[before:])

    def state(self) -> dict[str, int]:
        """What the proxy remembers of what is under way."""
        before = len(self.proxy.lines)
        os.kill(self.proxy.process.pid, faulty.STATE)
        found: list[str] = []

        def printed() -> bool:
            found[:] = [line for line in self.proxy.lines[before:] if line.startswith(faulty.STATE_LINE)]
            return bool(found)

        assert eventually(printed)
        state: dict[str, int] = json.loads(found[0].removeprefix(faulty.STATE_LINE))
        return state

    @contextmanager
    def watched(self) -> Iterator[Tally]:
        """Counts what is lost of what the master receives meanwhile through the proxy."""
        tally = Tally()
        received, after = len(self.lab.master.received), self.records()[-1:]
        yield tally
        asked = Counter(
            entry.request.target
            for entry in self.lab.master.received[received:]
            if (entry.request.header("Host") or "").startswith(self.lab.proxy_name)
        )
        # What comes after everything else.
        self._number += 1
        mark = f"/puppet/v3/environments?mark={self._number}"
        self.peer().ask("GET", mark)
        retained: list[Record] = []

        def whole() -> bool:
            # The capture may have been begun anew.
            try:
                retained[:] = self.records(after[0].seq if after else 0)
            except CaptureError:  # it is just being begun
                return False
            return any(isinstance(record, Exchange) and record.request.target == mark for record in retained)

        assert eventually(whole)
        tally.lost = (
            asked - Counter(record.request.target for record in retained if isinstance(record, Exchange))
        ).total()
        tally.gaps = [record for record in retained if isinstance(record, Gap)]


# -- our own mistakes -------------------------------------------------------------------------------------


def provoke(scene: Scene) -> None:
    """What calls the hooks that a good run does not: each side's refused handshake, and an agent that leaves."""
    with contextlib.suppress(OSError), socket.create_connection(scene.proxy.address, 20) as raw:
        ssl.create_default_context().wrap_socket(raw, server_hostname=scene.lab.proxy_name)  # trusts others
    with contextlib.suppress(OSError), scene.peer().connect() as connection:
        connection.sendall(head(PUT, "Content-Length: 9", body=b"{"))
    scene.far.limits = (None, 100)
    with contextlib.suppress(OSError):
        scene.peer().ask("GET", NODE)
    scene.far.limits = (None, None)


def broken_function(scene: Scene, name: str) -> Tally:
    """One of our functions raises, before or after its work: the agents' runs go on."""
    function = faulty.OPEN[name][scene.own]
    if function is None:
        return Tally()
    with scene.watched() as tally:
        # Without its work at the end of a connection there is no end of it.
        for when in ("after",) if name.startswith("the end of a") and "connection" in name else ("before", "after"):
            scene.broken.write_text(f"{when} {function}")
            provoke(scene)
            tally.count(scene.runs_as_without())
            scene.broken.write_text("")
    return tally


def broken_check(scene: Scene, name: str) -> Tally:
    """What checks who an agent or a master is raises: nobody is let through as somebody, and afterwards all are."""
    with scene.watched() as tally:
        for when in ("before", "after"):
            scene.broken.write_text(f"{when} {faulty.CLOSED[name][scene.own]}")
            done = scene.run(scene.proxy.address)
            scene.broken.write_text("")
            assert done.status == 1
            assert done.requests == ()
            tally.count(scene.runs_as_without())
    return tally


# -- the wire ---------------------------------------------------------------------------------------------


def head(line: str, *headers: str, body: bytes = b"") -> bytes:
    """A request."""
    return "\r\n".join([line, "Host: n", *headers, "", ""]).encode() + body


GET = head(f"GET {NODE} HTTP/1.1")
PUT = f"PUT /puppet/v3/report/{NAME}?environment=production HTTP/1.1"
FORMS: dict[str, tuple[int, bytes]] = {
    "pipelined requests": (3, GET * 3),
    "a chunked request": (1, head(PUT, "Transfer-Encoding: chunked", body=b"2\r\n{}\r\n0\r\n\r\n")),
    "100-continue": (1, head(PUT, "Expect: 100-continue", "Content-Length: 2", body=b"{}")),
    "a header of 70,000 bytes": (1, head(f"GET {NODE} HTTP/1.1", "X-A: " + "a" * 70_000)),
    "300 headers": (1, head(f"GET {NODE} HTTP/1.1", *(f"X-{number}: a" for number in range(300)))),
    "a target of 70,000 bytes": (1, head(f"GET {NODE}&a={'a' * 70_000} HTTP/1.1")),
    "HTTP/1.0": (1, head(f"GET {NODE} HTTP/1.0")),
    "HTTP/1.0 with keep-alive": (2, head(f"GET {NODE} HTTP/1.0", "Connection: keep-alive") * 2),
    "a close after the answer": (1, head(f"GET {NODE} HTTP/1.1", "Connection: close")),
}
"""What an agent may send, and how many answers come."""


def answers(peer: Peer, number: int, data: bytes, *, by_byte: bool = False) -> list[object]:
    """What comes of these bytes on one connection: each answer, or how it ended instead."""
    found: list[object] = []
    with peer.connect() as connection, connection.makefile("rb") as stream:
        once: Any = SimpleNamespace(makefile=lambda _mode: stream)
        try:
            for piece in (data[at : at + 1] for at in range(len(data))) if by_byte else (data,):
                connection.sendall(piece)
            while len(found) < number:
                if stream.peek(12).startswith(b"HTTP/1.1 100"):
                    stream.readline(), stream.readline()
                    continue
                answer = read(once)
                found.append((answer.status, [header for header in answer.headers if header[0] != "Date"], answer.body))
        except OSError as error:
            found.append(type(error))
    return found


def form(scene: Scene, name: str) -> Tally:
    """An unusual request is answered as without the proxy."""
    number, data = FORMS[name]
    with scene.watched() as tally:
        tally.count(answers(scene.peer(), number, data) == answers(scene.direct(), number, data))
    return tally


def byte_for_byte(scene: Scene) -> Tally:
    """A request that comes a byte at a time is answered."""
    with scene.watched() as tally:
        tally.count(answers(scene.peer(), 1, GET, by_byte=True) == answers(scene.direct(), 1, GET))
    return tally


def half_closed(scene: Scene) -> Tally:
    """Agents that say all they have to say and shut down their side: nobody else suffers."""
    with scene.watched() as tally:
        for _ in range(5):
            with contextlib.suppress(OSError), scene.peer().connect() as connection:
                connection.sendall(GET)
                # Below TLS: Python's own shutdown would be one of both sides.
                with socket.socket(fileno=os.dup(connection.fileno())) as raw:
                    raw.shutdown(socket.SHUT_WR)
                read(connection)
        tally.count(scene.runs_as_without())
    return tally


def slow_loris(scene: Scene, number: int = 200) -> Tally:
    """Connections that say nothing, half a handshake or half a request, and stay: a run ends as without them."""
    context = scene.peer().context()
    with scene.watched() as tally, contextlib.ExitStack() as stack:
        for index in range(number):
            raw = stack.enter_context(socket.create_connection(scene.proxy.address, 20))
            if index % 4 == 1:
                hello = ssl.MemoryBIO()
                with contextlib.suppress(ssl.SSLWantReadError):
                    context.wrap_bio(ssl.MemoryBIO(), hello, server_hostname=scene.lab.proxy_name).do_handshake()
                raw.sendall(hello.read()[:200])
            elif index % 4 == 2:
                secure = stack.enter_context(context.wrap_socket(raw, server_hostname=scene.lab.proxy_name))
                secure.sendall(GET[:-10])
            elif index % 4 == 3:
                secure = stack.enter_context(context.wrap_socket(raw, server_hostname=scene.lab.proxy_name))
                secure.sendall(head(PUT, "Content-Length: 1000000", body=b"{"))
        tally.count(scene.runs_as_without())
    return tally


def cuts(scene: Scene, side: str, way: int, step: int) -> Tally:
    """An exchange reset after each ``step``-th byte of what passes on one side (`agent`, `master`) of the proxy from
    (0) or to (1) whoever calls there; the next one is answered."""
    middle = scene.near if side == "agent" else scene.far
    if side == "agent":
        middle.target = scene.proxy.address
    peer = scene.peer(address=scene.near.address)

    def ask() -> int | None:
        with contextlib.suppress(OSError, ValueError):
            return peer.ask("GET", NODE).status
        return None

    assert ask() == 200
    middle.over.acquire(timeout=PATIENCE)
    passed = middle.passed[way]
    with scene.watched() as tally:
        for at in range(0, passed, step):
            middle.limits = (at, None) if way == 0 else (None, at)
            ask()
            middle.limits = (None, None)
            tally.count(ask() == 200)
    return tally


def master_restarts(scene: Scene) -> Tally:
    """It goes away and comes again: within a connection of an agent, and for a whole run."""
    with scene.watched() as tally, scene.peer().connect() as connection:
        connection.sendall(GET)
        first = read(connection)
        scene.far.down()
        tally.count(scene.run(scene.proxy.address).status == 1)  # as an agent's does that finds nobody
        scene.far.up()
        tally.count(scene.runs_as_without())
        connection.sendall(GET)
        second = read(connection)
        tally.count((first.status, first.body) == (second.status, second.body))
    return tally


# -- the capture ------------------------------------------------------------------------------------------


def locked(scene: Scene) -> Tally:
    """Somebody else holds the capture while agents run."""
    before = len(scene.proxy.lines)
    with scene.watched() as tally, contextlib.closing(sqlite3.connect(scene.capture, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        tally.count(scene.runs_as_without())
        assert eventually(lambda: scene.has_printed("cannot write the capture", before))
        other.execute("ROLLBACK")
        assert eventually(lambda: scene.has_printed("is being written again", before))
    return tally


def deleted(scene: Scene) -> Tally:
    """Somebody deletes the capture: another one begins in its place."""
    with scene.watched() as tally:
        for file in scene.capture.parent.iterdir():
            file.unlink()
        tally.count(scene.runs_as_without())
        assert eventually(lambda: scene.capture.exists())
    return tally


def read_only(scene: Scene) -> Tally:
    """Nobody may write the capture any more; the proxy has it open."""
    with scene.watched() as tally:
        for path, mode in ((scene.capture, 0o400), (scene.capture.parent, 0o500)):
            path.chmod(mode)
        tally.count(scene.runs_as_without())
    scene.capture.parent.chmod(0o700)
    scene.capture.chmod(0o600)
    return tally


def disk_full(scene: Scene) -> Tally:
    """Nothing more can be written, as on a full disk; then there is room again."""
    pid, before = scene.proxy.process.pid, len(scene.proxy.lines)
    _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
    with scene.watched() as tally:
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (4096, hard))
        tally.count(scene.runs_as_without())
        assert eventually(lambda: scene.has_printed("cannot write the capture", before))
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))
        assert eventually(lambda: scene.has_printed("is being written again", before))
    return tally


# -- the process ------------------------------------------------------------------------------------------


def clock_back(scene: Scene) -> Tally:
    """The clock jumps back an hour between two requests, and while one is answered."""
    with scene.watched() as tally, scene.peer().connect() as connection:
        for _ in range(2):
            connection.sendall(GET)
            read(connection)
            os.kill(scene.proxy.process.pid, faulty.BACK)
        answer = scene.lab.master.answer

        def meanwhile(request: Request, certname: str | None) -> Response:
            os.kill(scene.proxy.process.pid, faulty.BACK)
            time.sleep(0.1)
            return answer(request, certname)

        scene.lab.master._server._http.answer = meanwhile
        connection.sendall(GET)
        read(connection)
        scene.lab.master._server._http.answer = answer
        tally.count(scene.runs_as_without())
    return tally


def poll(peer: Peer, number: int, delivered: list[tuple[float, str]]) -> None:
    """Fetch files, each once, until the proxy is gone; notes when each was there."""
    with contextlib.suppress(OSError, ValueError):
        for turn in itertools.count():
            with peer.connect() as connection:
                for file in range(20):
                    target = f"/puppet/v3/environments?from={number}-{turn}-{file}"
                    connection.sendall(head(f"GET {target} HTTP/1.1"))
                    read(connection)
                    delivered.append((time.monotonic(), target))
                    time.sleep(PAUSE)


def killed(folder: Path, *, own: bool, after: float, agents: int = 4) -> Tally:
    """SIGKILL after so many seconds of polling: what was delivered a second before is in the capture."""
    with Scene(folder, own=own) as scene:
        delivered: list[tuple[float, str]] = []
        peers = [scene.peer(f"web{number}.lab.example") for number in range(agents)]
        threads = [threading.Thread(target=poll, args=(peer, at, delivered)) for at, peer in enumerate(peers)]
        for thread in threads:
            thread.start()
        time.sleep(after)
        at = time.monotonic()
        scene.proxy.process.kill()
        for thread in threads:
            thread.join()
        retained = {record.request.target for record in scene.records() if isinstance(record, Exchange)}
        due = {target for when, target in delivered if when < at - LATE}
    assert due or after < 2 * LATE
    return Tally(1, 1, len(due - retained))


def drained(folder: Path, *, own: bool, agents: int = 5) -> Tally:
    """SIGTERM while a master is at work for several agents: each gets its answer, and all of it is recorded."""
    tally = Tally()
    with Scene(folder, own=own) as scene:
        answer, at_work = scene.lab.master.answer, threading.Semaphore(0)

        def slow(request: Request, certname: str | None) -> Response:
            at_work.release()
            time.sleep(1.0)
            return answer(request, certname)

        scene.lab.master._server._http.answer = slow
        found: list[int] = []

        def ask(peer: Peer) -> None:
            with contextlib.suppress(OSError):
                found.append(peer.ask("GET", NODE).status)

        peer = scene.peer()
        threads = [threading.Thread(target=ask, args=(peer,)) for _ in range(agents)]
        for thread in threads:
            thread.start()
        for _ in threads:
            assert at_work.acquire(timeout=PATIENCE)
        scene.proxy.process.terminate()
        for thread in threads:
            thread.join()
    for number in range(agents):
        tally.count(number < found.count(200))
    tally.lost = agents - sum(isinstance(record, Exchange) for record in scene.records())
    assert scene.proxy.status == 0
    return tally


# -- all --------------------------------------------------------------------------------------------------

FAULTS: dict[str, Callable[[Scene], Tally]] = {
    **{f"exception in {name}": functools.partial(broken_function, name=name) for name in faulty.OPEN},
    **{
        f"exception in {name}: refused, afterwards as before": functools.partial(broken_check, name=name)
        for name in faulty.CLOSED
    },
    **{name: functools.partial(form, name=name) for name in FORMS},
    "a request byte for byte": byte_for_byte,
    "half-closed connections": half_closed,
    "200 half-open connections (slow loris)": slow_loris,
    "the master restarts": master_restarts,
    "the capture is locked": locked,
    "the capture is made read-only": read_only,
    "the disk is full": disk_full,
    "the capture is deleted": deleted,
    "the clock jumps back": clock_back,
}
"""Each with one proxy that goes on."""
CUTS: dict[str, tuple[str, int]] = {
    "reset within what the agent sends": ("agent", 0),
    "reset within what the agent is sent": ("agent", 1),
    "reset within what the master is sent": ("master", 0),
    "reset within what the master sends": ("master", 1),
}
