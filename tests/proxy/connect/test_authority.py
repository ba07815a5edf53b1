"""The CA of one run: who trusts it, and how it leaves a file again."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from cryptography import x509

from inspector.host import pki
from inspector.model import RUN_CA, Leg
from inspector.proxy.connect import authority as module
from inspector.proxy.connect.authority import RunAuthority

if TYPE_CHECKING:
    from pathlib import Path

LIFETIME = timedelta(days=2)


@pytest.fixture(scope="module")
def authority() -> RunAuthority:
    return RunAuthority(LIFETIME)


@pytest.fixture(scope="module")
def others() -> bytes:
    """A site's bundle, as Puppet writes it."""
    return b"".join(pki.pem(pki.make_ca(f"Puppet CA: {name}").certificate) for name in "ab")


def accepted(authority: RunAuthority, asked: str, presented: str, folder: Path) -> bool:
    """Whether an agent that trusts the CA and its CRL accepts what is presented to it."""
    (folder / "ca.pem").write_bytes(authority.certificate)
    (folder / "crl.pem").write_bytes(authority.crl)
    used = authority.credentials_for(presented)
    pki.write_private(folder / "own.pem", pki.pem(*used.chain) + pki.key_pem(used.key))
    client, server = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    client.load_verify_locations(folder / "ca.pem")
    client.load_verify_locations(folder / "crl.pem")
    client.verify_flags |= ssl.VERIFY_CRL_CHECK_CHAIN
    server.load_cert_chain(folder / "own.pem")
    to_client, to_server = ssl.MemoryBIO(), ssl.MemoryBIO()
    near = client.wrap_bio(to_client, to_server, server_hostname=asked)
    far = server.wrap_bio(to_server, to_client, server_side=True)
    for _ in range(3):
        for end in (near, far):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            except ssl.SSLCertVerificationError:
                return False
    return near.version() is not None


@pytest.mark.parametrize("name", ["puppet.example", "127.0.0.1", "::1"])
def test_an_agent_that_trusts_it_accepts_its_servers(name: str, authority: RunAuthority, tmp_path: Path) -> None:
    assert accepted(authority, name, name, tmp_path)
    assert not accepted(authority, name, "another.example", tmp_path)


def test_it_is_known_and_ends_soon(authority: RunAuthority) -> None:
    used = authority.credentials_for("puppet.example")
    assert Leg("a", "agent", own_chain=used.ders).for_one_run
    assert not Leg("a", "master", own_chain=used.ders).for_one_run
    (ca,) = x509.load_pem_x509_certificates(authority.certificate)
    end = datetime.now(UTC) + LIFETIME + timedelta(hours=1)
    assert max(each.not_valid_after_utc for each in (ca, *used.chain)) < end
    next_crl = x509.load_pem_x509_crl(authority.crl).next_update_utc
    assert next_crl
    assert next_crl < end


def test_no_two_have_the_same_name(authority: RunAuthority) -> None:
    names = [x509.load_pem_x509_certificate(each.certificate).subject.rfc4514_string()
             for each in (authority, RunAuthority(LIFETIME))]  # fmt: skip
    assert names[0] != names[1]
    assert all(RUN_CA.replace(",", r"\,") in name for name in names)


def test_a_server_has_one_certificate(authority: RunAuthority, monkeypatch: pytest.MonkeyPatch) -> None:
    assert authority.credentials_for("a") is authority.credentials_for("a")
    monkeypatch.setattr(module, "MOST", 3)
    for number in range(10):
        assert pki.certname_of(authority.credentials_for(f"n{number}").chain[0]) == f"n{number}"
    assert len(authority._signed) <= 3


# -- how it leaves a file again ---------------------------------------------------------------------------


@pytest.mark.parametrize("before", [b"", b"# a comment - with dashes -- \n"])
def test_nothing_else_leaves_a_file(before: bytes, authority: RunAuthority, others: bytes) -> None:
    own = before + others
    assert authority.removed(own + authority.certificate) == own
    assert authority.removed(authority.certificate + own) == own
    assert authority.removed(own + authority.crl + authority.certificate + others) == own + others
    assert authority.removed(own) == own


def test_it_leaves_also_without_a_final_newline(authority: RunAuthority, others: bytes) -> None:
    assert authority.removed(others + authority.certificate.rstrip()) == others
    assert authority.removed(authority.crl.rstrip()) == b""
    cut = others.rstrip()
    assert authority.removed(cut + b"\n" + authority.certificate) == cut + b"\n"
    assert authority.removed(cut) == cut


def test_it_leaves_with_other_line_breaks(authority: RunAuthority, others: bytes) -> None:
    windows = (others + authority.certificate + others).replace(b"\n", b"\r\n")
    assert authority.removed(windows) == (others + others).replace(b"\n", b"\r\n")
    first, *lines, last = authority.certificate.splitlines()
    long = b"\n".join((first, b"".join(lines), last, b""))
    assert authority.removed(others + long) == others


def test_what_another_run_added_stays(authority: RunAuthority, others: bytes) -> None:
    another = RunAuthority(LIFETIME)
    assert authority.removed(others + another.certificate) == others + another.certificate


@pytest.mark.parametrize("content", [b"", b"\0" * 100, b"-----BEGIN CERTIFICATE-----\n", b"-----BEGIN X" * 1000])
def test_what_is_no_pem_stays(content: bytes, authority: RunAuthority) -> None:
    assert authority.removed(content) == content
