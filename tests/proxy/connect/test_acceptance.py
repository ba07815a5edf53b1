"""Whether an agent would accept a server, against real ones."""

from __future__ import annotations

import errno
import socket
import ssl
import threading
import time
from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from OpenSSL import SSL

from inspector.analysis.analyzer import Analyzer
from inspector.host import pki
from inspector.lab.ca import LabCA
from inspector.lab.master import LabMaster
from inspector.lab.server import LabServer
from inspector.model import Exchange, Handshake, Leg, Response
from inspector.protocol.kinds import Kind
from inspector.protocol.x509 import Problem
from inspector.proxy.connect import acceptance
from inspector.proxy.connect.acceptance import Examination
from inspector.proxy.connect.trust import NodeTrust
from tests.support.rows import each_row

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from inspector.proxy.connect.trust import Revocation

NAME = "localhost"
NO_TLS = "wrong version number" if SSL.OPENSSL_VERSION_NUMBER >= 0x30500060 else "record layer failure"
"""OpenSSL's word for an answer that is no TLS."""
PATIENCE = 60.0


@pytest.fixture
def of_master(ca: LabCA, tmp_path: Path) -> pki.SslDirPaths:
    return ca.enrol(tmp_path / "master", "puppet.example", [NAME])


def examined(ca: LabCA, of_master: pki.SslDirPaths, trust: NodeTrust, name: str = NAME) -> Examination:
    """Look at a master with these files."""
    with LabMaster(ca, of_master) as master:
        return acceptance.examine((name, master.address[1]), trust, None, PATIENCE)


def leaf(place: pki.SslDirPaths) -> bytes:
    return ssl.PEM_cert_to_DER_cert(place.certificate.read_text())


def test_a_good_master_is_accepted(ca: LabCA, of_master: pki.SslDirPaths, trust: NodeTrust) -> None:
    found = examined(ca, of_master, trust)
    assert (found.accepted, found.refusal, found.problems, found.unreachable) == (True, "", (), None)
    assert found.chain[0] == leaf(of_master)


def test_it_is_no_client_that_leaves_during_the_handshake(of_master: pki.SslDirPaths, trust: NodeTrust) -> None:
    """A proxy before that master would record the refusal of an agent that there was not."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(of_master.certificate, of_master.key)
    heard: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with context.wrap_socket(connection, server_side=True) as made:
                heard.append(made.recv(100))

        serving = threading.Thread(target=serve)
        serving.start()
        found = acceptance.examine((NAME, server.getsockname()[1]), trust, None, PATIENCE)
        serving.join(PATIENCE)
    assert found.accepted
    assert heard == [b""]


def test_a_master_of_another_name_is_refused(ca: LabCA, tmp_path: Path, trust: NodeTrust) -> None:
    other = ca.enrol(tmp_path / "other", "puppet.example")
    found = examined(ca, other, trust)
    assert not found.accepted
    assert (
        found.refusal
        == "Server hostname 'localhost' did not match server certificate; expected one of DNS:puppet.example"
    )
    assert found.chain[0] == leaf(other)
    assert found.ahead is None


@pytest.mark.parametrize("revocation", ["chain", "false"])
def test_a_master_of_an_unknown_ca_is_refused(revocation: Revocation, tmp_path: Path, place: pki.SslDirPaths) -> None:
    stranger = LabCA("stranger.example")
    of_stranger = stranger.enrol(tmp_path / "stranger", "s.example", [NAME])
    found = examined(stranger, of_stranger, NodeTrust(place.ca, place.crl, revocation))
    assert not found.accepted
    assert found.refusal == str(found.problems[0])
    assert found.refusal.startswith("certificate verify failed [self signed certificate in certificate chain for CN=")
    assert leaf(of_stranger) in found.chain


def test_an_expired_master_is_refused(ca: LabCA, of_master: pki.SslDirPaths, trust: NodeTrust) -> None:
    key = pki.read_key(of_master.key)
    old = pki.sign(
        ca.authority, key.public_key(), "puppet.example", [NAME], not_before=datetime(2020, 1, 1, tzinfo=UTC),
        lifetime=timedelta(1),
    )  # fmt: skip
    of_master.certificate.write_bytes(pki.pem(old))
    found = examined(ca, of_master, trust)
    assert "CN=puppet.example" in found.refusal
    assert "expired" in found.refusal
    assert found.ahead == pytest.approx(0, abs=60), "whoever calls it expired asked what time it is there"
    assert found.chain[0] == old.public_bytes(Encoding.DER)


def test_a_revoked_master_is_refused_as_far_as_it_is_looked_up(
    ca: LabCA, of_master: pki.SslDirPaths, place: pki.SslDirPaths
) -> None:
    ca.revoke("puppet.example")
    place.crl.write_bytes(ca.crl_bundle)
    for_each: tuple[Revocation, ...] = ("chain", "leaf", "false")
    found = [examined(ca, of_master, NodeTrust(place.ca, place.crl, each)) for each in for_each]
    assert [each.accepted for each in found] == [False, False, True]
    assert all("revoked" in each.refusal for each in found[:2])


def test_an_expired_crl_refuses_all(ca: LabCA, of_master: pki.SslDirPaths, place: pki.SslDirPaths) -> None:
    ca.publish_crl(datetime(2020, 1, 1, tzinfo=UTC), datetime(2020, 1, 2, tzinfo=UTC))
    place.crl.write_bytes(ca.crl_bundle)
    found = examined(ca, of_master, NodeTrust(place.ca, place.crl, "chain"))
    assert "CRL" in found.refusal
    assert "expired" in found.refusal


@pytest.mark.parametrize("name", [NAME, "127.0.0.1"])
def test_a_fresh_node_accepts_anybody(name: str, tmp_path: Path) -> None:
    stranger = LabCA("stranger.example")
    nothing = NodeTrust(tmp_path / "none.pem", tmp_path / "none.pem", "chain")
    found = examined(stranger, stranger.enrol(tmp_path / "stranger", "s.example"), nothing, name)
    assert found.accepted
    assert found.chain


def test_a_node_with_a_broken_bundle_accepts_nobody(
    ca: LabCA, of_master: pki.SslDirPaths, place: pki.SslDirPaths
) -> None:
    place.ca.write_text("garbage")
    assert not examined(ca, of_master, NodeTrust(place.ca, place.crl, "chain")).accepted


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
def test_a_server_that_wants_a_certificate_of_the_agent_is_accepted(
    version: ssl.TLSVersion, ca: LabCA, of_master: pki.SslDirPaths, trust: NodeTrust
) -> None:
    """It is asked without one, and ends the handshake: it has shown its own before."""

    def context() -> ssl.SSLContext:
        made = ca.server_context(of_master)
        made.verify_mode = ssl.CERT_REQUIRED
        made.minimum_version = made.maximum_version = version
        return made

    server = LabServer(context, lambda *_: Response(status=404))
    server.start()
    try:
        found = acceptance.examine((NAME, server.address[1]), trust, None, PATIENCE)
    finally:
        server.close()
    assert (found.accepted, found.refusal) == (True, "")
    assert found.chain[0] == leaf(of_master)


@contextmanager
def plain(answer: bytes) -> Iterator[int]:
    """A server that does not speak TLS; yields its port."""
    with socket.create_server((NAME, 0)) as server:

        def serve() -> None:
            connection, _ = server.accept()
            with connection:
                connection.recv(65536)
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


@pytest.mark.parametrize(
    ("answer", "refusal"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", NO_TLS),
        (b"", "the server closed the connection"),
    ],
)
def test_what_does_not_speak_tls_is_refused(answer: bytes, refusal: str, trust: NodeTrust) -> None:
    with plain(answer) as port:
        found = acceptance.examine((NAME, port), trust, None, PATIENCE)
    assert found.refusal.startswith(refusal)
    assert (found.accepted, found.unreachable, found.chain) == (False, None, ())


def test_who_is_silent_is_left_to_the_agent_after_a_while(trust: NodeTrust, monkeypatch: pytest.MonkeyPatch) -> None:
    """Which then waits for as long as it wants."""
    monkeypatch.setattr(acceptance, "SILENCE", 0.3)
    with socket.create_server((NAME, 0)) as server:
        for timeout, silent in ((PATIENCE, 0.3), (0.2, 0.1)):
            found = acceptance.examine((NAME, server.getsockname()[1]), trust, None, timeout)
            assert not found.accepted
            assert (found.silent, found.refusal, found.unreachable) == (silent, "", None)


def test_who_speaks_slowly_is_as_good_as_silent(trust: NodeTrust, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acceptance, "SILENCE", 0.5)
    with socket.create_server((NAME, 0)) as server:

        def drip() -> None:
            connection, _ = server.accept()
            with connection, suppress(OSError):
                for byte in b"\x16\x03\x03\x40\x00" + b"a" * 100:
                    connection.sendall(bytes((byte,)))
                    time.sleep(0.05)

        thread = threading.Thread(target=drip)
        thread.start()
        found = acceptance.examine((NAME, server.getsockname()[1]), trust, None, PATIENCE)
        thread.join()
    assert found.silent == 0.5


def test_a_closed_port_is_no_refusal(trust: NodeTrust) -> None:
    with socket.create_server((NAME, 0)) as server:
        port = server.getsockname()[1]
    found = acceptance.examine((NAME, port), trust, None, PATIENCE)
    assert isinstance(found.unreachable, ConnectionRefusedError)
    assert (found.accepted, found.refusal) == (False, "")


def test_a_name_that_does_not_resolve_is_no_refusal(trust: NodeTrust) -> None:
    found = acceptance.examine(("nowhere.invalid", 8140), trust, None, PATIENCE)
    assert isinstance(found.unreachable, socket.gaierror)


SERVER = ("puppet.example", 8140)
AGENT = Leg("a", "agent", "127.0.0.1", 50000, connected=1.0, node="web1.example")


@pytest.fixture(scope="module")
def chain() -> tuple[bytes, ...]:
    ca, key = pki.make_ca("CA"), pki.new_key()
    return (pki.sign(ca, key.public_key(), "other.example").public_bytes(Encoding.DER),)


def test_a_server_that_cannot_be_reached_is_a_request_without_an_answer() -> None:
    error = ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
    record = acceptance.record(AGENT, SERVER, Examination(5.0, unreachable=error))
    assert isinstance(record, Exchange)
    assert (record.request.method, record.request.target, record.response) == ("CONNECT", "puppet.example:8140", None)
    assert record.error == "cannot connect to the master puppet.example:8140: Connection refused"
    assert record.master
    assert (record.master.address, record.master.port, record.master.connecting, record.master.connected) == (
        *SERVER, 5.0, None,
    )  # fmt: skip
    assert record.agent == AGENT


def test_a_server_that_is_silent_is_one_too() -> None:
    record = acceptance.record(AGENT, SERVER, Examination(5.0, silent=15.0))
    assert isinstance(record, Exchange)
    assert (record.request.method, record.response) == ("CONNECT", None)
    assert record.error == "the master did not answer the TLS handshake for 15 s"


def test_a_refused_server_is_a_handshake_of_the_agent_itself(chain: tuple[bytes, ...]) -> None:
    examination = Examination(5.0, refusal="Server hostname 'puppet.example' did not match", chain=chain)
    record = acceptance.record(AGENT, SERVER, examination)
    assert isinstance(record, Handshake)
    assert record.leg == replace(AGENT, sni="puppet.example", own_chain=chain, tunnelled=True)
    assert (record.reason, record.alert, record.alert_by) == (examination.refusal, "bad_certificate", "agent")


@each_row(
    ("code", "alert"),
    [
        (9, "bad_certificate"),
        (10, "certificate_expired"),
        (12, "certificate_expired"),
        (18, "unknown_ca"),
        (19, "unknown_ca"),
        (20, "unknown_ca"),
        (23, "certificate_revoked"),
    ],
)
def test_the_alert_is_the_one_that_the_agent_sends(code: int, alert: str, chain: tuple[bytes, ...]) -> None:
    problem = Problem(code, 0, "CN=puppet.example", "CN=CA")
    record = acceptance.record(AGENT, SERVER, Examination(5.0, refusal=str(problem), problems=(problem,), chain=chain))
    assert isinstance(record, Handshake)
    assert (record.alert, record.alert_by, record.culprits) == (alert, "agent", (str(problem),))


def test_without_a_certificate_there_is_no_alert() -> None:
    record = acceptance.record(AGENT, SERVER, Examination(5.0, refusal="wrong version number"))
    assert isinstance(record, Handshake)
    assert (record.reason, record.alert, record.alert_by) == ("wrong version number", None, None)
    assert record.leg.tunnelled


def test_it_is_understood_as_the_nodes_own(chain: tuple[bytes, ...]) -> None:
    error = ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
    for record in (
        acceptance.record(AGENT, SERVER, Examination(5.0, unreachable=error)),
        acceptance.record(AGENT, SERVER, Examination(5.0, refusal="x", chain=chain)),
    ):
        step = Analyzer().feed(replace(record, seq=1))
        assert not step.trouble
        assert step.certname == "web1.example"
        if isinstance(record, Exchange):
            assert step.match
            assert step.match.endpoint.kind is Kind.CONNECTION
