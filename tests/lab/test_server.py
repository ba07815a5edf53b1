"""The lab's server: bodies within limits, answers that do not come, and what it reports."""

from __future__ import annotations

import socket
import ssl
import time
from typing import TYPE_CHECKING

import pytest

from inspector.lab.ca import LabCA
from inspector.lab.server import LabServer
from inspector.lab.wire import ServerAddress, Wire, WireError, insecure
from inspector.model import Exchange, Handshake, Request, Response

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

NAME = "localhost"
DEAD = "/dead"


class Server:
    """A server that answers with what it got."""

    def __init__(self, folder: Path, places: int = 9, waits: Iterable[float] = ()) -> None:
        """``waits``: seconds before the first connections are served."""
        place = LabCA(NAME).enrol(folder, NAME)
        self.records: list[Exchange | Handshake] = []
        pending = iter(waits)

        def context() -> ssl.SSLContext:
            time.sleep(next(pending, 0))
            made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            made.load_cert_chain(place.certificate, place.key)
            return made

        def answer(request: Request, _certname: str | None) -> Response:
            if request.target == DEAD:
                raise ConnectionAbortedError("no answer")
            return Response((("Date", "then"), ("X-Other", "y")), request.body, status=200)

        self.server = LabServer(context, answer, report=self.records.append, places=places)

    def wire(self) -> Wire:
        return Wire(ServerAddress(NAME, self.server.address), insecure())

    def raw(self, request: bytes) -> bytes:
        with (
            socket.create_connection(self.server.address) as plain,
            insecure().wrap_socket(plain, server_hostname=NAME) as secured,
        ):
            secured.sendall(request)
            return b"".join(iter(lambda: secured.recv(65536), b""))


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    made = Server(tmp_path)
    made.server.start()
    yield made
    made.server.close()


def test_an_exchange_is_reported_as_it_was_sent(server: Server) -> None:
    with server.wire() as wire:
        assert wire.request("PUT", "/a?b", "text/plain", b"body", "text/plain").body == b"body"
    server.server.close()
    (record,) = server.records
    assert isinstance(record, Exchange)
    assert (record.request.method, record.request.target, record.request.body) == ("PUT", "/a?b", b"body")
    assert (record.agent.sni, record.agent.side, record.agent.tls_version) == (NAME, "agent", "TLSv1.3")
    assert record.response is not None
    assert record.response.header("date") != "then"
    assert record.response.header("x-other") == "y"
    assert record.response.header("transfer-encoding") == "chunked"
    times = [record.agent.connected, record.agent.secured, record.request.started, record.response.ended]
    assert None not in times
    assert times == sorted(time for time in times if time is not None)


def test_an_answer_that_does_not_come_is_reported(server: Server) -> None:
    with server.wire() as wire, pytest.raises(WireError):
        wire.request("GET", DEAD, "text/plain")
    server.server.close()
    (record,) = server.records
    assert isinstance(record, Exchange)
    assert (record.response, record.error) == (None, "no answer")


def test_a_client_that_refuses_the_server_is_reported(server: Server) -> None:
    strict = ssl.create_default_context()
    with socket.create_connection(server.server.address) as plain, pytest.raises(ssl.SSLCertVerificationError):
        strict.wrap_socket(plain, server_hostname=NAME)
    server.server.close()
    (record,) = server.records
    assert isinstance(record, Handshake)
    assert "unknown ca" in record.reason
    assert (record.alert_by, record.leg.sni) == ("agent", NAME)


def test_chunks_are_put_together(server: Server) -> None:
    chunked = (
        b"PUT /a HTTP/1.1\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x\r\nde\r\n0\r\n\r\n"
    )
    assert b"abcde" in server.raw(chunked)


@pytest.mark.parametrize(
    "head",
    [
        b"Content-Length: 999999999999",
        b"Content-Length: -1",
        b"Content-Length: many",
        b"Transfer-Encoding: chunked\r\n\r\nffffffffff\r\n",
        b"Transfer-Encoding: chunked\r\n\r\nno\r\n",
    ],
)
def test_bodies_that_no_agent_sends_end_the_connection(server: Server, head: bytes) -> None:
    assert server.raw(b"PUT /a HTTP/1.1\r\n" + head + b"\r\n\r\n") == b""
    with server.wire() as wire:  # and nothing else
        assert wire.request("GET", "/a", "text/plain").status == 200


def test_of_too_many_connections_without_a_certificate_the_first_is_closed(tmp_path: Path) -> None:
    server = Server(tmp_path, places=1, waits=[0.5]).server
    server.start()
    with socket.create_connection(server.address) as first, socket.create_connection(server.address) as second:
        first.settimeout(20)
        assert first.recv(1) == b""
        with insecure().wrap_socket(second, server_hostname=NAME) as secured:
            assert secured.version() == "TLSv1.3"
    server.close()
