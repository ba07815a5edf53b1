"""What a node's agent trusts, as its files and its settings have it."""

from __future__ import annotations

import socket
import time
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from OpenSSL.crypto import X509StoreFlags

from inspector.host import pki
from inspector.lab.ca import LabCA
from inspector.model import Response
from inspector.protocol.x509 import Problem
from inspector.proxy.connect import trust as trusts
from inspector.proxy.connect.trust import BUNDLE, CRLS, NodeTrust

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.lab.master import LabMaster
    from inspector.proxy.connect.trust import Revocation

CHAIN = X509StoreFlags.CRL_CHECK | X509StoreFlags.CRL_CHECK_ALL
PROBLEM = Problem(20, 0, "CN=puppet", "CN=CA")


@pytest.fixture(scope="module")
def lab() -> LabCA:
    return LabCA("puppet.example")


@pytest.fixture
def folder(lab: LabCA, tmp_path: Path) -> Path:
    (tmp_path / "ca.pem").write_bytes(lab.ca_bundle)
    (tmp_path / "crl.pem").write_bytes(lab.crl_bundle)
    return tmp_path


def trust_of(folder: Path, revocation: Revocation = "chain") -> NodeTrust:
    return NodeTrust(folder / "ca.pem", folder / "crl.pem", revocation)


def test_an_enrolled_node_verifies_and_tolerates_nothing(folder: Path) -> None:
    trust = trust_of(folder)
    assert (len(trust.authorities), len(trust.crls)) == (2, 2)
    assert trust.verifies
    assert not trust.tolerates_master(PROBLEM, identified=False)
    assert not trust.tolerates_master(PROBLEM, identified=True)


def test_a_fresh_node_verifies_nothing(tmp_path: Path) -> None:
    """It downloads its bundle, from anybody."""
    trust = trust_of(tmp_path)
    assert (trust.authorities, trust.crls, trust.flags) == ((), (), 0)
    assert not trust.verifies
    assert trust.tolerates_master(PROBLEM, identified=False)
    assert not trust.tolerates_master(PROBLEM, identified=True)


@pytest.mark.parametrize(("revocation", "flags"), [("chain", CHAIN), ("leaf", X509StoreFlags.CRL_CHECK), ("false", 0)])
def test_the_setting_says_what_is_looked_up(revocation: Revocation, flags: int, folder: Path) -> None:
    trust = trust_of(folder, revocation)
    assert (trust.verifies, trust.flags) == (True, flags)


def test_before_there_are_crls_nothing_is_looked_up(folder: Path) -> None:
    (folder / "crl.pem").unlink()
    trust = trust_of(folder)
    assert (trust.verifies, trust.flags, trust.crls) == (True, 0, ())


@pytest.mark.parametrize(
    "content", [b"", b"garbage", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"]
)
def test_a_bundle_that_is_broken_makes_nobody_trusted(content: bytes, lab: LabCA, folder: Path) -> None:
    """An agent stops at it; to take it for a missing one would accept any master."""
    for broken in (content, lab.ca_bundle + content) if b"BEGIN" in content else (content,):
        (folder / "ca.pem").write_bytes(broken)
        trust = trust_of(folder)
        assert trust.verifies
        assert trust.authorities == ()
        assert not trust.tolerates_master(PROBLEM, identified=False)


@pytest.mark.parametrize("content", [b"", b"garbage", b"-----BEGIN X509 CRL-----\nAAAA\n-----END X509 CRL-----\n"])
def test_crls_that_are_broken_do_not_end_the_look_up(content: bytes, folder: Path) -> None:
    (folder / "crl.pem").write_bytes(content)
    trust = trust_of(folder)
    assert (trust.crls, trust.flags) == ((), CHAIN)


def test_a_file_that_cannot_be_read_is_no_missing_one(folder: Path) -> None:
    (folder / "ca.pem").unlink()
    (folder / "ca.pem").mkdir()
    assert trust_of(folder).verifies


def test_files_that_change_count_at_once(lab: LabCA, tmp_path: Path) -> None:
    trust = trust_of(tmp_path)
    digests = {trust.digest}
    (tmp_path / "ca.pem").write_bytes(lab.ca_bundle)
    trust.refresh()
    assert (trust.verifies, trust.flags) == (True, 0)
    digests.add(trust.digest)
    (tmp_path / "crl.pem").write_bytes(lab.crl_bundle)
    trust.refresh()
    assert (trust.verifies, trust.flags) == (True, CHAIN)
    digests.add(trust.digest)
    assert len(digests) == 3
    before = trust.authorities
    trust.refresh()
    assert trust.authorities is before, "what did not change is not read again"


def test_whether_an_agent_is_valid_is_the_masters_to_judge(folder: Path) -> None:
    assert trust_of(folder).tolerates_agent(PROBLEM)


def test_files_that_have_not_changed_are_not_read_again(
    lab: LabCA, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is asked before each request, and a site's CRLs may be large."""
    trust = trust_of(folder)
    read: list[Path] = []

    def noted(path: Path) -> bytes:
        read.append(path)
        return path.read_bytes()

    monkeypatch.setattr("inspector.inputs.read", noted)
    trust.refresh()
    assert read == []
    (folder / "fresh").write_bytes(lab.ca_bundle)
    (folder / "fresh").replace(folder / "ca.pem")
    trust.refresh()
    assert read == [folder / "ca.pem", folder / "crl.pem"]


NAME = "localhost"


def chain_of(place: pki.SslDirPaths) -> tuple[bytes, ...]:
    found = x509.load_pem_x509_certificates(place.certificate.read_bytes())
    return tuple(each.public_bytes(Encoding.DER) for each in found)


def test_anybody_gets_the_bundle_and_the_crls(master: LabMaster, ca: LabCA) -> None:
    """From a server that is not verified: its name is another one."""
    server = (NAME, master.address[1])
    assert trusts.download(server, None, BUNDLE).body == ca.ca_bundle
    assert trusts.download(server, None, CRLS).body == ca.crl_bundle
    assert [received.certname for received in master.received] == [None, None]


def test_what_there_is_not_is_empty(master: LabMaster) -> None:
    assert trusts.download((NAME, master.address[1]), None, "/puppet-ca/v1/certificate/nobody").body == b""
    with socket.create_server((NAME, 0)) as closed:
        address = closed.getsockname()
    assert trusts.download(address, None, BUNDLE) == (b"", None)


def test_a_good_certificate_shows_nothing(master: LabMaster, place: pki.SslDirPaths) -> None:
    assert trusts.refusals((NAME, master.address[1]), None, chain_of(place)).problems == ()


def test_a_revoked_one_shows_why_it_is_refused(master: LabMaster, ca: LabCA, place: pki.SslDirPaths) -> None:
    ca.revoke("web1.example")
    (reason,) = trusts.refusals((NAME, master.address[1]), None, chain_of(place)).problems
    assert "revoked" in reason
    assert "CN=web1.example" in reason


def test_so_does_an_expired_one(master: LabMaster, ca: LabCA) -> None:
    key = pki.new_key()
    old = pki.sign(
        ca.authority, key.public_key(), "web1.example", not_before=datetime(2020, 1, 1, tzinfo=UTC),
        lifetime=timedelta(1),
    )  # fmt: skip
    reasons = trusts.refusals((NAME, master.address[1]), None, (old.public_bytes(Encoding.DER),)).problems
    assert any("expired" in reason for reason in reasons)


def test_the_masters_clock_judges(master: LabMaster, place: pki.SslDirPaths, monkeypatch: pytest.MonkeyPatch) -> None:
    """By this host's clock the certificate is valid."""
    there = time.time() + 6 * 365 * 86400
    monkeypatch.setattr("inspector.clocks.http_date", lambda _: there)
    reasons, ahead = trusts.refusals((NAME, master.address[1]), None, chain_of(place))
    assert any("expired" in reason for reason in reasons)
    assert ahead == pytest.approx(there - time.time(), abs=600)


def test_one_of_another_ca_is_unknown(master: LabMaster, tmp_path: Path) -> None:
    stranger = LabCA("other.example").enrol(tmp_path / "other", "web1.example")
    assert trusts.refusals((NAME, master.address[1]), None, chain_of(stranger)).problems


@pytest.mark.parametrize("body", [b"", b"garbage", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
def test_a_bundle_that_is_none_shows_nothing(body: bytes, master: LabMaster, place: pki.SslDirPaths) -> None:
    master.instead["GET", BUNDLE] = Response(status=200, body=body)
    assert trusts.refusals((NAME, master.address[1]), None, chain_of(place)).problems == ()


def test_a_chain_that_is_none_shows_nothing(master: LabMaster) -> None:
    assert trusts.refusals((NAME, master.address[1]), None, (b"garbage",)).problems == ()
