"""The identity that is lent towards the master: prepared once, for all connections."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding
from OpenSSL import SSL
from OpenSSL.crypto import PKey

from inspector.errors import IdentityError
from inspector.host import pki
from inspector.lab.ca import LabCA
from inspector.proxy import identity, tls
from inspector.proxy.identity import PRIVILEGED, Credentials, Nobody, UnprivilegedMint
from tests.support.ca_directories import AUTHORITY, MadeCa

if TYPE_CHECKING:
    from pathlib import Path


def credentials(authority: pki.Authority, certname: str) -> Credentials:
    key = pki.new_key()
    return Credentials((pki.sign(authority, key.public_key(), certname),), key)


def shown(identity: Credentials) -> bytes | None:
    """What a connection made with an identity shows a master, handshake and all (DER)."""
    server_context = SSL.Context(SSL.TLS_SERVER_METHOD)
    mine = credentials(pki.make_ca("Other CA"), "puppet")
    server_context.use_certificate(mine.chain[0])
    server_context.use_privatekey(mine.key)
    server_context.set_verify(SSL.VERIFY_PEER, lambda *_: True)
    server = SSL.Connection(server_context)
    server.set_accept_state()
    trust: Any = SimpleNamespace(verifies=False, tolerates_master=lambda *_, **__: True)
    client, _ = tls.master_connection(SSL.Context(SSL.TLS_CLIENT_METHOD), trust, "puppet", None, identity)
    client.set_verify(SSL.VERIFY_NONE, lambda *_: True)
    for _ in range(4):
        for one, other in ((client, server), (server, client)):
            with contextlib.suppress(SSL.WantReadError):
                one.do_handshake()
            with contextlib.suppress(SSL.WantReadError):
                other.bio_write(one.bio_read(65535))
    certificate = server.get_peer_certificate(as_cryptography=True)
    return Credentials((certificate,), identity.key).ders[0] if certificate else None


def test_a_key_is_prepared_once_and_a_renewed_one_counts_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    prepared = []
    prepare = PKey.from_cryptography_key

    def counted(key: pki.PrivateKey) -> PKey:
        prepared.append(key)
        return prepare(key)

    authority = pki.make_ca("Puppet CA")
    first, renewed = (credentials(authority, "agent.example") for _ in range(2))
    monkeypatch.setattr(PKey, "from_cryptography_key", counted)
    assert [shown(credential) for credential in (first, first, renewed, first)] == [
        credential.ders[0] for credential in (first, first, renewed, first)
    ]
    assert [key for key in prepared if key in (first.key, renewed.key)] == [first.key, renewed.key]


def test_no_more_identities_are_kept_than_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(identity, "IDENTITIES", 3)
    authority = pki.make_ca("Puppet CA")
    minting: Any = object.__new__(identity.Mint)
    minting._authority, minting._cache, minting._alt_names = authority, {}, False
    keys = identity.KeyDirectory(tmp_path)
    for number in range(6):
        name = f"agent{number}.example"
        used = credentials(authority, name)
        minting.credentials_for(used.chain[0], name)
        file = tmp_path / f"{name}.pem"
        file.touch(0o600)
        file.write_bytes(used.chain[0].public_bytes(Encoding.PEM) + pki.key_pem(used.key))
        assert keys.credentials_for(used.chain[0], name)
    assert len(minting._cache) == 3
    assert list(keys._cache) == [f"agent{number}.example" for number in (3, 4, 5)]


def test_a_certificate_is_made_with_an_openvox_cas_key(tmp_path: Path) -> None:
    cadir = MadeCa().write(tmp_path / "ca", openvox=True)
    agent = credentials(AUTHORITY, "agent.example").chain[0]
    minted = identity.Mint(cadir).credentials_for(agent, "agent.example")
    assert minted is not None
    minted.chain[0].verify_directly_issued_by(AUTHORITY.certificate)
    (cadir / "private/ca_key.pem").chmod(0o644)
    with pytest.raises(IdentityError, match="Other users can read"):
        identity.Mint(cadir)


# -- the node's own key -----------------------------------------------------------------------------------


def enrolled(folder: Path, used: Credentials, certname: str = "web1.example") -> None:
    """Let a node have a certificate and its key."""
    for name, content in (("certs", pki.pem(*used.chain)), ("private_keys", pki.key_pem(used.key))):
        (folder / name).mkdir(parents=True, exist_ok=True)
        pki.write_private(folder / name / f"{certname}.pem", content)


def test_a_certificate_that_was_renewed_since_it_was_copied_is_used(tmp_path: Path) -> None:
    authority, key = pki.make_ca("Puppet CA"), pki.new_key()
    copied, renewed = (pki.sign(authority, key.public_key(), "agent.example") for _ in range(2))
    other = credentials(authority, "agent.example").chain[0]
    pki.write_private(tmp_path / "agent.example.pem", pki.key_pem(key) + pki.pem(copied))
    keys = identity.KeyDirectory(tmp_path)
    for agent, used in ((copied, copied), (renewed, renewed), (renewed, renewed), (copied, copied)):
        found = keys.credentials_for(agent, "agent.example")
        assert found is not None
        assert found.chain == (used,)
        assert found.key.public_key() == key.public_key()
    assert keys.credentials_for(renewed, "agent.example") is keys.credentials_for(renewed, "agent.example")
    # Another key's certificate is not the copy's.
    found = keys.credentials_for(other, "agent.example")
    assert found is not None
    assert found.chain[0] != other


def test_a_nodes_key_is_for_its_own_certificate_only(tmp_path: Path) -> None:
    """Byte for byte: the key could also be used for another certificate of the same name."""
    authority = pki.make_ca("Puppet CA")
    own = credentials(authority, "web1.example")
    enrolled(tmp_path, own)
    node = identity.NodeKey(tmp_path, "web1.example")
    used = node.credentials_for(own.chain[0], "web1.example")
    assert node.recognizes(own.chain[0])
    assert used is not None
    assert (used.chain, used.key.public_key()) == (own.chain, own.key.public_key())
    again = pki.sign(authority, own.key.public_key(), "web1.example")  # of the same key
    other = credentials(authority, "db1.example").chain[0]
    foreign = credentials(pki.make_ca("Puppet CA"), "web1.example").chain[0]
    for certificate in (again, other, foreign):
        assert not node.recognizes(certificate)
        for name in ("web1.example", "db1.example"):
            with pytest.raises(IdentityError, match="not the certificate of this node"):
                node.credentials_for(certificate, name)


def test_a_nodes_certificate_need_not_be_valid(tmp_path: Path) -> None:
    """That is the master's to judge, as without the proxy."""
    key = pki.new_key()
    old = pki.sign(
        pki.make_ca("Another CA"), key.public_key(), "web1.example", not_before=datetime(2020, 1, 1, tzinfo=UTC),
        lifetime=timedelta(1),
    )  # fmt: skip
    enrolled(tmp_path, Credentials((old,), key))
    assert identity.NodeKey(tmp_path, "web1.example").recognizes(old)


def test_a_fresh_node_has_no_key_until_it_has_one(tmp_path: Path) -> None:
    """Also without its directory, which its agent makes during the run."""
    own = credentials(pki.make_ca("Puppet CA"), "web1.example")
    node = identity.NodeKey(tmp_path / "ssl", "web1.example")
    assert not node.recognizes(own.chain[0])
    enrolled(tmp_path / "ssl", own)
    assert node.recognizes(own.chain[0])


def test_others_recognize_nothing_unverified(tmp_path: Path) -> None:
    own = credentials(pki.make_ca("Puppet CA"), "web1.example")
    enrolled(tmp_path, own)
    for source in (identity.KeyDirectory(tmp_path), identity.HeaderIdentity(), identity.NoIdentity()):
        assert not source.recognizes(own.chain[0])


ROLE = "1.3.6.1.4.1.34380.1.1.13"
"""pp_role, a trusted fact."""
NODE = "web1.example"


def certificate(oid: str = "") -> x509.Certificate:
    ca, key = pki.make_ca("CA"), pki.new_key()
    named = x509.ObjectIdentifier(oid) if oid else None
    extensions = (
        [x509.Extension(named, critical=False, value=x509.UnrecognizedExtension(named, b"\x0c\x01x"))] if named else []
    )
    return pki.sign(ca, key.public_key(), NODE, extensions=extensions)


@pytest.mark.parametrize("oid", PRIVILEGED)
def test_who_may_do_more_than_others(oid: str, tmp_path: Path) -> None:
    LabCA("puppet.example").write_cadir(tmp_path / "ca")
    with pytest.raises(IdentityError, match=PRIVILEGED[oid]):
        UnprivilegedMint(tmp_path / "ca").credentials_for(certificate(oid), NODE)


@pytest.mark.parametrize("oid", ["", ROLE])
def test_everybody_else_is_served(oid: str, tmp_path: Path) -> None:
    LabCA("puppet.example").write_cadir(tmp_path / "ca")
    assert UnprivilegedMint(tmp_path / "ca").credentials_for(certificate(oid), NODE)


def test_without_the_cas_key_nobody_is_who_has_a_certificate() -> None:
    with pytest.raises(IdentityError, match="not on this host"):
        Nobody().credentials_for(certificate(), NODE)
