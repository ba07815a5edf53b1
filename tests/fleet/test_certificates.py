"""Rows of certificates and CRLs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.fleet import certificates
from inspector.protocol import x509
from inspector.protocol.certificates import printed_serial
from inspector.runs.examples import asking_for
from tests.support import conversations
from tests.support.conversations import Agent, certificate
from tests.support.tables_of import asked, of_records

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
def test_each_certificate_is_there_once_in_each_role(tmp_path: Path) -> None:
    agent = Agent().bootstrap().run("u-1").wait(1800).run("u-2")
    directory = of_records(tmp_path, conversations.together(agent))
    rows = asked(directory, "SELECT role, certname, ca, time < last FROM certificates ORDER BY role, certname")
    assert rows == [
        ("agent", "a.example", False, True), ("ca", "Test CA", True, False), ("ca", "Test Root CA", True, False),
        ("issued", "a.example", False, False),
    ]  # fmt: skip
    der = certificate("a.example", "a.example")
    parsed = x509.read_der(der)
    (row,) = asked(
        directory, "SELECT fingerprint, serial, issuer, epoch(not_after), key FROM certificates WHERE role = 'agent'"
    )
    assert row == (
        parsed.fingerprint, printed_serial(parsed.serial), "CN=Test CA", parsed.not_after, parsed.key,
    )  # fmt: skip
    # The run says which it used.
    assert asked(directory, "SELECT DISTINCT certificate FROM runs WHERE certificate IS NOT NULL") == [
        (parsed.fingerprint,)
    ]


def test_crls_are_rows_with_the_serials_that_they_list(tmp_path: Path) -> None:
    directory = of_records(tmp_path, conversations.together(Agent().crl().wait(100).crl()))
    rows = asked(directory, "SELECT issuer, revoked, serials, epoch(last - time) FROM crls ORDER BY issuer")
    # Each was made anew: two CAs, twice.
    assert [row[:3] for row in rows] in ([("CN=Test CA", 0, []), ("CN=Test Root CA", 0, [])],
                                         [("CN=Test CA", 0, [])] * 2 + [("CN=Test Root CA", 0, [])] * 2)  # fmt: skip


def test_a_certificate_that_was_only_refused_is_there_too(tmp_path: Path) -> None:
    directory = of_records(tmp_path, conversations.together(Agent().refused(own=True)))
    assert asked(directory, "SELECT role, certname FROM certificates") == [("agent", "a.example")]


def test_more_certificates_than_are_held_are_written_and_stay_one_row(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificates, "MOST", 1)
    agents = [
        Agent(name, f"192.0.2.{number}", time=conversations.START + number) for number, name in enumerate("ab", 1)
    ]
    for agent in agents:
        agent.run("u-1").wait(900).run("u-2")
    directory = of_records(tmp_path, conversations.together(*agents))
    rows = asked(directory, "SELECT certname, count(*), bool_and(time < last) FROM certificates GROUP BY 1 ORDER BY 1")
    assert rows == [("a", 1, True), ("b", 1, True)]


def test_what_cannot_be_read_is_no_row() -> None:
    assert certificates.read(b"nonsense") is None
    assert certificates.read(b"\x30" * 100_000) is None
    assert certificates.leaf(()) is None


def test_a_preshared_key_is_masked(tmp_path: Path) -> None:
    from cryptography.hazmat.primitives.serialization import Encoding

    request = asking_for({"1.3.6.1.4.1.34380.1.1.4": "hunter2hunter2"})
    agent = Agent().ask("PUT", "/puppet-ca/v1/certificate_request/a.example", sent=request.public_bytes(Encoding.PEM))
    directory = of_records(tmp_path, conversations.together(agent))
    assert asked(directory, "SELECT * FROM certificates") == []
    assert all(b"hunter2" not in path.read_bytes() for path in directory.root.rglob("*.parquet"))
