"""A connection of `puppet-inspector proxy`, without a network."""

from __future__ import annotations

import asyncio
from collections import deque
from types import SimpleNamespace
from typing import Any

from mitmproxy.proxy import commands, events
from mitmproxy.test import tflow

from inspector import server


class Writer:
    """What went out, call by call."""

    def __init__(self, log: list[Any], *, closing: bool = False) -> None:
        self._log = log
        self._closing = closing

    def is_closing(self) -> bool:
        return self._closing

    def write(self, data: bytes) -> None:
        self._log.append(data)


def played(asked: list[commands.Command], writers: dict[Any, Writer], log: list[Any]) -> None:
    """One event, on which mitmproxy's layers ask for all this."""
    made: Any = object.__new__(server._Handler)
    made._events, made._at_it, made._unsent, made.hooks = deque(), False, {}, {}
    made.layer = SimpleNamespace(handle_event=lambda _event: asked)
    made.timeout_watchdog = SimpleNamespace(register_activity=lambda: None)
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
    agent, master = tflow.tclient_conn(), tflow.tserver_conn()
    asked: list[commands.Command] = [
        commands.SendData(agent, b"answer"),
        commands.CloseConnection(agent),
        commands.SendData(master, b"lost"),
    ]
    played(asked, {agent: Writer(log), master: Writer(log, closing=True)}, log)
    assert log == [b"answer", (agent, False)]


def test_what_came_is_taken_at_once() -> None:
    async def read() -> list[int]:
        reader = asyncio.StreamReader()
        reader.feed_data(b"x" * 300_000)
        reader.feed_eof()
        taking = server._Reader(reader)
        return [len(await taking.read(65_535)) for _ in range(3)]

    assert asyncio.run(read()) == [server.READ, 300_000 - server.READ, 0]
