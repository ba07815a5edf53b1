"""A fatal alert of TLS 1.3, sent by hand (RFC 8446, 5.2 and 6.2).

A master refuses an agent's certificate with an alert, after the agent has finished its handshake. Through the proxy
that is another connection, and OpenSSL sends no alert that it is asked for. The agent must see the master's, so that it
prints what it prints in a direct run.
"""

from __future__ import annotations

from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM, ChaCha20Poly1305
from cryptography.hazmat.primitives.kdf.hkdf import HKDFExpand

APPLICATION_DATA, ALERT, FATAL = 0x17, 0x15, 2
HEADER = 5
"""Bytes before each record: its type, a version, and its length."""
SECRET = b"SERVER_TRAFFIC_SECRET_0 "
"""The beginning of the line of a key log with the secret that encrypts what a server sends."""
_CIPHERS: dict[str, tuple[hashes.HashAlgorithm, type[AESGCM | ChaCha20Poly1305], int]] = {
    "TLS_AES_128_GCM_SHA256": (hashes.SHA256(), AESGCM, 16),
    "TLS_AES_256_GCM_SHA384": (hashes.SHA384(), AESGCM, 32),
    "TLS_CHACHA20_POLY1305_SHA256": (hashes.SHA256(), ChaCha20Poly1305, 32),
}


class SentRecords:
    """What a server has sent since its client finished the handshake: each record is encrypted under its number."""

    def __init__(self) -> None:
        self.number = 0
        """How many records were sent."""
        self._rest = b""
        self._missing = 0

    def add(self, data: bytes) -> None:
        """Count the records in what is sent."""
        self._rest += data
        while True:
            skipped = min(self._missing, len(self._rest))
            self._rest, self._missing = self._rest[skipped:], self._missing - skipped
            if self._missing or len(self._rest) < HEADER:
                return
            self.number += 1
            self._missing = HEADER + int.from_bytes(self._rest[3:HEADER])


def fatal(code: int, secret: bytes, cipher: str, number: int) -> bytes | None:
    """Return the record of a fatal alert; None for a cipher that TLS 1.3 does not have.

    ``secret`` is a line of a key log that begins with ``SECRET``, ``number`` the number of records before this one.
    """
    if cipher not in _CIPHERS or not secret.startswith(SECRET):
        return None
    digest, algorithm, size = _CIPHERS[cipher]
    traffic = bytes.fromhex(secret.split()[2].decode("ascii"))
    key, start = (_expanded(traffic, digest, label, length) for label, length in ((b"key", size), (b"iv", 12)))
    nonce = (int.from_bytes(start) ^ number).to_bytes(12)
    content = bytes((FATAL, code, ALERT))
    header = bytes((APPLICATION_DATA, 3, 3)) + (len(content) + 16).to_bytes(2)
    return header + algorithm(key).encrypt(nonce, content, header)


def _expanded(secret: bytes, digest: hashes.HashAlgorithm, label: bytes, length: int) -> bytes:
    """HKDF-Expand-Label with an empty context (RFC 8446, 7.1)."""
    name = b"tls13 " + label
    info = length.to_bytes(2) + bytes((len(name),)) + name + b"\0"
    return HKDFExpand(digest, length, info).derive(secret)
