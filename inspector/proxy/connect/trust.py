"""What an agent trusts: its CA bundle and its CRLs, by its own setting of ``certificate_revocation``; and both as its
CA gives them to anybody."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import ssl
import time
from http import HTTPStatus
from typing import TYPE_CHECKING, Literal, NamedTuple

from cryptography import x509 as cx509
from cryptography.hazmat.primitives.serialization import Encoding
from OpenSSL.crypto import X509StoreFlags

from inspector import clocks, inputs
from inspector.host import https
from inspector.protocol import x509
from inspector.protocol.pem import UNREADABLE
from inspector.proxy import tls
from inspector.proxy.connect.dialing import dial
from inspector.proxy.connection_state import Refusal
from inspector.text import address

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from inspector.proxy.connect.dialing import SiteProxy

type Revocation = Literal["chain", "leaf", "false"]
"""The setting ``certificate_revocation``: which certificates an agent looks up in its CRLs."""

BUNDLE, CRLS = "/puppet-ca/v1/certificate/ca", "/puppet-ca/v1/certificate_revocation_list/ca"
"""What a CA gives to anybody."""
PATIENCE = 10.0
"""Seconds that a download may take."""
_FLAGS = {
    "chain": X509StoreFlags.CRL_CHECK | X509StoreFlags.CRL_CHECK_ALL, "leaf": X509StoreFlags.CRL_CHECK, "false": 0,
}  # fmt: skip


class NodeTrust:
    """The trust of the node on which the proxy runs. What it does not verify, the proxy does not verify either."""

    error: str | None = None

    def __init__(self, ca: Path, crl: Path, revocation: Revocation) -> None:
        """``ca`` and ``crl`` are the files of the node; they need not exist."""
        self._ca, self._crl, self._revocation = ca, crl, revocation
        self._state: object = None
        self._has_bundle = False
        self.refresh()

    @property
    def verifies(self) -> bool:
        """Whether the agent has a CA bundle: without one it downloads it, and cannot verify from whom. At one that it
        cannot read it stops."""
        return self._has_bundle

    def refresh(self) -> None:
        """Read the files again if they changed; what cannot be read verifies nobody."""
        state = tls.stamp(self._ca), tls.stamp(self._crl)
        if state == self._state:
            return
        self._state = state
        bundle, crls = _read(self._ca), _read(self._crl)
        self._has_bundle = bundle is not None
        self.authorities = certificates_in(bundle or b"")
        self.crls = crls_in(crls or b"")
        ders = [each.public_bytes(Encoding.DER) for each in self.authorities]
        ders += [each.public_bytes(Encoding.DER) for each in self.crls]
        # Before an agent has CRLs it downloads them, without looking up anything.
        self.flags = 0 if crls is None else _FLAGS[self._revocation]
        self.digest = hashlib.sha256(b"".join((b"%d %d " % (self.verifies, self.flags), *ders))).digest()

    @staticmethod
    def tolerates_agent(problem: x509.Problem) -> bool:
        """Whether a certificate is valid is the master's to judge, as in a direct run."""
        return True

    def tolerates_master(self, problem: x509.Problem, *, identified: bool) -> bool:
        """An agent with a CA bundle tolerates nothing; one without it downloads the bundle, without its certificate."""
        return not self.verifies and not identified


def _read(path: Path) -> bytes | None:
    """Return a file's content; None if there is no file."""
    try:
        return inputs.read(path)
    except FileNotFoundError:
        return None
    except OSError:
        return b""


def certificates_in(data: bytes) -> tuple[cx509.Certificate, ...]:
    """Return the certificates of a bundle; none if OpenSSL cannot read all of it."""
    try:
        found = tuple(cx509.load_pem_x509_certificates(data))
        x509.check_usable([each.public_bytes(Encoding.DER) for each in found])
    except UNREADABLE:
        return ()
    return found


def crls_in(data: bytes) -> tuple[cx509.CertificateRevocationList, ...]:
    """Return the CRLs in PEM; none if OpenSSL cannot read all of them."""
    try:
        found = tuple(cx509.load_pem_x509_crl(block) for block in x509.pem_blocks(data, "X509 CRL"))
        x509.check_usable((), [each.public_bytes(Encoding.DER) for each in found])
    except UNREADABLE:
        return ()
    return found


class Download(NamedTuple):
    """What a server answered."""

    body: bytes = b""
    """Empty for another status than 200, and without an answer."""
    ahead: float | None = None
    """Seconds by which the server's clock is ahead of this host's, which any answer says; None: not known."""


def download(server: tuple[str, int], site: SiteProxy | None, path: str) -> Download:
    """Return what a server has there, as an agent without a CA bundle downloads it: from anybody."""
    unverified = ssl.create_default_context()
    unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
    try:
        with contextlib.closing(https.over(dial(server, site, PATIENCE), unverified, server[0])) as connection:
            connection.request("GET", path, headers={"Accept": "text/plain", "Host": address(*server)})
            answer = connection.getresponse()
            there = clocks.http_date(answer.headers.get("date", ""))
            body = answer.read(inputs.SMALL) if answer.status == HTTPStatus.OK else b""
            return Download(body, None if there is None else there - time.time())
    except (OSError, ValueError, http.client.HTTPException):
        return Download()


def refusals(server: tuple[str, int], site: SiteProxy | None, chain: Sequence[bytes]) -> Refusal:
    """Return why a master refuses a certificate chain (DER), by what its CA has now and by its clock; no problems if
    that shows nothing."""
    bundle, ahead = download(server, site, BUNDLE)
    authorities = certificates_in(bundle)
    lists = crls_in(download(server, site, CRLS).body)
    if not authorities:
        return Refusal(ahead=ahead)
    ders = [each.public_bytes(Encoding.DER) for each in authorities]
    crls = [each.public_bytes(Encoding.DER) for each in lists]
    try:
        problems = x509.verify(chain, ders, crls, time.time() + (ahead or 0), "chain" if crls else "none")
    except x509.Malformed:
        return Refusal(ahead=ahead)
    return Refusal(tuple(str(problem) for problem in problems), ahead)
