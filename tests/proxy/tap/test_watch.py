"""Whether a proxy in the master's place answers."""

from __future__ import annotations

import socket
import threading
from typing import TYPE_CHECKING

import pytest

from inspector.host import pki
from inspector.lab.ca import LabCA
from inspector.lab.server import LabServer
from inspector.model import Request, Response
from inspector.proxy.identity import Credentials
from inspector.proxy.tap import watch as module
from inspector.proxy.tap.watch import Beat, Watch
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME = "puppet.example"


class Proxy:
    """What is asked."""

    def __init__(self, folder: Path) -> None:
        ca = LabCA(NAME)
        place = ca.enrol(folder / "ssl", NAME)
        self.status, self.paths = 200, list[str]()
        self.hangs = threading.Event()
        self.hangs.set()
        self.server = LabServer(lambda: ca.server_context(place), self.answer)

    def answer(self, request: Request, _: str | None) -> Response:
        self.paths.append(request.path)
        self.hangs.wait(30)
        return Response(status=self.status)


@pytest.fixture
def proxy(tmp_path: Path) -> Iterator[Proxy]:
    made = Proxy(tmp_path)
    made.server.start()
    yield made
    made.hangs.set()
    made.server.close()


@pytest.fixture
def watch(proxy: Proxy) -> Iterator[Watch]:
    made = Watch(proxy.server.address, NAME)
    yield made
    made.close()


@pytest.mark.parametrize(
    ("status", "beat"),
    [(200, Beat.ANSWERED), (403, Beat.ANSWERED), (404, Beat.ANSWERED), (502, Beat.MASTER_AWAY)],
)
def test_what_an_answer_means(status: int, beat: Beat, proxy: Proxy, watch: Watch) -> None:
    proxy.status = status
    assert watch.ask() is beat
    assert watch.ask() is beat
    assert proxy.paths == [module.PATH] * 2


@pytest.mark.slow
@pytest.mark.parametrize("before", [True, False])
def test_a_master_that_is_slow_is_away(before: bool, proxy: Proxy) -> None:
    """The proxy itself makes a handshake, so it is there."""
    watch = Watch(proxy.server.address, NAME, patience=2)
    if before:
        assert watch.ask() is Beat.ANSWERED
    proxy.hangs.clear()
    assert watch.ask() is Beat.MASTER_AWAY
    proxy.hangs.set()
    assert eventually(lambda: watch.ask() is Beat.ANSWERED)
    watch.close()


def test_a_weak_certificate_of_a_site_is_shown() -> None:
    """OpenSSL does not load a key of 1024 bits by default."""
    key = pki.new_key(1024)
    leaf = pki.sign(pki.make_ca("CA"), key.public_key(), "node")
    Watch(("127.0.0.1", 1), NAME, Credentials((leaf,), key))


def test_who_makes_no_handshake_is_silent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as stopped:
        watch = Watch(stopped.getsockname(), NAME, patience=0.3)
        assert watch.ask() is Beat.SILENT
        watch.close()


def test_a_connection_that_was_closed_is_made_again(proxy: Proxy, watch: Watch) -> None:
    assert watch.ask() is Beat.ANSWERED
    proxy.server._http.cut()
    assert watch.ask() is Beat.ANSWERED


def test_nobody_there_is_silent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
    assert Watch(address, NAME).ask() is Beat.SILENT
