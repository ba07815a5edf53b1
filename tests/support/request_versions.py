"""Signing requests of versions that do not exist."""

from __future__ import annotations

import base64

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec

from inspector.formats.der_values import value
from inspector.protocol import unusual
from inspector.protocol.der import places


def armed(der: bytes, label: str) -> bytes:
    """Return DER in PEM."""
    return f"-----BEGIN {label}-----\n{base64.encodebytes(der).decode()}-----END {label}-----\n".encode()


def with_version(request: bytes, number: int, key: ec.EllipticCurvePrivateKey) -> bytes:
    """Return a request of another version, signed again with its key; puppetserver-ca 2.4 writes 2."""
    signed = bytearray(unusual.signed_part(request))
    at = signed.index(b"\x02\x01\x00")
    signed[at + 2] = number
    outer = places(request, 0, len(request))[0]
    algorithm = places(request, *outer[2:])[1]
    signature = key.sign(bytes(signed), ec.ECDSA(hashes.SHA256()))
    return value(0x30, bytes(signed) + request[algorithm[0] : algorithm[3]] + value(0x03, b"\0" + signature))
