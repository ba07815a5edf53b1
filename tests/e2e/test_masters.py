"""Masters that break off, or that send without end: they collude with somebody, or are broken themselves."""

from __future__ import annotations

import contextlib
import itertools
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from tests.e2e.wire import Peer, ScriptedMaster, reset
from tests.support.floods import resident

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterable, Iterator

    from inspector.lab import Lab
    from tests.support.proxies import Proxied

NAME = "web1.lab.example"
NODE = f"/puppet/v3/node/{NAME}?environment=production"
GET = f"GET {NODE} HTTP/1.1\r\nHost: n\r\n\r\n".encode()
OK = b"HTTP/1.1 200 OK\r\n"
WHOLE = OK + b"Connection: close\r\nContent-Length: 2\r\n\r\n{}"
LONG = 2**20
BROKEN = {
    "a short body": OK + b"Content-Length: 100\r\n\r\n" + b"a" * 50,
    "a short body, not begun": OK + b"Content-Length: 100\r\n\r\n",
    "a long body": OK + b"Content-Length: %d\r\n\r\n" % LONG + b"a" * (LONG // 2),
    "chunks": OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
    "a chunk": OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n9\r\nhe",
}
ENDLESS: dict[str, tuple[bytes, Callable[[int], bytes]]] = {
    "headers": (OK, lambda number: b"X-%d: %b\r\n" % (number, b"a" * 8000)),
    "one header": (OK + b"X: ", lambda _: b"a" * 8192),
    "interim answers": (b"", lambda _: b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\n" * 200),
    "continues": (b"", lambda _: b"HTTP/1.1 100 Continue\r\n\r\n" * 300),
    "chunks": (OK + b"Transfer-Encoding: chunked\r\n\r\n", lambda _: b"2000\r\n" + b"a" * 8192 + b"\r\n"),
    "a chunk's size": (OK + b"Transfer-Encoding: chunked\r\n\r\n1;", lambda _: b"a" * 8192),
    "trailers": (OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\n", lambda number: b"X-%d: a\r\n" % number * 500),
    "a body without a length": (OK + b"\r\n", lambda _: b"a" * 8192),
    "an upgrade": (
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n",
        lambda _: b"a" * 8192,
    ),
    "HTTP/2": (b"\0\0\0\4\0\0\0\0\0", lambda _: b"\0\0\x08\6\0\0\0\0\0" + b"a" * 8),
}


@contextmanager
def scripted(lab: Lab, answer: Callable[[], Iterable[bytes]]) -> Iterator[ScriptedMaster]:
    """A master that answers one request of each connection with these pieces, and resets it."""

    def context() -> ssl.SSLContext:
        context = lab.master.context()
        context.set_alpn_protocols(["h2"])
        return context

    def serve(connection: ssl.SSLSocket) -> None:
        connection.settimeout(2)
        connection.recv(65536)
        for piece in answer():
            connection.sendall(piece)
            if master.over.is_set():
                break
        time.sleep(0.2)  # a reset takes back what was not read yet
        reset(connection)

    with ScriptedMaster(context, serve) as master:
        yield master


def received(peer: Peer, seconds: float = 5.0) -> bytes:
    """Everything that comes as the answer to a request, for some seconds."""
    data, until = b"", time.monotonic() + seconds
    with contextlib.suppress(OSError), peer.connect() as connection:
        connection.sendall(GET)
        connection.settimeout(seconds)
        while time.monotonic() < until and (piece := connection.recv(65536)):
            data = (data + piece)[:LONG]
    return data


@pytest.mark.both_roads
def test_a_master_that_breaks_off_leaves_a_broken_connection(lab: Lab, proxied: Proxied) -> None:
    place = lab.agent(NAME, enrolled=True).place
    answers = [b""]
    with scripted(lab, lambda: answers) as master, proxied(lab, puppet_master=master.target) as proxy:
        for name, answer in BROKEN.items():
            answers[:] = [answer]
            direct = received(Peer(master.address, lab.proxy_name))
            assert direct == answer
            # Chunks are passed on as they arrive, not as they were made.
            got, whole = received(Peer.of(proxy.address, lab.proxy_name, place)), b"7\r\nhellohe\r\n"
            same = direct.replace(b"9\r\nhe", b"2\r\nhe\r\n")
            assert got.replace(whole, b"5\r\nhello\r\n2\r\nhe\r\n") == same, name
    assert not any("internal error" in line or "Traceback" in line for line in proxy.lines)


@pytest.mark.both_roads
def test_what_a_master_sends_without_end_does_not_fill_the_memory(lab: Lab, proxied: Proxied) -> None:
    place = lab.agent(NAME, enrolled=True).place
    pieces: list[Iterable[bytes]] = []
    with scripted(lab, lambda: pieces.pop()) as master, proxied(lab, puppet_master=master.target) as proxy:
        peer = Peer.of(proxy.address, lab.proxy_name, place)
        pieces.append([WHOLE])
        assert received(peer).endswith(b"{}")
        before = resident(proxy.process.pid)
        for name, (begin, more) in ENDLESS.items():
            pieces.append(itertools.chain([begin], map(more, range(20_000))))
            received(peer, 1.5)
            assert resident(proxy.process.pid) - before < 32 * 2**20, name
            pieces.append([WHOLE])
            assert received(peer).endswith(b"{}"), name
    assert not any("internal error" in line or "Traceback" in line for line in proxy.lines)


@pytest.mark.both_roads
def test_interim_answers_and_trailers_are_left_out(lab: Lab, proxied: Proxied) -> None:
    place = lab.agent(NAME, enrolled=True).place
    chunked = OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n"
    answers = [b"HTTP/1.1 103 Early Hints\r\nLink: a\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n" + chunked + b"X: a\r\n\r\n"]
    with scripted(lab, lambda: answers) as master, proxied(lab, puppet_master=master.target) as proxy:
        peer = Peer.of(proxy.address, lab.proxy_name, place)
        with peer.connect() as connection:
            connection.sendall(GET)
            connection.settimeout(5)
            data = b""
            while not data.endswith(b"0\r\n\r\n"):
                data += connection.recv(65536)
        assert data == chunked + b"\r\n"


@pytest.mark.both_roads
def test_an_agent_cannot_speak_http_2(lab: Lab, proxied: Proxied) -> None:
    place = lab.agent(NAME, enrolled=True).place
    with proxied(lab) as proxy:
        peer = Peer.of(proxy.address, lab.proxy_name, place)
        peer.context().set_alpn_protocols(["h2", "http/1.1"])
        with peer.connect() as connection:
            assert connection.selected_alpn_protocol() is None
            connection.sendall(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0\0")
            connection.settimeout(10)
            assert connection.recv(12) in (b"HTTP/1.1 400", b"")
        assert peer.ask("GET", NODE).status == 200
    assert len(lab.master.received) == 1
