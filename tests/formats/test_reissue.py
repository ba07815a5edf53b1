"""Certificates whose fields are damaged: the library notices only when it reads them."""

from __future__ import annotations

import pytest
from cryptography.hazmat.primitives.serialization import Encoding

from inspector.formats import reissue
from inspector.host import pki
from inspector.protocol.pem import Malformed


def test_damaged_extensions_are_malformed() -> None:
    ca = pki.make_ca("CA")
    der = bytearray(pki.sign(ca, pki.new_key().public_key(), "web1.example").public_bytes(Encoding.DER))
    at = der.index(b"\x80\x14")  # the identifier of the signer's key: now its serial number, with zeros before it
    der[at], der[at + 2 : at + 4] = 0x82, b"\0\0"
    read = reissue.parse(bytes(der))
    with pytest.raises(Malformed):
        reissue.identifiers(read)
