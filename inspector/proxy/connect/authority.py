"""A proxy's own CA: its key is in memory only, and it signs certificates for the servers that agents ask for."""

from __future__ import annotations

import secrets
from datetime import UTC, datetime, timedelta

from inspector import regex
from inspector.host import pki
from inspector.model import RUN_CA
from inspector.proxy.identity import Credentials

MOST = 100
"""Servers with a certificate; an agent has a handful."""
_BLOCK = regex.compile(rb"-----BEGIN [A-Z0-9 ]{1,40}-----[^-]+-----END [A-Z0-9 ]{1,40}-----\r?\n?")


class RunAuthority:
    """A CA with its CRL, and the certificates that it has signed."""

    def __init__(self, lifetime: timedelta) -> None:
        """The CA, its CRL and what it signs are valid for ``lifetime``."""
        self._lifetime = lifetime
        # Two CAs of one name break verification, so no two runs have the same.
        self._authority = pki.make_ca(f"{RUN_CA} {secrets.token_hex(8)}", lifetime=lifetime)
        self._key = pki.new_key()
        now = datetime.now(UTC)
        crl = pki.make_crl(self._authority, last_update=now - pki.BACKDATED, next_update=now + lifetime)
        self.certificate = pki.pem(self._authority.certificate)
        """The CA's certificate in PEM."""
        self.crl = pki.pem(crl)
        """Its CRL in PEM."""
        self._own = {_words(self.certificate), _words(self.crl)}
        self._signed: dict[str, Credentials] = {}

    def credentials_for(self, host: str) -> Credentials:
        """Return the certificate to present as the server of this name or address, and its key."""
        if host not in self._signed:
            if len(self._signed) >= MOST:
                self._signed.clear()
            leaf = pki.sign(self._authority, self._key.public_key(), host, lifetime=self._lifetime)
            self._signed[host] = Credentials((leaf, self._authority.certificate), self._key)
        return self._signed[host]

    def removed(self, content: bytes) -> bytes:
        """Return a file's content without the certificate and the CRL of this CA."""
        return _BLOCK.sub(lambda block: b"" if _words(block[0]) in self._own else block[0], content)


def _words(block: bytes) -> bytes:
    """Return a PEM block without its line breaks, which programs place as they like."""
    return b"".join(block.split())
