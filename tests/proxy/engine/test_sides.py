"""The connection from the agent before TLS, and the one to the master before there is one."""

from __future__ import annotations

import asyncio
from typing import Any
from unittest.mock import Mock, call

import pytest

from inspector.proxy.connect.alert import SECRET, SentRecords
from inspector.proxy.engine.sides import AgentEnd, MasterEnd
from tests.support.ends import Tls, Transport


def test_a_connection_that_is_given_up_while_it_is_made_is_no_refusal() -> None:
    """TCP may connect in the moment in which the attempt is cancelled."""
    link, tls = Mock(), Tls()
    tls.do_handshake = lambda: link.began()  # type: ignore[method-assign]

    async def play() -> None:
        master = MasterEnd(link, tls, Mock(), None)  # type: ignore[arg-type]
        made: Any = Transport()

        async def connecting(*_: object) -> None:
            try:
                await asyncio.sleep(60)
            finally:
                master.connection_made(made)
                master.connection_lost(None)

        asyncio.get_running_loop().create_connection = connecting  # type: ignore[method-assign, assignment]
        master.open("192.0.2.1", 8140)
        await asyncio.sleep(0)
        master.drop()
        assert master._task
        await asyncio.wait([master._task])

    asyncio.run(play())
    assert [call[0] for call in link.method_calls] == ["master_lost"]


# -- an agent that uses the proxy as its HTTP proxy -------------------------------------------------------

CONNECT = b"CONNECT puppet.example:8140 HTTP/1.1\r\nHost: puppet.example:8140\r\n\r\n"


class Asking:
    """The connection of an agent that is to ask for a server."""

    def __init__(self) -> None:
        self.link = Mock()
        self.wire = Transport()
        self.end = AgentEnd(self.link)
        self.end.connection_made(self.wire)  # type: ignore[arg-type]
        self.end.asking = True
        self.link.reset_mock()


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_an_agent_asks_for_a_server_first(size: int) -> None:
    asking = Asking()
    for at in range(0, len(CONNECT), size):
        asking.end.take(CONNECT[at : at + size])
    assert asking.link.method_calls == [call.agent_asks(("puppet.example", 8140))]
    assert (asking.end.asking, asking.end.early, asking.wire.data) == (False, b"", b"")


def test_what_it_sends_behind_its_request_is_kept() -> None:
    asking = Asking()
    asking.end.take(CONNECT + b"\x16\x03\x01")
    assert asking.end.early == b"\x16\x03\x01"


@pytest.mark.parametrize("data", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01" + bytes(10_000)])
def test_who_asks_for_no_server_strays(data: bytes) -> None:
    asking = Asking()
    asking.end.take(data)
    assert [name for name, *_ in asking.link.method_calls] == ["agent_strays"]


def test_an_alert_is_the_last_that_is_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Transport, "get_write_buffer_size", lambda _: 0)
    asking = Asking()
    asking.end.tls, asking.end.secured = Tls(), 1.0  # type: ignore[assignment]
    assert not asking.end.send_alert(48), "nobody counts its records"
    asking.end.sent_records = SentRecords()
    assert not asking.end.send_alert(48), "its secret is not known"
    asking.end.on_secret(SECRET + b"00" * 32 + b" " + b"01" * 48)
    asking.end.on_secret(b"CLIENT_TRAFFIC_SECRET_0 00 02")
    assert asking.end.send_alert(48)
    assert asking.wire.data[:3] == b"\x17\x03\x03"
    assert asking.end.closed
    assert not asking.end.send_alert(48)
    assert len(asking.wire.data) == 5 + 3 + 16
