"""A connection of the proxy's, without a network: what mitmproxy does for its own ones is done for ours."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from dataclasses import dataclass
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest
from mitmproxy.addons import next_layer
from mitmproxy.connection import ConnectionState
from mitmproxy.exceptions import AddonHalt
from mitmproxy.proxy import commands, events, mode_servers
from mitmproxy.proxy.context import Context
from mitmproxy.proxy.layers.http import HttpLayer, HTTPMode, HttpStream
from mitmproxy.proxy.layers.http._hooks import (
    HttpRequestHeadersHook,
    HttpRequestHook,
    HttpResponseHeadersHook,
    HttpResponseHook,
)
from mitmproxy.proxy.tunnel import TunnelLayer
from mitmproxy.test import taddons, tflow

from inspector.proxy import limits
from inspector.proxy.limits import HANDSHAKE, PIECE, READ
from inspector.proxy.limits.admission import Admission
from inspector.proxy.limits.pool import Turns
from inspector.proxy.limits.quota import Share
from inspector.proxy.mitm import fence, handler

if TYPE_CHECKING:
    from collections.abc import Iterator


class Writer:
    """What went out, call by call."""

    def __init__(self, log: list[Any], *, closing: bool = False) -> None:
        self._log = log
        self._closing = closing

    def is_closing(self) -> bool:
        return self._closing

    def write(self, data: bytes) -> None:
        self._log.append(data)


def handler_of(*addons: Any) -> Any:
    """One without layers."""
    made: Any = object.__new__(handler.Handler)
    made.pace = None
    made._events, made._processing, made._closed, made._unsent = deque(), False, False, {}
    chain = list(addons)
    made.listeners = handler.Listeners(SimpleNamespace(chain=chain, lookup=dict(enumerate(chain))))
    made.timeout_watchdog = SimpleNamespace(register_activity=lambda: None, disarm=Disarmed)
    made.transports, made.client, made.ticket = {}, None, None
    return made


class Disarmed:
    """No time-out while somebody waits."""

    times = 0

    def __enter__(self) -> None:
        Disarmed.times += 1

    def __exit__(self, *_: object) -> None:
        pass


def played(asked: list[commands.Command], writers: dict[Any, Writer], log: list[Any]) -> None:
    """One event, on which mitmproxy's layers ask for all this."""
    made = handler_of()
    made.layer = SimpleNamespace(handle_event=lambda _event: asked)
    made.transports = {connection: SimpleNamespace(writer=writer) for connection, writer in writers.items()}
    made.close_connection = lambda connection, half_close: log.append((connection, half_close))
    asyncio.run(made.server_event(events.Start()))


def test_what_belongs_together_is_sent_together() -> None:
    log: list[Any] = []
    agent = tflow.tclient_conn()
    head, body = commands.SendData(agent, b"head"), commands.SendData(agent, b"body")
    played([head, body], {agent: Writer(log)}, log)
    assert log == [b"headbody"]


def test_nothing_is_sent_after_the_end_of_a_connection() -> None:
    log: list[Any] = []
    agent, master, gone = tflow.tclient_conn(), tflow.tserver_conn(), tflow.tserver_conn()
    asked: list[commands.Command] = [
        commands.SendData(agent, b"answer"),
        commands.CloseConnection(agent),
        commands.SendData(master, b"lost"),
        commands.SendData(gone, b"lost"),
    ]
    played(asked, {agent: Writer(log), master: Writer(log, closing=True)}, log)
    assert log == [b"answer", (agent, False)]


# -- hooks ------------------------------------------------------------------------------------------------


def called(*addons: Any, flow: Any = None) -> list[str]:
    """The layers' hook ``response`` for addons, and what the layers then get."""
    log: list[str] = []

    def layers(event: events.Event) -> Iterator[commands.Command]:
        if isinstance(event, events.Start):
            yield HttpResponseHook(flow or tflow.tflow(resp=True))
        else:
            log.append(type(event).__name__)

    made = handler_of(*addons)
    made.layer = SimpleNamespace(handle_event=layers)

    async def play() -> None:
        await made.server_event(events.Start())
        for _ in range(5):
            await asyncio.sleep(0)

    asyncio.run(play())
    return log


class Addon:
    """Says that it was called, and what it was to do then."""

    def __init__(self, log: list[str], name: str, error: Exception | None = None) -> None:
        self._log = log
        self._name = name
        self._error = error

    def response(self, _flow: Any) -> None:
        self._log.append(self._name)
        if self._error:
            raise self._error


class Waiting(Addon):
    """Has to be waited for."""

    async def response(self, flow: Any) -> None:  # type: ignore[override]
        await asyncio.sleep(0)
        super().response(flow)


@dataclass
class HttpEvent(events.Event):
    """At which the layers ask for a hook."""

    hook: commands.StartHook


class Parent:
    """Has another addon in it, as a script has."""

    def __init__(self, child: Addon) -> None:
        self.addons = [child]


def test_addons_are_called_in_their_order_and_then_notified_of_the_change() -> None:
    log: list[str] = []
    watching = SimpleNamespace(update=lambda flows: log.append(f"{len(flows)} changed"), addons=[])
    addons = (Addon(log, "first"), watching, Parent(Addon(log, "child")), Waiting(log, "waiting"), Addon(log, "last"))
    assert called(*addons) == ["HookCompleted"]
    assert log == ["first", "child", "waiting", "last", "1 changed"]


def test_an_addon_that_fails_concerns_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    log: list[str] = []
    addons = (Addon(log, "a", ValueError("one")), Waiting(log, "b", ValueError("two")), Addon(log, "c"))
    assert called(*addons) == ["HookCompleted"]
    assert log == ["a", "b", "c"]
    assert [str(record.exc_info and record.exc_info[1]) for record in caplog.records] == ["one", "two"]


def test_an_addon_can_be_the_last_to_be_asked() -> None:
    halt = AddonHalt()  # type: ignore[no-untyped-call]
    for kind in (Addon, Waiting):
        log: list[str] = []
        assert called(kind(log, "a", halt), Addon(log, "b")) == ["HookCompleted"]
        assert log == ["a"]


def test_a_module_of_a_hooks_name_is_no_hook() -> None:
    log: list[str] = []
    script: Any = ModuleType("script")
    script.response = ModuleType("response")
    assert called(script, Addon(log, "a")) == ["HookCompleted"]
    assert log == ["a"]


def test_a_flow_that_is_held_is_waited_for() -> None:
    flow = tflow.tflow(resp=True)
    flow.intercept()  # type: ignore[no-untyped-call]
    Disarmed.times = 0
    assert called(flow=flow) == []
    assert Disarmed.times == 1
    flow = tflow.tflow(resp=True)

    class Holds(Addon):
        def response(self, flow: Any) -> None:
            flow.intercept()
            asyncio.get_running_loop().call_soon(flow.resume)

    assert called(Holds([], ""), flow=flow) == ["HookCompleted"]


def test_an_addon_that_comes_later_is_asked_too() -> None:
    with taddons.context() as context:  # type: ignore[no-untyped-call]
        addons: Any = context.master.addons
        listeners = handler.Listeners(addons)
        before = len(listeners.of("response"))
        log: list[str] = []
        addon = Addon(log, "late")
        addon.name = "late"  # type: ignore[attr-defined]
        addons.add(addon)
        assert len(listeners.of("response")) == before + 1
        addons.remove(addon)
        assert len(listeners.of("response")) == before


def test_a_hook_within_an_exchange_is_over_where_it_began(monkeypatch: pytest.MonkeyPatch) -> None:
    def handle_event(_stream: HttpStream, event: Any) -> Iterator[commands.Command]:
        if isinstance(event, HttpEvent):
            yield event.hook
        else:
            yield commands.SendData(tflow.tclient_conn(), b"after the hook")

    monkeypatch.setattr(HttpStream, "handle_event", handle_event)

    def given(hook: type[commands.StartHook], kind: type[Addon]) -> list[str]:
        log: list[str] = []
        addon = kind(log, "called")
        setattr(addon, hook.name, addon.response)
        stream: Any = object.__new__(type("Stream", (handler._Stream,), {"listeners": handler_of(addon).listeners}))
        asked = list(stream.handle_event(HttpEvent(hook(tflow.tflow(resp=True)))))
        for command in asked:
            if call := getattr(command, "call", None):
                call.waiting.close()
        return log + [type(command).__name__ for command in asked]

    assert given(HttpRequestHook, Addon) == ["called", "SendData"]
    assert given(HttpResponseHeadersHook, Addon) == ["called", "SendData"]
    # It waits for the event loop, and is not called twice.
    assert given(HttpRequestHook, Waiting) == ["HttpRequestHook"]
    # At the ends of an exchange the next one must not begin before all layers are done with this one.
    assert given(HttpRequestHeadersHook, Addon) == ["HttpRequestHeadersHook"]
    assert given(HttpResponseHook, Addon) == ["HttpResponseHook"]


def test_mitmproxy_gets_its_own_back() -> None:
    theirs = mode_servers.ProxyConnectionHandler, next_layer.HttpLayer  # type: ignore[attr-defined]
    with taddons.context() as context:  # type: ignore[no-untyped-call]
        handler.install(context.master.addons, cast("Admission", None))
        assert issubclass(mode_servers.ProxyConnectionHandler, handler.Handler)
        handler.uninstall()
    assert (mode_servers.ProxyConnectionHandler, next_layer.HttpLayer) == theirs  # type: ignore[attr-defined]


# -- reading ----------------------------------------------------------------------------------------------


class Transport:
    """Remembers whether it reads."""

    def __init__(self) -> None:
        self.log: list[str] = []

    def pause_reading(self) -> None:
        self.log.append("paused")

    def resume_reading(self) -> None:
        self.log.append("resumed")

    def is_closing(self) -> bool:
        return False


def test_what_comes_is_taken_at_once_and_its_end_is_read() -> None:
    taken: list[int] = []

    def receive(_connection: Any, data: bytes) -> bool:
        taken.append(len(data))
        return False

    made: Any = SimpleNamespace(receive=receive, ticket=None)

    async def play() -> list[int]:
        reader = asyncio.StreamReader()
        reader.feed_data(b"x" * 300_000)  # before anybody took it
        taker = handler._DirectReader(made, tflow.tclient_conn(), reader, Transport())  # type: ignore[arg-type]
        before = [len(await taker.read(65_535)) for _ in range(2)]
        end = asyncio.create_task(taker.read(65_535))
        await asyncio.sleep(0)
        reader.feed_data(b"y" * 70_000)
        assert not end.done()
        reader.feed_eof()
        return [*before, len(await end)]

    assert asyncio.run(play()) == [READ, 300_000 - READ, 0]
    assert taken == [70_000]


def test_no_more_is_read_than_can_be_sent() -> None:
    transport = Transport()
    pauses: list[bool] = []
    waiting = [True]

    async def play() -> None:
        sent = asyncio.Event()
        made: Any = SimpleNamespace(
            receive=lambda *_: True,
            ticket=None,
            drain_writers=sent.wait,
            pause=lambda _, paused: pauses.append(paused),
            waits=lambda _: waiting.pop() if waiting else False,
        )
        taker = handler._DirectReader(made, tflow.tclient_conn(), asyncio.StreamReader(), transport)  # type: ignore[arg-type]
        taker._receive(b"much")
        await asyncio.sleep(0)
        assert transport.log == ["paused"]
        assert pauses == [True]
        sent.set()
        await asyncio.sleep(0)
        assert transport.log == ["paused"], "what was received still waits for the master"
        await asyncio.sleep(handler.LOOK * 4)

    asyncio.run(play())
    assert transport.log == ["paused", "resumed"]
    assert pauses == [True, False]


def test_without_a_verified_certificate_a_connection_is_read_in_turns() -> None:
    transport, taken = Transport(), list[bytes]()
    ticket: Any = SimpleNamespace(due=0, limits=SimpleNamespace(turns=Turns()))

    async def play() -> None:
        made: Any = SimpleNamespace(receive=lambda _, data: taken.append(data), ticket=ticket)
        reader = handler._DirectReader(made, tflow.tclient_conn(), asyncio.StreamReader(), transport)  # type: ignore[arg-type]
        reader._receive(b"hello")
        assert (taken, transport.log, ticket.due) == ([], ["paused"], 1)
        await asyncio.sleep(0)
        assert (taken, transport.log, ticket.due) == ([b"hello"], ["paused", "resumed"], 0)

    asyncio.run(play())


def test_a_verified_agent_is_read_at_once() -> None:
    made, client = handler_of(), tflow.tclient_conn()
    client.state = ConnectionState.OPEN
    made.client, made._dispatch = client, lambda _: False
    made.ticket = ticket = SimpleNamespace(verified=False, heard=0.0)
    made.receive(client, b"a")
    assert ticket.heard > 0
    assert made.ticket is ticket
    ticket.verified = True
    made.receive(client, b"a")
    assert made.ticket is None


def test_who_is_not_admitted_is_served_nothing() -> None:
    async def play() -> None:
        admission = Admission(100_000, lambda _: None)
        answers: list[bytes] = []
        handled: list[str] = []
        refused = asyncio.Event()

        async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            made = handler_of()
            made.client = client = tflow.tclient_conn()
            client.peername = writer.get_extra_info("peername")
            made.transports, made.admission = {client: SimpleNamespace(writer=writer)}, admission
            made.timeout_watchdog, made.layer = SimpleNamespace(), SimpleNamespace(context=SimpleNamespace(layers=[]))

            async def handle() -> None:
                handled.append(client.id)
                await reader.readexactly(5)  # what is unread when it is closed makes it a reset
                await refused.wait()
                writer.write(b"served")
                writer.close()

            made._handle = handle
            await made.handle_client()

        async def ask(address: tuple[str, int]) -> None:
            reader, writer = await asyncio.open_connection(*address)
            writer.write(b"hello")
            try:
                answers.append(await reader.read())
            except ConnectionError:
                answers.append(b"reset")
            writer.close()

        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        address = server.sockets[0].getsockname()
        first = asyncio.create_task(ask(address))
        while not handled:
            await asyncio.sleep(0.001)
        admission._strangers.share = admission._known.share = Share(1, 1)
        second = asyncio.create_task(ask(address))
        while not admission._strangers.ready:  # it has sent something: another one is refused instead
            await asyncio.sleep(0.001)
        admission.waiting.share = Share(0, 0)
        await ask(address)
        assert answers == [b"reset"]
        refused.set()
        await asyncio.gather(first, second)
        assert answers == [b"reset", b"served", b"served"]
        server.close()
        await server.wait_closed()
        admission.close()

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
    stalled: tuple[str, float] | None,
    age: float,
    secured: bool,
    paused: bool,
    closed: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cancelled: list[str] = []
    client = tflow.tclient_conn()
    client.timestamp_tls_setup = 1.0 if secured else None
    monkeypatch.setattr(fence.FencedServer, "open", {client.id: SimpleNamespace(stalled=lambda _: stalled)})

    async def play() -> None:
        made = handler_of()
        made.client, made._paused, made._opened = client, paused, time.monotonic() - age
        made.transports = {client: SimpleNamespace(handler=SimpleNamespace(cancel=cancelled.append))}
        made._check_progress()
        made._check.cancel()

    asyncio.run(play())
    assert len(cancelled) == closed


def test_a_handshake_that_waits_for_its_turn_is_not_late(monkeypatch: pytest.MonkeyPatch) -> None:
    cancelled: list[str] = []
    client = tflow.tclient_conn()
    client.timestamp_tls_setup = None
    monkeypatch.setattr(fence.FencedServer, "open", {})

    async def play() -> None:
        made = handler_of()
        made.client, made._paused, made._opened = client, False, time.monotonic() - 100
        made.ticket = SimpleNamespace(due=1)
        made.transports = {client: SimpleNamespace(handler=SimpleNamespace(cancel=cancelled.append))}
        for due in (1, 0):
            made.ticket.due = due
            made._check_progress()
            made._check.cancel()
        assert not cancelled, "it has some time left after its turn"
        made._opened -= HANDSHAKE
        made._check_progress()
        made._check.cancel()
        assert cancelled

    asyncio.run(play())


def test_nothing_comes_from_a_connection_that_is_closed() -> None:
    made = handler_of()
    log: list[Any] = []

    def handle(event: events.Event) -> list[commands.Command]:
        log.append(event)
        return []

    made.layer = SimpleNamespace(handle_event=handle)
    connection = tflow.tclient_conn()
    connection.state = ConnectionState.OPEN
    assert made.receive(connection, b"data") is False
    connection.state = ConnectionState.CLOSED
    made.receive(connection, b"more")
    assert [event.data for event in log] == [b"data"]


# -- the end ----------------------------------------------------------------------------------------------


def test_what_a_connection_took_is_free_when_it_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    async def nothing(_handler: Any) -> None:
        pass

    monkeypatch.setattr(mode_servers.ProxyConnectionHandler, "handle_client", nothing)
    with taddons.context() as tools:  # type: ignore[no-untyped-call]
        context = Context(tflow.tclient_conn(), tools.options)
        top, exchanges = TunnelLayer(context, context.client, context.client), HttpLayer(context, HTTPMode.transparent)
        towards = context.fork()
        below = TunnelLayer(towards, context.server, context.server)
        exchanges.connections[context.server] = below
    made = handler_of()
    made.layer, made.client = top, context.client
    made.transports = {context.client: SimpleNamespace(writer=None)}

    async def handle() -> None:
        await made.handle_client()

    asyncio.run(handle())
    made._free()
    assert [vars(layer) for layer in (top, exchanges, below)] == [{}, {}, {}]
    # Who decides about a flow only now, decides nothing any more.
    asyncio.run(made.server_event(events.HookCompleted(HttpRequestHook(tflow.tflow()))))
    assert not made._events


def test_what_an_agent_sends_is_passed_on_in_small_pieces() -> None:
    """OpenSSL's buffers stay as large as the largest piece."""
    passed: list[int] = []
    made, client, server = handler_of(), tflow.tclient_conn(), tflow.tserver_conn()
    client.state = server.state = ConnectionState.OPEN

    def dispatch(event: Any) -> bool:
        passed.append(len(event.data))
        return len(passed) == 2

    made.client, made._dispatch = client, dispatch
    assert made.receive(client, bytes(PIECE * 2 + 1))
    assert passed == [PIECE, PIECE, 1]
    passed.clear()
    assert not made.receive(server, bytes(PIECE * 2 + 1))
    assert passed == [PIECE * 2 + 1]


def test_an_agent_waits_while_its_body_cannot_be_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    made, client = handler_of(), tflow.tclient_conn()
    client.state = ConnectionState.OPEN
    made.client, made._dispatch = client, lambda _: False
    served = SimpleNamespace(waits=lambda: True)
    monkeypatch.setattr(fence.FencedServer, "open", {client.id: served})
    assert made.receive(client, b"a")
    served.waits = lambda: False
    assert not made.receive(client, b"a")
