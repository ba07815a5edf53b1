"""The identity that is lent towards the master: prepared once, for all connections."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from cryptography.hazmat.primitives.serialization import Encoding
from OpenSSL import SSL
from OpenSSL.crypto import PKey

from inspector.host import pki
from inspector.proxy import identity, tls
from inspector.proxy.identity import Credentials

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


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
    client, _ = tls.master_connection(SSL.Context(SSL.TLS_CLIENT_METHOD), "puppet", None, identity)
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
