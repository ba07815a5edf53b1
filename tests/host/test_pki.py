"""Certificates of ``inspector.host.pki`` have the form of Puppet's, and OpenSSL accepts them."""

from __future__ import annotations

import os
import stat
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import rsa
from cryptography.x509.oid import ExtendedKeyUsageOID
from OpenSSL import crypto

from inspector.errors import IdentityError
from inspector.host import pki
from inspector.protocol.ca_service import KEY_FILE, OPENVOX_CA

if TYPE_CHECKING:
    from pathlib import Path

ROOT = pki.make_ca("Puppet Root CA: test", serial=1)
CA = pki.make_ca("Puppet CA: test", ROOT, serial=2)


def verify(leaf: x509.Certificate, *crls: x509.CertificateRevocationList) -> None:
    """As an agent with ``certificate_revocation=chain`` does it."""
    store = crypto.X509Store()
    store.set_flags(crypto.X509StoreFlags.CRL_CHECK | crypto.X509StoreFlags.CRL_CHECK_ALL)
    for authority in (ROOT, CA):
        store.add_cert(crypto.X509.from_cryptography(authority.certificate))
    for crl in crls:
        store.add_crl(crl)
    crypto.X509StoreContext(store, crypto.X509.from_cryptography(leaf)).verify_certificate()


def test_a_leaf_has_the_shape_of_puppets() -> None:
    key = pki.new_key()
    csr = pki.make_csr("web1.example", key)
    leaf = pki.sign(CA, csr, "web1.example", ["puppet"], serial=7)
    extensions = {e.oid.dotted_string: e for e in leaf.extensions}
    usage = leaf.extensions.get_extension_for_class(x509.ExtendedKeyUsage)
    names = leaf.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert usage.critical
    assert set(usage.value) == {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH}
    assert extensions["2.5.29.15"].critical
    assert extensions["2.5.29.19"].critical
    assert b"Puppet Server Internal Certificate" in extensions["2.16.840.1.113730.1.13"].value.public_bytes()
    assert names.get_values_for_type(x509.DNSName) == ["web1.example", "puppet"]
    assert leaf.serial_number == 7
    assert leaf.public_key() == key.public_key()
    assert pki.certname_of(leaf) == pki.certname_of(csr) == "web1.example"
    assert leaf.not_valid_before_utc < datetime.now(UTC) - timedelta(hours=23)


def test_openssl_accepts_the_chain_until_the_leaf_is_revoked() -> None:
    leaf = pki.sign(CA, pki.new_key().public_key(), "web1.example", serial=7)
    root_crl = pki.make_crl(ROOT)
    verify(leaf, pki.make_crl(CA), root_crl)
    revoked = pki.make_crl(CA, [7], number=1)
    assert revoked.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number == 1
    with pytest.raises(crypto.X509StoreContextError, match="revoked"):
        verify(leaf, revoked, root_crl)
    with pytest.raises(crypto.X509StoreContextError, match="unable to get certificate CRL"):
        verify(leaf, pki.make_crl(CA))
    past = datetime.now(UTC) - timedelta(days=2)
    with pytest.raises(crypto.X509StoreContextError, match="CRL has expired"):
        verify(leaf, pki.make_crl(CA, [], 2, past, past + timedelta(days=1)), root_crl)


def test_a_crl_is_valid_at_once() -> None:
    """OpenSSL asks a clock that may be behind by some milliseconds."""
    assert pki.make_crl(CA).last_update_utc <= datetime.now(UTC) - timedelta(seconds=1)


def test_a_short_lived_leaf_expires_on_time() -> None:
    leaf = pki.sign(CA, pki.new_key().public_key(), "web1.example", lifetime=timedelta(hours=1))
    assert abs(leaf.not_valid_after_utc - datetime.now(UTC) - timedelta(hours=1)) < timedelta(minutes=1)


def test_a_request_names_what_it_asks_for() -> None:
    csr = pki.make_csr("b.example", pki.new_key(2048), ["a.example"], {"1.2.840.113549.1.9.7": "secret"})
    names = csr.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["a.example", "b.example"]
    assert csr.attributes.get_attribute_for_oid(x509.ObjectIdentifier("1.2.840.113549.1.9.7")).value == b"secret"
    assert csr.is_signature_valid
    assert isinstance(csr.public_key(), rsa.RSAPublicKey)
    assert len(pki.make_csr("b.example", pki.new_key()).extensions) == 0


def test_private_files_are_private_even_over_an_open_one(tmp_path: Path) -> None:
    path, key = tmp_path / "key.pem", pki.new_key()
    path.write_text("old")
    path.chmod(0o644)
    pki.write_private(path, pki.key_pem(key))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert pki.read_key(path).public_key() == key.public_key()


@pytest.mark.parametrize("key_file", KEY_FILE.values())
def test_a_cadir_gives_the_authority_that_wrote_it(tmp_path: Path, key_file: str) -> None:
    (tmp_path / "ca_crt.pem").write_bytes(pki.pem(CA.certificate, ROOT.certificate))
    (tmp_path / "private").mkdir()
    pki.write_private(tmp_path / key_file, pki.key_pem(CA.key))
    assert pki.read_authority(tmp_path).certificate == CA.certificate
    pki.write_private(tmp_path / key_file, pki.key_pem(ROOT.key))
    with pytest.raises(IdentityError, match="not the key"):
        pki.read_authority(tmp_path)
    with pytest.raises(IdentityError, match="no usable ca_crt"):
        pki.read_authority(tmp_path / "nowhere")


def test_the_key_of_a_puppet_ca_comes_first(tmp_path: Path) -> None:
    """What an openvox-ca that was tried beside it has left is not its key."""
    (tmp_path / "ca_crt.pem").write_bytes(pki.pem(CA.certificate))
    (tmp_path / "private").mkdir()
    pki.write_private(tmp_path / KEY_FILE[OPENVOX_CA], pki.key_pem(ROOT.key))
    pki.write_private(tmp_path / KEY_FILE[None], pki.key_pem(CA.key))
    assert pki.read_authority(tmp_path).key.public_key() == CA.key.public_key()


@pytest.mark.skipif(os.geteuid() != 0, reason="changes the user")
def test_a_key_that_this_user_may_not_see_is_not_missing(tmp_path: Path) -> None:
    for path in (tmp_path, *tmp_path.parents):
        path.chmod(path.stat().st_mode | 0o055)
    (tmp_path / "ca_crt.pem").write_bytes(pki.pem(CA.certificate))
    (tmp_path / "private").mkdir(mode=0o700)
    pki.write_private(tmp_path / KEY_FILE[OPENVOX_CA], pki.key_pem(CA.key))
    os.seteuid(65534)
    try:
        with pytest.raises(
            IdentityError, match=r"private/ca_key\.pem cannot be read as a private key: Permission denied"
        ):
            pki.read_authority(tmp_path)
    finally:
        os.seteuid(0)
