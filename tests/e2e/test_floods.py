"""What somebody without a certificate could send to stop the proxy or to fill its memory. Each of these once worked."""

from __future__ import annotations

import contextlib
import re
import socket
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.e2e.wire import Peer, read

if TYPE_CHECKING:
    import ssl

    from inspector.lab import Lab
    from inspector.proxy.launcher import Proxy
    from tests.support.proxies import Proxied

NAME = "web1.lab.example"
NODE = f"/puppet/v3/node/{NAME}?environment=production"
START = b"GET /puppet/v3/node/x?environment=production HTTP/1.1\r\nHost: n\r\n"
POISONED = f"/puppet/v3/node/x?password{'1' * 40}x=hunter2zz"
FLOODS = {
    "distinct claims": (START + b"".join(b"X-SSL-%d: 1\r\n" % number for number in range(6000)) + b"\r\n", 431),
    "a folded header": (START + b"X: a\r\n" + b" a\r\n" * 250_000 + b"\r\n", 400),
    "a header without end": (START + b"X: " + b"a" * 2**23, 431),
    "a first line without end": (b"GET /" + b"a" * 2**23, 431),
    "a chunk size without end": (START + b"Transfer-Encoding: chunked\r\n\r\n1;" + b"a" * 2**20, 400),
}


def flood(connection: ssl.SSLSocket, data: bytes) -> int:
    """Send data as far as it is taken; return the status of the answer."""
    with contextlib.suppress(OSError):
        connection.sendall(data)
    return read(connection).status


def resident(proxy: Proxy) -> int:
    """The resident memory of a proxy in bytes."""
    found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{proxy.process.pid}/status").read_text())
    assert found
    return int(found[1]) * 1024


@pytest.mark.parametrize("own", [False, True], ids=["mitmdump", "own"])
def test_a_flood_gets_one_answer_and_the_next_agent_is_served(lab: Lab, proxied: Proxied) -> None:
    place = lab.agent(NAME, enrolled=True).place
    with proxied(lab) as proxy:
        anybody, agent = Peer(proxy.address, lab.proxy_name), Peer.of(proxy.address, lab.proxy_name, place)
        assert agent.ask("GET", NODE).status == 200
        before = resident(proxy)
        for name, (data, status) in FLOODS.items():
            # It may close before everything was sent: then the answer is lost on the way.
            with anybody.connect() as connection, contextlib.suppress(ConnectionError):
                assert flood(connection, data) == status, name
            assert agent.ask("GET", NODE).status == 200, name
        assert resident(proxy) - before < 64 * 2**20
    assert not any("internal error" in line for line in proxy.lines)


def test_unfinished_bodies_do_not_fill_the_memory(lab: Lab, proxied: Proxied) -> None:
    place = lab.agent(NAME, enrolled=True).place
    head = f"PUT /puppet/v3/report/{NAME}?environment=production HTTP/1.1\r\nHost: n\r\nContent-Length: 1000000\r\n\r\n"
    with proxied(lab) as proxy, contextlib.ExitStack() as connections:
        agent = Peer.of(proxy.address, lab.proxy_name, place)
        assert agent.ask("GET", NODE).status == 200
        before = resident(proxy)
        anybody = Peer(proxy.address, lab.proxy_name)
        for _ in range(200):
            connection = connections.enter_context(anybody.connect())
            connection.sendall(head.encode() + b"a" * 900_000)
        assert agent.ask("GET", NODE).status == 200
        assert resident(proxy) - before < 100 * 2**20, "of 180 MB"


def test_a_name_with_digits_stops_no_analysis(lab: Lab, proxied: Proxied) -> None:
    place = lab.agent(NAME, enrolled=True).place
    with proxied(lab) as proxy:
        anybody, agent = Peer(proxy.address, lab.proxy_name), Peer.of(proxy.address, lab.proxy_name, place)
        with contextlib.suppress(ConnectionError):
            anybody.ask("GET", POISONED, headers={"X-Client-DN": "CN=x"})
        assert agent.ask("GET", NODE).status == 200
    assert any(f"  {NAME} " in line and "node" in line for line in proxy.lines), "the next one was analyzed too"


def test_silence_in_the_handshake_takes_no_agent_its_place(lab: Lab, proxied: Proxied) -> None:
    place = lab.agent(NAME, enrolled=True).place
    with proxied(lab) as proxy, contextlib.ExitStack() as connections:
        for _ in range(300):
            connections.enter_context(socket.create_connection(proxy.address))
        assert Peer.of(proxy.address, lab.proxy_name, place).ask("GET", NODE).status == 200
