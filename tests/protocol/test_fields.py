"""Fields as text."""

from __future__ import annotations

from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from inspector.protocol import fields


def test_kinds_of_keys() -> None:
    assert fields.key_kind(rsa.generate_private_key(65537, 2048).public_key()) == ("rsa", 2048)
    assert fields.key_kind(ec.generate_private_key(ec.SECP256R1()).public_key()) == ("ec", 256)
    assert fields.key_kind(ed25519.Ed25519PrivateKey.generate().public_key()) == ("ed25519", None)


def test_an_extensions_text_is_with_or_without_its_der() -> None:
    assert fields.extension_text(b"\x0c\x03web") == "web"
    assert fields.extension_text(b"web") == "web"
    assert fields.extension_text(b"\x0c\x7fweb") == "\x0c\x7fweb"
