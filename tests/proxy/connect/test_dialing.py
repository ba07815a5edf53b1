"""Connections to servers, straight and behind a site's own HTTP proxy."""

from __future__ import annotations

import errno
import socket
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from inspector.proxy.connect import dialing
from inspector.proxy.connect.dialing import LONGEST, SiteProxy, SiteProxyError
from tests.support.rows import each_row

if TYPE_CHECKING:
    from collections.abc import Iterator

SERVER = ("puppet.example", 8140)
PATIENCE = 60.0
ESTABLISHED = b"HTTP/1.1 200 Connection established\r\nVia: squid\r\n\r\n"


@contextmanager
def proxy(answer: bytes) -> Iterator[tuple[tuple[str, int], list[bytes]]]:
    """An HTTP proxy that gives one answer; yields its address and what it is asked."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                data = b""
                while not data.endswith(b"\r\n\r\n"):
                    data += connection.recv(65536)
                asked.append(data)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname(), asked
        thread.join()


def test_a_server_is_reached_straight() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = server.getsockname()
        with dialing.dial(address, None, PATIENCE) as made:
            assert made.getpeername() == address
        bypassing = SiteProxy("192.0.2.1", 1, bypassed=("127.0.0.1",))
        with dialing.dial(address, bypassing, PATIENCE) as made:
            assert made.getpeername() == address


@pytest.mark.parametrize(
    ("server", "named"), [(("puppet.example", 8140), b"puppet.example:8140"), (("2001:db8::1", 1), b"[2001:db8::1]:1")]
)
def test_it_is_reached_through_the_sites_proxy(server: tuple[str, int], named: bytes) -> None:
    with proxy(ESTABLISHED + b"\x15the server speaks first") as (address, asked):
        with dialing.dial(server, SiteProxy(*address), PATIENCE) as made:
            received = b""
            while data := made.recv(100):
                received += data
        assert received == b"\x15the server speaks first", "what follows the answer is the server's"
    assert asked == [b"CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n" % (named, named)]


def test_all_addresses_of_a_name_share_the_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each that swallows what it gets would take all of it; one that the name has twice is tried once."""
    tried: list[tuple[str, float]] = []

    def connect(where: tuple[str, int], timeout: float) -> socket.socket:
        tried.append((where[0], round(timeout)))
        raise TimeoutError(where[0])

    names = ("2001:db8::1", "192.0.2.1", "192.0.2.1", "192.0.2.2")
    monkeypatch.setattr(
        "socket.getaddrinfo",
        lambda host, port, **_: [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (name, port)) for name in names],
    )
    monkeypatch.setattr("socket.create_connection", connect)
    with pytest.raises(TimeoutError, match="2001:db8::1"):
        dialing.dial(SERVER, None, 60.0)
    assert tried == [("2001:db8::1", 20), ("192.0.2.1", 30), ("192.0.2.2", 60)]


def test_the_proxy_gets_its_credentials() -> None:
    with proxy(ESTABLISHED) as (address, asked):
        dialing.dial(("p", 1), SiteProxy(*address, "user:a:b"), PATIENCE).close()
    assert b"\r\nProxy-Authorization: Basic dXNlcjphOmI=\r\n" in asked[0]


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"HTTP/1.1 407 Proxy Authentication Required\r\n\r\n", "407 Proxy Authentication Required"),
        (b"HTTP/1.0 503\r\n\r\n", "503"),
        (b"SSH-2.0-x\r\n", "no HTTP"),
        (b"", "no HTTP"),
        (b"HTTP/1.1 301 Moved\r\nX: " + b"a" * LONGEST + b"\r\n\r\n", "301 Moved"),
    ],
)
def test_a_proxy_may_refuse(answer: bytes, reason: str) -> None:
    """Then the agent gets its answer, if it was one of HTTP."""
    with proxy(answer) as (address, _), pytest.raises(SiteProxyError) as raised:
        dialing.dial(("puppet.example", 8140), SiteProxy(*address), PATIENCE)
    text = f"the HTTP proxy 127.0.0.1:{address[1]} does not connect with puppet.example:8140: {reason}"
    assert dialing.reason(raised.value) == str(raised.value) == text
    status, _, words = reason.partition(" ")
    expected = (words, int(status)) if status.isdigit() else (text, 502)
    assert dialing.answer(SERVER, raised.value) == expected


def test_a_proxy_may_be_gone() -> None:
    """The agent prints then what it prints without us: it could not connect to the proxy."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        _, port = server.getsockname()
    with pytest.raises(SiteProxyError) as raised:
        dialing.dial(("puppet.example", 8140), SiteProxy("127.0.0.1", port), PATIENCE)
    where = f"127.0.0.1:{port}"
    assert dialing.reason(raised.value) == f"the HTTP proxy {where} cannot be reached: Connection refused"
    reason = f'Connection refused - connect(2) for "127.0.0.1" port {port}'
    assert dialing.answer(SERVER, raised.value) == (f"Failed to open TCP connection to {where} ({reason})", 502)


@each_row(
    ("server", "served"),
    [
        (("puppet.example", 8140), False),
        (("a.puppet.example", 8140), False),
        (("puppetxexample", 8140), True),
        (("a.internal", 8140), False),
        (("internal", 8140), True),
        (("b.wild.test", 8140), False),
        (("test", 8140), True),
        (("ca.test", 8141), False),
        (("ca.test", 8140), True),
    ],
)
def test_no_proxy_names_the_ends_of_names(server: tuple[str, int], served: bool) -> None:
    """As Puppet::HTTP::Proxy.no_proxy? reads it."""
    site = SiteProxy("p", 1, bypassed=(" Puppet.Example", ".internal", "", "*.wild.test ", "ca.test:8141"))
    assert site.serves(*server) is served


def test_a_star_bypasses_the_proxy_for_all() -> None:
    assert not SiteProxy("p", 1, bypassed=("*",)).serves("puppet.example", 8140)
    assert SiteProxy("p", 1).serves("puppet.example", 8140)
    assert SiteProxy("p", 1, bypassed=("none",)).serves("puppet.example", 8140)


OPENING = "Failed to open TCP connection to puppet.example:8140"


@pytest.mark.parametrize(
    ("error", "reason", "words"),
    [
        (
            ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused"),
            "Connection refused",
            f'{OPENING} (Connection refused - connect(2) for "puppet.example" port 8140)',
        ),
        (
            socket.gaierror(socket.EAI_NONAME, "Name or service not known"),
            "Name or service not known",
            f"{OPENING} (getaddrinfo: Name or service not known)",
        ),
        (TimeoutError("timed out"), "Connection timed out", f"{OPENING} (execution expired)"),
        (
            TimeoutError(errno.ETIMEDOUT, "Connection timed out"),
            "Connection timed out",
            f'{OPENING} (Connection timed out - connect(2) for "puppet.example" port 8140)',
        ),
    ],
)
def test_the_reason_is_the_systems_and_the_words_are_rubys(error: OSError, reason: str, words: str) -> None:
    assert dialing.reason(error) == reason
    assert dialing.in_rubys_words(SERVER, error) == words
