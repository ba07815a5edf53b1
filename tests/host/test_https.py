"""Requests over TLS."""

from __future__ import annotations

import http.client
import socket
import ssl
from typing import TYPE_CHECKING

import pytest

from inspector.host import https
from inspector.lab.ca import LabCA
from inspector.lab.server import LabServer
from inspector.model import Response

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

NAME = "puppet.example"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[LabServer]:
    ca = LabCA(NAME)
    place = ca.enrol(tmp_path / "ssl", NAME)
    made = LabServer(lambda: ca.server_context(place), lambda *_: Response(status=200))
    made.start()
    yield made
    made.close()


def context() -> ssl.SSLContext:
    made = ssl.create_default_context()
    made.check_hostname, made.verify_mode = False, ssl.CERT_NONE
    return made


def test_it_is_never_opened_again_without_tls(server: LabServer) -> None:
    connection = https.over(socket.create_connection(server.address), context(), NAME)
    connection.request("GET", "/")
    assert connection.getresponse().read() == b""
    connection.close()
    with pytest.raises(http.client.NotConnected):
        connection.request("GET", "/")


@pytest.mark.parametrize("name", [NAME, "\0", "x" * 300])
def test_a_connection_without_a_handshake_is_closed(name: str, server: LabServer) -> None:
    plain = socket.create_connection(server.address)
    with pytest.raises((ssl.SSLError, ValueError, TypeError)):
        https.over(plain, ssl.create_default_context(), name)
    assert plain.fileno() == -1
