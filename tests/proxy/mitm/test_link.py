"""A connection in mitmproxy, without a network: what is read of it when, and what mitmproxy does for that."""

from __future__ import annotations

import asyncio
import socket
import time
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from mitmproxy import options
from mitmproxy.connection import ConnectionState
from mitmproxy.proxy import commands, events, mode_specs, server
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers import tls as layers
from mitmproxy.test import taddons, tflow
from OpenSSL import SSL

from inspector.proxy import limits
from inspector.proxy.faults.injection import Pace
from inspector.proxy.limits import FULL, HANDSHAKE, IDLE, PIECE
from inspector.proxy.limits.admission import Admission
from inspector.proxy.limits.agents import RESTING
from inspector.proxy.limits.pool import Turns
from inspector.proxy.limits.quota import Share
from inspector.proxy.limits.waiting_bytes import CONNECTION, untaken
from inspector.proxy.mitm import link as link_module
from inspector.proxy.mitm.fence import Clear, Exchange
from inspector.proxy.mitm.link import LEAST, Link, Links

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable


class Transport:
    """What a connection is sent through."""

    def __init__(self) -> None:
        self.log: list[Any] = []
        self.unsent = 0

    def get_write_buffer_size(self) -> int:
        return self.unsent

    def write(self, data: bytes) -> None:
        self.log.append(data)

    def is_closing(self) -> bool:
        return "abort" in self.log

    def __getattr__(self, name: str) -> Callable[[], None]:
        return lambda: self.log.append(name)

    def get_extra_info(self, _name: str) -> Any:
        return SimpleNamespace(fileno=lambda: 0, setsockopt=lambda *_: None)


class Handler:
    """mitmproxy's handler of a connection."""

    def __init__(self, client: Any, handle: Callable[[events.Event], Awaitable[None]] | None = None) -> None:
        self.events: list[Any] = []
        self._handle = handle
        self.transport = Transport()
        self.cancelled: list[bool] = []
        io = SimpleNamespace(
            reader=asyncio.StreamReader(),
            writer=SimpleNamespace(transport=self.transport),
            handler=SimpleNamespace(cancel=lambda: self.cancelled.append(True)),
        )
        self.transports = {client: io}

    async def server_event(self, event: events.Event) -> None:
        self.events.append(event)
        if self._handle:
            await self._handle(event)

    async def drain_writers(self) -> None:
        self.transport.log.append("drained")


def linked(handle: Any = None, *, verified: bool = False) -> Any:
    """A link whose connection is admitted; inside of an event loop."""
    client = tflow.tclient_conn()
    client.state = ConnectionState.OPEN
    made: Any = Link(Handler(client, handle), client, Admission(100_000, lambda _: None))
    made.ticket.verified = verified
    made.exchange, made.clear = Exchange(made.ticket), Clear()
    made.clear.over = True
    made.watch(client)
    return made


def reader_of(made: Any) -> Any:
    return made.handler.transports[made._client].reader


def arrived(made: Any) -> list[bytes]:
    """What mitmproxy got to handle."""
    return [event.data for event in made.handler.events]


# -- what mitmproxy does ----------------------------------------------------------------------------------
# Each of these is an assumption of this module. When one fails, mitmproxy has changed.


def test_mitmproxy_reads_a_connection_through_its_transports_only() -> None:
    class Served(server.SimpleConnectionHandler):
        pass

    read: list[int] = []

    class Reader:
        async def read(self, size: int) -> bytes:
            read.append(size)
            return b""

    async def play() -> None:
        writer: Any = SimpleNamespace(
            get_extra_info=lambda name, default=None: {"peername": ("::1", 1), "sockname": ("::1", 2)}.get(
                name, default
            ),
            close=lambda: None,
            is_closing=lambda: True,
        )
        mode: Any = mode_specs.ProxyMode.parse("regular")
        kind: Any = Served
        made = kind(asyncio.StreamReader(), writer, options.Options(), mode, {})
        made.layer = SimpleNamespace(handle_event=lambda _: [])
        made.transports[made.client].reader = Reader()
        task = asyncio.create_task(made.handle_connection(made.client))
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])

    with taddons.context():  # type: ignore[no-untyped-call]
        asyncio.run(play())
    assert len(read) == 1


def test_mitmproxy_handles_an_event_without_waiting() -> None:
    """Otherwise a turn would end before the work in it."""
    handled: list[events.Event] = []

    async def play() -> None:
        made: Any = object.__new__(server.SimpleConnectionHandler)
        made._server_event_lock = asyncio.Lock()
        made.timeout_watchdog = SimpleNamespace(register_activity=lambda: None)

        def handle(event: events.Event) -> list[commands.Command]:
            handled.append(event)
            return []

        made.layer = SimpleNamespace(handle_event=handle)
        with pytest.raises(StopIteration):
            made.server_event(events.Start()).send(None)

    asyncio.run(play())
    assert len(handled) == 1


def test_mitmproxy_closes_a_failed_handshake_without_its_alert() -> None:
    with taddons.context() as running:  # type: ignore[no-untyped-call]
        context = Context(tflow.tclient_conn(), running.options)
    made: Any = layers.ServerTLSLayer(context, tflow.tserver_conn())
    made.tls = SimpleNamespace()
    asked = list(made.on_handshake_error("bad certificate"))
    assert not any(isinstance(command, commands.SendData) for command in asked)
    assert any(isinstance(command, commands.CloseConnection) for command in asked)


# -- reading ----------------------------------------------------------------------------------------------


def test_mitmproxy_gets_only_the_end_of_what_is_read() -> None:
    async def play() -> None:
        made = linked(verified=True)
        reader = reader_of(made)
        reader._reader.feed_data(b"a" * (PIECE + 1))
        reader._reader.feed_eof()
        assert await reader.read(1) == b""
        assert [len(data) for data in arrived(made)] == [PIECE, 1]
        assert made.handler.transport.log == ["drained"] * 2

    asyncio.run(play())


def test_without_a_verified_certificate_a_connection_is_read_in_turns() -> None:
    async def play() -> None:
        made = linked()
        waiting: list[Callable[[], None]] = []
        made.turns = SimpleNamespace(add=lambda work, _payer: waiting.append(work))
        reader = reader_of(made)
        reader._reader.feed_data(b"hello")
        reading = asyncio.create_task(reader.read(1))
        await asyncio.sleep(0.01)
        assert (arrived(made), made.ticket.due, len(waiting)) == ([], 1, 1)
        waiting.pop()()
        assert (arrived(made), made.ticket.due) == ([b"hello"], 0), "within the turn"
        made.ticket.verified = True
        reader._reader.feed_data(b"more")
        await asyncio.sleep(0.01)
        assert arrived(made) == [b"hello", b"more"]
        assert not waiting, "a verified agent is read at once"
        reading.cancel()

    asyncio.run(play())


def test_what_an_agent_does_not_take_is_counted_and_the_longest_of_too_many_is_closed() -> None:
    async def play() -> None:
        made, other = linked(verified=True), linked(verified=True)
        other.ticket.limits = made.ticket.limits
        made.ticket.limits.bytes.share = Share(untaken(1000), 10 * CONNECTION)
        for each in (made, other):
            each.ticket.payer = "web1.example"
            each.handler.transport.unsent = 600
            each.count_unsent()
        await asyncio.sleep(0)
        closed = [bool(each.handler.cancelled) for each in (made, other)]
        assert (closed, made.ticket.limits.bytes.total) == ([True, False], untaken(600)), "the only one never is"
        other.handler.transport.unsent = 0
        other.count_unsent()
        assert made.ticket.limits.bytes.total == 0

    asyncio.run(play())


def test_what_is_read_is_counted_before_and_after_it_is_taken() -> None:
    async def play() -> None:
        made = linked(verified=True)
        counted: list[int] = []
        made.handler.transport.unsent = 7

        async def drained() -> None:
            counted.append(made.ticket.waiting_bytes)
            made.handler.transport.unsent = 0

        made.handler.drain_writers = drained
        reader = reader_of(made)
        reader._reader.feed_data(b"hello")
        reading = asyncio.create_task(reader.read(1))
        await asyncio.sleep(0.01)
        reading.cancel()
        assert (counted, made.ticket.waiting_bytes) == ([untaken(7)], 0)
        assert made.handler.transport.max_size == PIECE, "asyncio reads no more at a time"

    asyncio.run(play())


def test_who_leaves_before_its_turn_is_not_handled() -> None:
    async def play() -> None:
        made = linked()
        reader = reader_of(made)
        reader._reader.feed_data(b"hello")
        reading = asyncio.create_task(reader.read(1))
        await asyncio.sleep(0)
        assert made.ticket.due == 1
        reading.cancel()
        await asyncio.sleep(0.01)
        assert (arrived(made), made.ticket.due) == ([], 0)

    asyncio.run(play())


def test_a_turn_is_counted_in_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whose bytes take long is read in small pieces and in turns, with a verified certificate too."""
    now = [1000.0]
    monkeypatch.setattr(link_module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    costly = [True]
    added: list[int] = []

    class Counted(Turns):
        def add(self, work: Callable[[], None], payer: str = "") -> None:
            added.append(len(arrived(made)))
            super().add(work, payer)

    async def handle(_event: events.Event) -> None:
        now[0] += 1.0 if costly[0] else 0.0

    made: Any = None

    async def all_taken(pieces: int) -> None:
        for _ in range(100_000):
            if sum(map(len, arrived(made))) == pieces * PIECE:
                return
            await asyncio.sleep(0)
        raise AssertionError("something was not read")

    async def play() -> None:
        nonlocal made
        made = linked(handle, verified=True)
        made.turns = Counted()
        reader = reader_of(made)
        reader._reader.feed_data(b"a" * 2 * PIECE)
        reading = asyncio.create_task(reader.read(1))
        await all_taken(2)
        sizes = [len(data) for data in arrived(made)]
        assert sizes[:4] == [PIECE, PIECE // 2, PIECE // 4, PIECE // 8]
        assert LEAST in sizes
        assert added == list(range(1, len(sizes)))
        costly[0] = False
        reader._reader.feed_data(b"a" * 4 * PIECE)
        await all_taken(6)
        assert len(arrived(made)[-2]) == PIECE
        reading.cancel()

    asyncio.run(play())


def test_what_is_refused_before_tls_ends_the_connection() -> None:
    async def play() -> None:
        made = linked(verified=True)
        made.clear.over = False
        reader = reader_of(made)
        reader._reader.feed_data(b"a" * 10_000)
        assert await reader.read(1) == b""
        assert arrived(made) == []

    asyncio.run(play())


def test_nothing_comes_from_a_connection_that_is_closed() -> None:
    async def play() -> None:
        made = linked(verified=True)
        made._client.state = ConnectionState.CLOSED
        reader = reader_of(made)
        reader._reader.feed_data(b"more")
        reader._reader.feed_eof()
        assert await reader.read(1) == b""
        assert arrived(made) == []

    asyncio.run(play())


@pytest.mark.parametrize("why", ["held", "body"])
def test_an_agent_waits_while_its_body_would_only_wait_in_memory(why: str) -> None:
    async def play() -> None:
        made = linked(verified=True)
        made.agent = SimpleNamespace(passed=FULL + 1, since=0.0)
        made.held = why == "held"
        made.exchange.taken = None if made.held else 0
        reader = reader_of(made)
        reader._reader.feed_data(b"a")
        reading = asyncio.create_task(reader.read(1))
        await asyncio.sleep(0.01)
        assert (arrived(made), made.paused) == ([], True)
        made.held, made.exchange.taken = False, 1
        await asyncio.sleep(link_module.LOOK * 3)
        assert (arrived(made), made.paused) == ([b"a"], False)
        assert made.agent.since > 0, "its time begins again"
        reading.cancel()

    asyncio.run(play())


def test_an_answer_is_slowed_down_in_pieces() -> None:
    async def play() -> None:
        made = linked(verified=True)
        master = tflow.tserver_conn()
        master.state = ConnectionState.OPEN
        writer = SimpleNamespace(transport=Transport())
        made.handler.transports[master] = SimpleNamespace(reader=asyncio.StreamReader(), writer=writer)
        made.watch(master)
        made.pace = Pace(1000)
        reader = made.handler.transports[master].reader
        reader._reader.feed_data(b"a" * 250)
        reader._reader.feed_eof()
        assert await reader.read(1) == b""
        assert [len(data) for data in arrived(made)] == [100, 100, 50]

    asyncio.run(play())


# -- exchanges --------------------------------------------------------------------------------------------


def test_the_next_request_is_read_when_an_exchange_is_over() -> None:
    async def play() -> None:
        made = linked(verified=True)
        Link.open[made._client.id] = made
        made.exchange.begin(b"GET")
        made.pace = Pace(1)
        made.agent = SimpleNamespace(since=0.0, waiting=True)
        ended: list[Any] = []
        made.ticket.limits.agents.rest = ended.append
        flow = tflow.tflow(resp=True)
        flow.live, flow.client_conn = True, made._client
        Links().response(flow)
        assert (made.exchange.under_way, made.pace, ended) == (False, None, [made.ticket])
        assert made.agent.since > 0, "what was sent ahead counts from the answer on"
        await asyncio.sleep(0)
        assert arrived(made) == [b""], "mitmproxy reads what had arrived before"
        del Link.open[made._client.id]

    asyncio.run(play())


@pytest.mark.parametrize("end", ["room", "impatience", "the agent left"])
def test_a_request_waits_until_there_is_room_for_it(end: str, monkeypatch: pytest.MonkeyPatch) -> None:
    async def play() -> None:
        made = linked()
        made._admission.exchanges.share = Share(0, 0)
        Link.open[made._client.id] = made
        waiting = asyncio.create_task(made.room())
        await asyncio.sleep(link_module.LOOK * 2)
        assert made.held
        if end == "room":
            made._admission.exchanges.share = Share(1, 1)
        elif end == "impatience":
            waiting.cancel()
            await asyncio.wait([waiting])
            monkeypatch.setattr(link_module, "PATIENCE", -1.0)
            waiting = asyncio.create_task(made.room())
        else:
            del Link.open[made._client.id]
        assert await waiting is (end == "room")
        assert not made.held
        assert made._admission.refusals._reasons.total() == (end == "impatience")
        Link.open.pop(made._client.id, None)
        made._admission.close()

    asyncio.run(play())


HEAD, BODY = limits.HEAD_TIME, limits.BODY_TIME


@pytest.mark.parametrize(
    ("stalled", "age", "secured", "paused", "closed"),
    [
        (None, HANDSHAKE - 1, False, False, False),
        (None, HANDSHAKE + 1, False, False, True),
        (None, HANDSHAKE + 1, True, False, False),
        (("head", HEAD - 1), 1000, True, False, False),
        (("head", HEAD + 1), 1000, True, False, True),
        (("body", BODY - 1), 1000, True, False, False),
        (("body", BODY + 1), 1000, True, False, True),
        (("body", BODY + 1), 1000, True, True, False),
    ],
    ids=["handshake", "no handshake", "idle", "head", "no head", "body", "no body", "body that waits for us"],
)
def test_who_does_not_finish_what_it_began_is_closed(
    stalled: tuple[str, float] | None, age: float, secured: bool, paused: bool, closed: bool
) -> None:
    async def play() -> None:
        made = linked()
        made._client.timestamp_tls_setup = 1.0 if secured else None
        made.agent = SimpleNamespace(stalled=lambda _: stalled, over=False, waiting=False, since=time.monotonic())
        made.paused, made.ticket.since = paused, time.monotonic() - age
        made.check(time.monotonic())
        assert made.handler.transport.log == ["abort"] * closed
        assert made.handler.cancelled == [True] * closed

    asyncio.run(play())


@pytest.mark.parametrize(
    ("idle", "left", "more", "closed"),
    [
        (IDLE - 1, False, False, False),
        (IDLE + 1, False, False, True),
        (IDLE + 1, False, True, False),
        (RESTING - 1, True, False, False),
        (RESTING + 1, True, False, True),
        (IDLE + 1, True, True, False),
    ],
)
def test_what_is_idle_ends_as_the_masters_connection(idle: float, left: bool, more: bool, closed: bool) -> None:
    """``more``: another connection to the master is open, or a request is under way."""

    async def play() -> None:
        made = linked()
        made._client.timestamp_tls_setup = 1.0
        rest = iter([b"farewell"])
        shut: list[bool] = []
        made.agent = SimpleNamespace(
            stalled=lambda _: None, over=False, waiting=False, since=time.monotonic() - idle,
            shutdown=lambda: shut.append(True), bio_read=lambda _: next(rest, None) or raised(SSL.WantReadError()),
        )  # fmt: skip
        if left:
            made.leave_master(tflow.tserver_conn())
            made.exchange.under_way = more
        elif more:
            made.handler.transports[tflow.tserver_conn()] = made.handler.transports[made._client]
        made.check(time.monotonic())
        assert made.handler.transport.log == [b"farewell", "close"] * closed
        assert shut == [True] * closed

    asyncio.run(play())


def raised(error: Exception) -> bytes:
    raise error


def test_what_a_connection_had_is_let_go_when_the_last_of_both_sides_has_ended() -> None:
    async def play() -> None:
        made = linked()
        master, tls = tflow.tserver_conn(), SimpleNamespace()
        made.fence_master(tls, master)
        (fence,) = made.masters.values()
        made.handler.transports[master] = made.handler.transports.pop(made._client)
        made.handler.layer = SimpleNamespace(context=SimpleNamespace(layers=[1]))
        made.handler.timeout_watchdog = SimpleNamespace(callback=print)
        links = Links()
        Link.open[made._client.id] = made
        links.client_disconnected(made._client)
        assert made.handler.layer.context.layers == [1], "mitmproxy closes the connection to the master yet"
        del made.handler.transports[master]
        links.server_disconnected(cast("Any", SimpleNamespace(client=made._client, server=master)))
        assert (fence._tls, made.masters, made.handler.layer.context.layers) == (None, {}, [])
        assert made.handler.timeout_watchdog.callback is None
        fence.sendall(b"nobody gets it")

    asyncio.run(play())


def test_a_handshake_that_waits_for_its_turn_is_not_late() -> None:
    async def play() -> None:
        made = linked()
        made._client.timestamp_tls_setup = None
        made.ticket.since = time.monotonic() - 100
        made.ticket.await_turn()
        made.ticket.due_since = made.ticket.since
        made.check(time.monotonic())
        made.ticket.take_turn()
        made.check(time.monotonic())
        assert not made.handler.cancelled, "all of the time was ours"
        made.ticket.since -= HANDSHAKE
        made.check(time.monotonic())
        assert made.handler.cancelled

    asyncio.run(play())


def test_an_answer_is_broken_off_once_its_piece_is_sent() -> None:
    async def play() -> None:
        made = linked()
        made.agent = SimpleNamespace(left=None)
        made.cut_off(1)
        assert made.handler.transport.log == []
        await asyncio.sleep(0)
        assert (made.agent.left, made.handler.transport.log) == (1, ["close"])
        made.reset()
        await asyncio.sleep(0)
        assert made.handler.transport.log == ["close", "abort"]

    asyncio.run(play())


# -- admission --------------------------------------------------------------------------------------------


class Proxyserver:
    """The addon of mitmproxy's that has the handlers."""

    name = "proxyserver"

    def __init__(self, *handlers: tuple[Any, Handler]) -> None:
        self.connections = {client.id: handler for client, handler in handlers}


async def admitted(links: Links, client: Any) -> None:
    """Wait until a connection is admitted or refused."""
    if (waiting := links.client_connected(client)) is not None:
        await waiting


def test_who_is_not_admitted_is_served_nothing() -> None:
    async def play() -> None:
        clients = [tflow.tclient_conn() for _ in range(3)]
        for number, client in enumerate(clients):
            client.id, client.error = f"c{number}", None
        handlers = [Handler(client) for client in clients]
        with taddons.context(Proxyserver(*zip(clients, handlers, strict=True))):  # type: ignore[no-untyped-call]
            links, admission = Links(), Admission(100_000, lambda _: None)
            links._admission = admission
            admission._strangers.share = admission._known.share = Share(1, 1)
            admission.waiting.share = Share(0, 0)
            await admitted(links, clients[0])
            await admitted(links, clients[1])
            assert [client.error for client in clients] == [None, link_module.REFUSED, None]
            assert handlers[1].transport.log == ["abort"]
            for client in clients[:2]:
                links.client_disconnected(cast("Any", client))
            await admitted(links, clients[2])
            assert clients[2].error is None, "there is room again"
            links.client_disconnected(cast("Any", clients[2]))
            assert not Link.open.keys() & {client.id for client in clients}
            admission.close()

    asyncio.run(play())


def test_who_waits_for_its_admission_is_not_late_with_its_handshake_and_may_leave() -> None:
    async def play() -> None:
        clients = [tflow.tclient_conn() for _ in range(2)]
        for number, client in enumerate(clients):
            client.id, client.error, client.timestamp_tls_setup = f"c{number}", None, None
        handlers = [Handler(client) for client in clients]
        with taddons.context(Proxyserver(*zip(clients, handlers, strict=True))):  # type: ignore[no-untyped-call]
            links, admission = Links(), Admission(100_000, lambda _: None)
            links._admission = admission
            admission._strangers.share = admission._known.share = Share(1, 1)
            await admitted(links, clients[0])
            ours, theirs = ends = socket.socketpair()
            handlers[1].transport.get_extra_info = lambda _name: ours  # type: ignore[method-assign]
            waiting = asyncio.ensure_future(admitted(links, clients[1]))
            await asyncio.sleep(0)
            link = Link.open[clients[1].id]
            link.check(time.monotonic() + HANDSHAKE + 1)
            assert (handlers[1].transport.log, handlers[1].cancelled) == (["pause_reading"], []), "it waits for us"
            theirs.send(b"hello")
            handlers[1].transport.abort()
            links.client_disconnected(cast("Any", clients[0]))
            await waiting
            assert clients[1].error == link_module.REFUSED, "it has left: nothing is read of it"
            links.client_disconnected(cast("Any", clients[1]))
            admission.close()
            for end in ends:
                end.close()

    asyncio.run(play())


def test_who_cannot_be_admitted_is_refused(caplog: pytest.LogCaptureFixture) -> None:
    async def play() -> None:
        client = tflow.tclient_conn()
        client.error = None
        with taddons.context(Proxyserver()):  # type: ignore[no-untyped-call]
            links = Links()
            links._admission = Admission(100_000, lambda _: None)
            await admitted(links, client)
        assert client.error == link_module.REFUSED

    asyncio.run(play())
    assert "could not admit" in caplog.text
