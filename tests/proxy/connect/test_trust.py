"""What a node's agent trusts, as its files and its settings have it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from OpenSSL.crypto import X509StoreFlags

from inspector.lab.ca import LabCA
from inspector.protocol.x509 import Problem
from inspector.proxy.connect.trust import NodeTrust

if TYPE_CHECKING:
    from pathlib import Path

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
