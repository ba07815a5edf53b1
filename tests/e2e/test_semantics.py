"""What HTTP/1 allows and agents hardly do: with each proxy as without one."""

from __future__ import annotations

import contextlib
import socket
import ssl
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from inspector.capture.store import Capture
from inspector.model import Gap
from tests.e2e.wire import Peer, ScriptedMaster, read, reset
from tests.support.floods import resident
from tests.support.proxies import exchanges, records
from tests.support.waiting import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from inspector.lab import Lab
    from tests.support.proxies import Proxied

NAME = "web1.lab.example"
TARGET = f"/puppet/v3/node/{NAME}?environment=production"
GET = f"GET {TARGET} HTTP/1.1\r\nHost: n\r\n\r\n".encode()
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"


def agent(lab: Lab, address: tuple[str, int]) -> Peer:
    return Peer.of(address, lab.proxy_name, lab.agent(NAME, enrolled=True).place)


@contextmanager
def through(lab: Lab, proxied: Proxied, serve: Callable[[ssl.SSLSocket], None]) -> Iterator[ssl.SSLSocket]:
    """A connection of an agent through the proxy to such a master."""
    with (
        ScriptedMaster(lab.master.context, serve) as master,
        proxied(lab, puppet_master=master.target) as proxy,
        agent(lab, proxy.address).connect() as connection,
    ):
        connection.settimeout(10)
        yield connection


def all_of(connection: ssl.SSLSocket) -> bytes:
    data = b""
    with contextlib.suppress(OSError):
        while piece := connection.recv(65536):
            data += piece
    return data


def ended(capture: Path) -> int:
    """How many connections to the master have ended."""
    with Capture.open(capture) as opened:
        return len([each for each in opened.connections() if each.leg.side == "master" and each.closed])


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        ("HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n"),
        ("HEAD", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"),
        ("GET", b"HTTP/1.1 204 No Content\r\nX-A: b\r\n\r\n"),
        ("GET", b"HTTP/1.1 304 Not Modified\r\nETag: a\r\n\r\n"),
        ("GET", b"HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n"),
    ],
)
def test_an_answer_without_a_body_ends_with_its_head(
    method: str, answer: bytes, lab: Lab, proxied: Proxied, capture: Path
) -> None:
    def serve(connection: ssl.SSLSocket) -> None:
        while connection.recv(65536):
            connection.sendall(answer)

    with through(lab, proxied, serve) as connection:
        for _ in range(2):
            connection.sendall(GET.replace(b"GET", method.encode(), 1))
            data = b""
            while len(data) < len(answer):
                data += connection.recv(65536)
            assert data == answer
    assert [exchange.response is not None for exchange in exchanges(capture)] == [True, True]


def test_an_answer_before_the_end_of_the_request_is_passed_on(lab: Lab, proxied: Proxied, capture: Path) -> None:
    answer = b"HTTP/1.1 413 Too Large\r\nConnection: close\r\nContent-Length: 3\r\n\r\nno\n"

    def serve(connection: ssl.SSLSocket) -> None:
        connection.recv(1000)
        connection.sendall(answer)
        all_of(connection)

    put = f"PUT /puppet/v3/report/{NAME} HTTP/1.1\r\nHost: n\r\nContent-Length: 50000000\r\n\r\n".encode()
    with through(lab, proxied, serve) as connection:
        connection.sendall(put + bytes(1000))
        assert read(connection).status == 413
    (exchange,) = exchanges(capture)
    assert exchange.response
    assert (exchange.response.status, exchange.response.body) == (413, b"no\n")


def test_a_master_may_close_a_connection_between_requests(lab: Lab, proxied: Proxied, capture: Path) -> None:
    connections = []

    def serve(connection: ssl.SSLSocket) -> None:
        connections.append(connection)
        connection.recv(65536)
        connection.sendall(OK)
        connection.unwrap()

    with through(lab, proxied, serve) as connection:
        for number in range(1, 4):
            connection.sendall(GET)
            assert read(connection).status == 200
            assert len(connections) == number
            assert eventually(lambda: ended(capture) == number), "the proxy has noticed"  # noqa: B023
    assert [exchange.error for exchange in exchanges(capture)] == [None] * 3
    assert len({exchange.master.id for exchange in exchanges(capture) if exchange.master}) == 3


def test_without_a_request_no_connection_to_the_master_is_made(lab: Lab, proxied: Proxied, capture: Path) -> None:
    connections: list[ssl.SSLSocket] = []
    with through(lab, proxied, connections.append) as connection:
        connection.sendall(GET[:-2])
        time.sleep(0.3)
    assert connections == []
    assert exchanges(capture) == []


@pytest.mark.parametrize("farewell", [True, False], ids=["close_notify", "FIN"])
def test_an_answer_ends_with_the_connection(farewell: bool, lab: Lab, proxied: Proxied, capture: Path) -> None:
    def serve(connection: ssl.SSLSocket) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\nabc")
        if farewell:
            connection.unwrap()
        else:
            connection.shutdown(socket.SHUT_WR)

    with through(lab, proxied, serve) as connection:
        connection.sendall(GET)
        assert all_of(connection) == b"HTTP/1.1 200 OK\r\n\r\nabc"
    (exchange,) = exchanges(capture)
    assert exchange.response
    assert (exchange.response.body, exchange.error) == (b"abc", None)


@pytest.mark.parametrize("line", ["CONNECT other.example:1", "GET https://other.example/"])
def test_nothing_but_the_master_can_be_reached(line: str, lab: Lab, proxied: Proxied) -> None:
    with proxied(lab) as proxy, agent(lab, proxy.address).connect() as connection:
        connection.settimeout(10)
        connection.sendall(f"{line} HTTP/1.1\r\nHost: other.example\r\n\r\n".encode())
        assert not connection.recv(12).startswith(b"HTTP/1.1 2")


def test_a_slow_agent_fills_no_memory(lab: Lab, proxied: Proxied) -> None:
    size = 100 * 2**20

    def serve(connection: ssl.SSLSocket) -> None:
        while connection.recv(65536):
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size)
            for _ in range(size // 2**16):
                connection.sendall(bytes(2**16))

    with (
        ScriptedMaster(lab.master.context, serve) as master,
        proxied(lab, puppet_master=master.target, puppet_keep_body="1M") as proxy,
    ):
        peer = agent(lab, proxy.address)
        with peer.connect() as connection:
            connection.sendall(GET)
            connection.recv(1)
            before = resident(proxy.process.pid)
            time.sleep(2)
            assert resident(proxy.process.pid) - before < 16 * 2**20


def test_a_slow_master_fills_no_memory(lab: Lab, proxied: Proxied) -> None:
    def serve(connection: ssl.SSLSocket) -> None:
        connection.recv(10)
        over.wait(60)

    over = threading.Event()
    head = f"PUT /puppet/v3/report/{NAME} HTTP/1.1\r\nHost: n\r\nContent-Length: {2**30}\r\n\r\n".encode()
    with (
        ScriptedMaster(lab.master.context, serve) as master,
        proxied(lab, puppet_master=master.target, puppet_keep_body="1M") as proxy,
    ):
        with agent(lab, proxy.address).connect() as connection:
            connection.settimeout(3)
            connection.sendall(head)
            time.sleep(0.5)
            before = resident(proxy.process.pid)
            with contextlib.suppress(TimeoutError):
                for _ in range(100 * 2**4):
                    connection.sendall(bytes(2**16))
            assert resident(proxy.process.pid) - before < 32 * 2**20
        over.set()


def test_nobody_is_blamed_for_agents_that_leave(lab: Lab, proxied: Proxied, capture: Path, own: bool) -> None:
    """At whatever moment: before TLS is finished, while the proxy connects to the master, before the answer."""
    asked: list[str] = []

    def leave(number: int) -> None:
        for turn in range(25):
            target = f"{TARGET}&n={number}-{turn}"
            with peer.connect() as connection:
                connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else it may not be sent at all
                connection.sendall(GET.replace(TARGET.encode(), target.encode()))
                time.sleep(turn / 1000)
                reset(connection)
            asked.append(target)

    with proxied(lab) as proxy:
        peer = agent(lab, proxy.address)
        peer.context()  # only once: it is shared
        threads = [threading.Thread(target=leave, args=(number,)) for number in range(8)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = exchanges(capture)
    assert {exchange.error for exchange in found} <= {None, "the agent disconnected"}
    assert len(records(capture)) == len(found), "there are no failed handshakes, and no gaps"
    if own:
        assert {exchange.request.target for exchange in found} == set(asked)


def test_a_connection_that_ends_with_the_proxy_has_an_end(lab: Lab, proxied: Proxied, capture: Path) -> None:
    """The agent has just left, and the master has not closed its side yet."""
    over = threading.Event()

    def serve(connection: ssl.SSLSocket) -> None:
        connection.recv(1000)
        connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        over.wait(10)

    with ScriptedMaster(lab.master.context, serve) as master:
        with proxied(lab, puppet_master=master.target) as proxy, agent(lab, proxy.address).connect() as connection:
            connection.sendall(GET)
            assert read(connection).status == 200
        over.set()
    assert ended(capture) == 1


# -- what only our own engine does ------------------------------------------------------------------------


@pytest.mark.parametrize("own", [True], ids=["proxy"])
def test_an_agent_that_has_shut_down_its_side_gets_the_answer(lab: Lab, proxied: Proxied, capture: Path) -> None:
    def serve(connection: ssl.SSLSocket) -> None:
        connection.recv(65536)
        time.sleep(0.5)
        connection.sendall(OK)
        all_of(connection)

    with through(lab, proxied, serve) as connection:
        connection.sendall(GET)
        with socket.socket(fileno=socket.dup(connection.fileno())) as raw:  # below TLS
            raw.shutdown(socket.SHUT_WR)
        assert read(connection).body == b"{}"
    (exchange,) = exchanges(capture)
    assert exchange.error is None


@pytest.mark.parametrize("own", [True], ids=["proxy"])
def test_an_agent_that_left_before_the_answer_is_recorded_as_such(lab: Lab, proxied: Proxied, capture: Path) -> None:
    answered = []

    def serve(connection: ssl.SSLSocket) -> None:
        connection.recv(65536)
        time.sleep(1)
        answered.append(time.time())
        connection.sendall(OK)
        all_of(connection)

    with (
        ScriptedMaster(lab.master.context, serve) as master,
        proxied(lab, puppet_master=master.target) as proxy,
    ):
        with agent(lab, proxy.address).connect() as connection:
            connection.sendall(GET)
            time.sleep(0.2)
        assert eventually(lambda: bool(exchanges(capture)))
    (exchange,) = exchanges(capture)
    assert exchange.response is None
    assert exchange.error == "the agent disconnected"
    assert exchange.ended < answered[0], "when it left, not when the answer came"


@pytest.mark.parametrize("own", [True], ids=["proxy"])
def test_on_a_connection_that_served_before_a_broken_one_is_passed_on(
    lab: Lab, proxied: Proxied, capture: Path
) -> None:
    """An agent sends such a request again by itself; an error would end its run."""

    def serve(connection: ssl.SSLSocket) -> None:
        connection.recv(65536)
        connection.sendall(OK)
        connection.recv(65536)

    with through(lab, proxied, serve) as connection:
        connection.sendall(GET)
        assert read(connection).status == 200
        connection.sendall(GET)
        assert all_of(connection) == b""
    assert [exchange.error for exchange in exchanges(capture)] == [None, "the master closed the connection"]


@pytest.mark.parametrize("own", [True], ids=["proxy"])
def test_what_is_refused_is_recorded_with_the_reason(lab: Lab, proxied: Proxied, capture: Path) -> None:
    with proxied(lab) as proxy:
        peer = agent(lab, proxy.address)
        for data in (GET.replace(b"Host", b"Content_Length: 1\r\nHost"), b"GET / HTTP/3\r\n\r\n"):
            with peer.connect() as connection:
                connection.settimeout(10)
                connection.sendall(data)
                assert read(connection).status == 400
    (exchange,) = exchanges(capture)
    assert exchange.error
    assert "the proxy refused the request: a header resembles" in exchange.error
    (gap,) = [record for record in records(capture) if isinstance(record, Gap)]
    assert "the proxy refused a request of 127.0.0.1: the protocol is not HTTP/1.1" in gap.reason


@pytest.mark.parametrize("own", [True], ids=["proxy"])
def test_what_a_master_sends_behind_an_answer_answers_nothing(lab: Lab, proxied: Proxied, capture: Path) -> None:
    def serve(connection: ssl.SSLSocket) -> None:
        number = 0
        while connection.recv(65536):
            number += 1
            connection.sendall(OK.replace(b"{}", b"%02d" % number) + OK.replace(b"{}", b"no"))

    with through(lab, proxied, serve) as connection:
        for _ in range(3):
            connection.sendall(GET)
            assert read(connection).body == b"01", "each has a connection of its own"
            time.sleep(0.1)
    assert [exchange.response.body for exchange in exchanges(capture) if exchange.response] == [b"01"] * 3


@pytest.mark.parametrize("own", [True], ids=["proxy"])
def test_an_answer_begins_after_interim_ones(lab: Lab, proxied: Proxied, capture: Path) -> None:
    answered = []

    def serve(connection: ssl.SSLSocket) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 102 Processing\r\n\r\n")
        time.sleep(0.5)
        answered.append(time.time())
        connection.sendall(OK)
        all_of(connection)

    with through(lab, proxied, serve) as connection:
        connection.sendall(GET)
        assert read(connection).body == b"{}"
    (exchange,) = exchanges(capture)
    assert exchange.response
    assert exchange.response.started
    assert exchange.response.started >= answered[0]


@pytest.mark.parametrize("own", [True], ids=["proxy"])
def test_an_answer_that_is_cut_off_is_cut_off_for_the_agent(lab: Lab, proxied: Proxied) -> None:
    """Without a length, TLS's farewell is what tells a whole answer from a part."""

    def serve(connection: ssl.SSLSocket) -> None:
        connection.recv(65536)
        connection.sendall(b"HTTP/1.1 200 OK\r\n\r\nabc")
        connection.shutdown(socket.SHUT_WR)

    with through(lab, proxied, serve) as connection:
        connection.suppress_ragged_eofs = False  # type: ignore[attr-defined]
        connection.sendall(GET)
        data = b""
        while len(data) < 22:
            data += connection.recv(65536)
        with pytest.raises(ssl.SSLEOFError):
            connection.recv(65536)


@pytest.mark.parametrize("own", [True], ids=["proxy"])
def test_requests_that_came_before_the_end_are_all_answered(lab: Lab, proxied: Proxied, capture: Path) -> None:
    def serve(connection: ssl.SSLSocket) -> None:
        while connection.recv(65536):
            time.sleep(0.2)
            connection.sendall(OK)

    with through(lab, proxied, serve) as connection:
        connection.sendall(GET * 3)
        with socket.socket(fileno=socket.dup(connection.fileno())) as raw:  # below TLS
            raw.shutdown(socket.SHUT_WR)
        assert all_of(connection) == OK * 3
    assert [exchange.error for exchange in exchanges(capture)] == [None] * 3
