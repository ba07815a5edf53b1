"""The server takes another port if one was free and is not any more."""

from __future__ import annotations

import asyncio
import socket
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any
from unittest.mock import Mock

import pytest

from inspector.lab.ca import LabCA
from inspector.proxy.engine import server as module
from inspector.proxy.engine.server import Server
from inspector.proxy.runtime import DRAIN
from tests.support import proxies

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.proxy import options


@pytest.mark.slow
def test_two_proxies_that_start_at_once_listen_on_two_ports(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    """Both can reserve the same address; only one can listen there."""
    place = LabCA("master.example").enrol(tmp_path / "ssl", "proxy.example")
    given = {"puppet_listen": proxies.HOST, "puppet_master": "master.example", "puppet_ssldir": str(place.path)}
    server = Server({**given, "puppet_capture": str(tmp_path / "c.sqlite")})
    bind, bound = server._bind, list[tuple[str, int]]()
    others: list[socket.socket] = []

    async def overtaken(settings: options.Settings, *, shared: bool) -> options.Settings:
        settings = await bind(settings, shared=shared)
        bound.append(settings.listen)
        if not others:
            others.append(socket.create_server(settings.listen))
        else:
            asyncio.get_running_loop().call_later(0.1, server.stopped.set)
        return settings

    monkeypatch.setattr(server, "_bind", overtaken)
    try:
        asyncio.run(server.serve())
    finally:
        for other in others:
            other.close()
    first, second = bound
    assert first != second
    assert f"{second[0]}:{second[1]}" in capfd.readouterr().out


@pytest.mark.parametrize(("of_run", "waits"), [(True, False), (False, True)])
def test_at_its_end_a_run_waits_for_no_agent_that_has_left(
    of_run: bool, waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command has ended by then; an agent elsewhere may still listen."""
    server, link = Server({}), Mock(busy=True, abandoned=True)
    server._plan, server._links = (Mock() if of_run else None), {link}
    server._runtime = Mock(settings=Mock(stands_in=False))
    now, pauses = [0.0], []

    async def pause(seconds: float) -> None:
        if seconds:
            pauses.append(seconds)
            now[0] += DRAIN

    of_asyncio: Any = SimpleNamespace(sleep=pause, to_thread=asyncio.to_thread)
    monkeypatch.setattr(module, "asyncio", of_asyncio)
    monkeypatch.setattr(module, "time", SimpleNamespace(monotonic=lambda: now[0]))
    asyncio.run(server._end())
    assert bool(pauses) is waits
    link.shut.assert_called_once()
