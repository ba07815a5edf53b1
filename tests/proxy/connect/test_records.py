"""What is recorded of a connection that is not intercepted."""

from __future__ import annotations

import errno
from dataclasses import replace

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from inspector.analysis.analyzer import Analyzer
from inspector.host import pki
from inspector.model import Exchange, Handshake, Leg
from inspector.protocol.kinds import Kind
from inspector.protocol.x509 import Problem
from inspector.proxy.connect import records
from inspector.proxy.connect.acceptance import Examination

SERVER = ("puppet.example", 8140)
AGENT = Leg("a", "agent", "127.0.0.1", 50000, connected=1.0, node="web1.example")


@pytest.fixture(scope="module")
def chain() -> tuple[bytes, ...]:
    ca, key = pki.make_ca("CA"), pki.new_key()
    return (pki.sign(ca, key.public_key(), "other.example").public_bytes(Encoding.DER),)


def test_a_server_that_cannot_be_reached_is_a_request_without_an_answer() -> None:
    error = ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
    record = records.of(AGENT, SERVER, Examination(5.0, unreachable=error))
    assert isinstance(record, Exchange)
    assert (record.request.method, record.request.target, record.response) == ("CONNECT", "puppet.example:8140", None)
    assert record.error == "cannot connect to the master puppet.example:8140: Connection refused"
    assert record.master
    assert (record.master.address, record.master.port, record.master.connecting, record.master.connected) == (
        *SERVER, 5.0, None,
    )  # fmt: skip
    assert record.agent == AGENT


def test_a_server_that_is_silent_is_one_too() -> None:
    record = records.of(AGENT, SERVER, Examination(5.0, silent=15.0))
    assert isinstance(record, Exchange)
    assert (record.request.method, record.response) == ("CONNECT", None)
    assert record.error == "the master did not answer the TLS handshake for 15 s"


def test_a_refused_server_is_a_handshake_of_the_agent_itself(chain: tuple[bytes, ...]) -> None:
    examination = Examination(5.0, refusal="Server hostname 'puppet.example' did not match", chain=chain)
    record = records.of(AGENT, SERVER, examination)
    assert isinstance(record, Handshake)
    assert record.leg == replace(AGENT, sni="puppet.example", own_chain=chain, tunnelled=True)
    assert (record.reason, record.alert, record.alert_by) == (examination.refusal, "bad_certificate", "agent")


@pytest.mark.parametrize(
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
    record = records.of(AGENT, SERVER, Examination(5.0, refusal=str(problem), problems=(problem,), chain=chain))
    assert isinstance(record, Handshake)
    assert (record.alert, record.alert_by, record.culprits) == (alert, "agent", (str(problem),))


def test_without_a_certificate_there_is_no_alert() -> None:
    record = records.of(AGENT, SERVER, Examination(5.0, refusal="wrong version number"))
    assert isinstance(record, Handshake)
    assert (record.reason, record.alert, record.alert_by) == ("wrong version number", None, None)
    assert record.leg.tunnelled


def test_it_is_understood_as_the_nodes_own(chain: tuple[bytes, ...]) -> None:
    error = ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
    for record in (
        records.of(AGENT, SERVER, Examination(5.0, unreachable=error)),
        records.of(AGENT, SERVER, Examination(5.0, refusal="x", chain=chain)),
    ):
        step = Analyzer().feed(replace(record, seq=1))
        assert not step.trouble
        assert step.certname == "web1.example"
        if isinstance(record, Exchange):
            assert step.match
            assert step.match.endpoint.kind is Kind.CONNECTION
