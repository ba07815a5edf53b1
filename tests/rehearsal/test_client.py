"""The connection to the master: hostile answers, and that nothing but reads and compiles is on the wire."""

from __future__ import annotations

import http.client
import socket
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from inspector.errors import InspectorError
from inspector.lab.ca import LabCA
from inspector.model import Exchange, Identity, Request, Response
from inspector.proxy import identity
from inspector.rehearsal import client, requests
from inspector.rehearsal.client import Client, Target, Unreachable
from inspector.rehearsal.requests import Unsendable
from tests.support.rehearsals import new_master

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.support.rehearsals import NewMaster

FILE = Request(target="/puppet/v3/file_content/modules/m/a?environment=production")


def connection(master: NewMaster, *, port: int = 0, timeout: float = 30.0) -> Client:
    host, _, own = master.address.partition(":")
    target = Target(host, port or int(own), master.tool.ca, timeout)
    credentials = identity.load(master.tool.certificate, master.tool.key)
    return Client(target, credentials, Identity("keys", "tool.example"), "a.example#plain")


@contextmanager
def raw(reply: bytes) -> Iterator[int]:
    """Something that answers every connection with the same bytes."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with listening.accept()[0] as accepted:
                accepted.recv(9000)
                accepted.sendall(reply)

        thread = threading.Thread(target=serve)
        thread.start()
        yield listening.getsockname()[1]
        thread.join()


def test_an_exchange(tmp_path: Path) -> None:
    with new_master(tmp_path, files={"modules/m/a": b"text"}) as master, connection(master) as opened:
        one, two = opened.ask(FILE), opened.ask(FILE)
        assert master.handshakes == 1
    assert isinstance(one, Exchange)
    assert one.response is not None
    assert (one.response.status, one.response.body) == (200, b"text")
    assert one.agent.id == two.agent.id == "a.example#plain.1/agent"
    assert (one.identity, one.master is not None and one.master.side) == (Identity("keys", "tool.example"), "master")
    assert master.received[0][1] == "tool.example"
    assert master.received[0][0].header("host") == master.address


def test_a_request_that_would_change_something_does_not_leave(tmp_path: Path) -> None:
    with new_master(tmp_path) as master, connection(master) as opened:
        for request in (
            Request(method="PUT", target="/puppet/v3/report/a"),
            Request(target="/puppet-ca/v1/certificate/a"),
        ):
            with pytest.raises(Unsendable):
                opened.ask(request)
    assert (master.received, master.handshakes) == ([], 0)


def test_a_redirect_is_not_followed(tmp_path: Path) -> None:
    away = Response(status=302, headers=(("Location", "https://elsewhere.example/"),))
    with new_master(tmp_path, before=lambda _: away) as master, connection(master) as opened:
        answer = opened.ask(FILE).response
    assert answer is not None
    assert answer.status == 302
    assert len(master.received) == 1


def test_an_answer_that_is_too_large(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client, "LARGEST", 100)
    with new_master(tmp_path, files={"modules/m/a": b"x" * 200}) as master, connection(master) as opened:
        exchange = opened.ask(FILE)
    assert (exchange.response, exchange.error) == (None, "the answer is larger than 100 B")


def test_an_answer_that_never_ends(tmp_path: Path) -> None:
    with new_master(tmp_path, files={"modules/m/a": b"x"}) as master, connection(master, timeout=1e-9) as opened:
        exchange = opened.ask(FILE)
    assert exchange.response is None
    assert exchange.error


def test_an_answer_that_comes_byte_by_byte_ends_in_time() -> None:
    one, other = socket.socketpair()
    with one, other:
        other.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
        answer = http.client.HTTPResponse(one)
        answer.begin()
        ended = threading.Event()

        def drip() -> None:
            while not ended.wait(0.02):
                other.sendall(b"x")

        thread = threading.Thread(target=drip)
        thread.start()
        with pytest.raises((ValueError, TimeoutError), match=r"too long|timed out"):
            client._read(answer, one, time.time() + 0.3)
        ended.set()
        thread.join()


@pytest.mark.parametrize("host", ["new..example", "a" * 70])
def test_what_is_no_name_of_a_host(tmp_path: Path, host: str) -> None:
    with new_master(tmp_path) as master:
        made = connection(master)
        made._target.host = host
        with pytest.raises(Unreachable, match="not the name of a host"):
            made.connect()


def test_what_is_no_tls(tmp_path: Path) -> None:
    with (
        new_master(tmp_path) as master,
        raw(b"HTTP/1.1 400 Bad Request\r\n\r\n") as port,
        pytest.raises(Unreachable, match="TLS: "),
    ):
        connection(master, port=port).connect()


def test_a_bundle_without_a_certificate(tmp_path: Path) -> None:
    (tmp_path / "empty.pem").write_text("x")
    with new_master(tmp_path) as master:
        credentials = identity.load(master.tool.certificate, master.tool.key)
    with pytest.raises(InspectorError, match="it has no certificate"):
        Target("localhost", 1, tmp_path / "empty.pem", 1.0).context(credentials)


def test_a_revoked_certificate_of_the_master(tmp_path: Path) -> None:
    with new_master(tmp_path) as master:
        credentials = identity.load(master.tool.certificate, master.tool.key)
        host, _, port = master.address.partition(":")
        crl = master.tool.crl

        def connect() -> None:
            target = Target(host, int(port), master.tool.ca, 30.0, crl)
            with Client(target, credentials, Identity("keys", "tool.example"), "a.example#plain") as opened:
                opened.connect()

        connect()
        crl.write_bytes(master.ca.signing_crl)
        with pytest.raises(Unreachable, match="certificate verify failed: unable to get certificate CRL"):
            connect()
        master.ca.revoke(host)
        crl.write_bytes(master.ca.crl_bundle)
        with pytest.raises(Unreachable, match="certificate verify failed: certificate revoked"):
            connect()
        for content, reason in (
            (b"x", f"Cannot read the CRLs {crl}: it has no CRL"),
            (master.ca.ca_bundle, f"{crl} has no CRL"),
            (master.ca.ca_bundle + LabCA("other").ca_bundle + master.ca.crl_bundle, f"{crl} has certificates"),
        ):
            crl.write_bytes(content)
            with pytest.raises(InspectorError, match=reason):
                connect()


def test_a_connection_can_be_ended_by_another_thread(tmp_path: Path) -> None:
    waiting = threading.Event()

    def hang(_: Request) -> Response | None:
        waiting.set()
        ended.wait(30)
        return None

    ended = threading.Event()
    found: list[Exchange] = []
    with new_master(tmp_path, before=hang) as master:
        opened = connection(master)
        thread = threading.Thread(target=lambda: found.append(opened.ask(FILE)))
        thread.start()
        assert waiting.wait(30)
        opened._target.abort()
        thread.join(30)
        ended.set()
        opened.close()
    assert found[0].response is None
    assert requests.is_file(found[0].request)
