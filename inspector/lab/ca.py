"""A Puppet CA in memory: requests, certificates, revocations, and its answers to signing requests.

Root and intermediate are those of ``puppetserver ca setup``; refusals have the wording of puppetserver 7.9.5. The CA
does not handle HTTP, and writes files only on request.
"""

from __future__ import annotations

import secrets
import ssl
import threading
from typing import TYPE_CHECKING, Literal

from cryptography import x509

from inspector import regex
from inspector.errors import InspectorError
from inspector.host import pki

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes

type RequestStatus = Literal["requested", "signed", "revoked"]

_AUTHORIZATION_ARC = "1.3.6.1.4.1.34380.1.3."
_HOSTNAME = regex.compile(r"[A-Za-z0-9_][A-Za-z0-9_-]*(\.[A-Za-z0-9_-]+)*")
_FORBIDDEN = (
    "CSR '{0}' contains {1}, which {2} disallowed. To allow {3}, set {4} to true in your ca.conf file. "
    "Then restart the puppetserver and try signing this certificate again."
)


class LabCA:
    """The CA and its state. Safe to use from several threads."""

    def __init__(self, name: str, *, autosign: bool = False) -> None:
        self.autosign = autosign
        self.root = pki.make_ca(f"Puppet Root CA: {secrets.token_hex(7)}", serial=1)
        self.authority = pki.make_ca(f"Puppet CA: {name}", self.root, serial=2)
        self.inventory: list[x509.Certificate] = []
        """All issued certificates, in order."""
        self.ca_bundle = pki.pem(self.authority.certificate, self.root.certificate)
        self._root_crl = pki.make_crl(
            self.root,
            last_update=self.root.certificate.not_valid_before_utc,
            next_update=self.root.certificate.not_valid_after_utc,
        )
        self._requests: dict[str, x509.CertificateSigningRequest] = {}
        self._certificates: dict[str, x509.Certificate] = {}
        self._revoked: list[int] = []
        self._crl_number = -1
        self._lock = threading.RLock()
        self.publish_crl()

    # -- public documents -------------------------------------------------------------------------------

    @property
    def crl_bundle(self) -> bytes:
        """Return both CRLs as PEM, the intermediate's first: an agent that checks the chain needs both."""
        return pki.pem(self._crl, self._root_crl)

    @property
    def signing_crl(self) -> bytes:
        """Return only the intermediate's CRL as PEM."""
        return pki.pem(self._crl)

    def request(self, certname: str) -> bytes | None:
        """Return the pending request as PEM."""
        csr = self._requests.get(certname)
        return pki.pem(csr) if csr else None

    def certificate(self, certname: str) -> bytes | None:
        """Return the certificate as PEM, revoked or not."""
        certificate = self._certificates.get(certname)
        return pki.pem(certificate) if certificate else None

    def state(self, certname: str) -> RequestStatus | None:
        """Return the state of a certname; None if it is unknown or was cleaned."""
        with self._lock:
            if certificate := self._certificates.get(certname):
                return "revoked" if certificate.serial_number in self._revoked else "signed"
            return "requested" if certname in self._requests else None

    # -- for agents -------------------------------------------------------------------------

    def submit(self, certname: str, body: bytes) -> tuple[int, str]:
        """Handle a request to ``certificate_request/<certname>``, and return the HTTP status and text of the answer."""
        try:
            csr = x509.load_pem_x509_csr(body)
        except ValueError:
            return 500, (
                "Internal Server Error: java.lang.IndexOutOfBoundsException: Index 0 out of bounds for length 0"
            )
        name = pki.certname_of(csr)
        with self._lock:
            if state := self.state(name):
                return 400, f"{name} already has a {state} certificate; ignoring certificate request"
            if refusal := _bad_subject(name, certname):
                return 400, refusal
            self._requests[name] = csr
            if self.autosign:
                # As in puppetserver the request stays pending although the answer is 400.
                if refusal := _unsignable(csr):
                    return 400, refusal
                self.sign(name)
        return 200, ""

    # -- for administrators -----------------------------------------------------------------

    def sign(self, certname: str, alt_names: Iterable[str] = ()) -> x509.Certificate:
        """Do ``puppetserver ca sign --certname``, with ``alt_names`` chosen by the CA."""
        with self._lock:
            csr = self._requests.get(certname)
            if csr is None:
                raise InspectorError(f"Cannot sign certificate for host {certname} without a certificate request")
            if refusal := _unsignable(csr):
                raise InspectorError(refusal)
            del self._requests[certname]
            return self._issue(csr.public_key(), certname, alt_names)

    def revoke(self, certname: str) -> None:
        """Do ``puppetserver ca revoke --certname``: new connections are refused from now on."""
        with self._lock:
            certificate = self._certificates.get(certname)
            if certificate is None:
                raise InspectorError(f"Cannot revoke certificate for host {certname} without a signed certificate")
            self._revoked.append(certificate.serial_number)
            self.publish_crl()

    def clean(self, certname: str) -> None:
        """Do ``puppetserver ca clean --certname``: revoke and forget."""
        with self._lock:
            if self.state(certname) == "signed":
                self.revoke(certname)
            self._certificates.pop(certname, None)
            self._requests.pop(certname, None)

    def publish_crl(self, last_update: datetime | None = None, next_update: datetime | None = None) -> None:
        """Issue a CRL with the next number; the times allow an expired one."""
        with self._lock:
            self._crl_number += 1
            self._crl = pki.make_crl(self.authority, self._revoked, self._crl_number, last_update, next_update)

    # -- directories ----------------------------------------------------------------------------------

    def enrol(self, ssldir: Path, certname: str, alt_names: Iterable[str] = ()) -> pki.SslDirPaths:
        """Fill an ssldir as if ``certname`` had finished its bootstrap."""
        place, key = pki.SslDirPaths(ssldir, certname), pki.new_key()
        place.create()
        with self._lock:
            certificate = self._issue(key.public_key(), certname, alt_names)
        pki.write_private(place.key, pki.key_pem(key))
        place.certificate.write_bytes(pki.pem(certificate))
        place.ca.write_bytes(self.ca_bundle)
        place.crl.write_bytes(self.crl_bundle)
        return place

    def server_context(self, place: pki.SslDirPaths) -> ssl.SSLContext:
        """Return the TLS context for a new connection to a master with that ssldir, with the current CRLs: a revocation
        needs no restart."""
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.verify_mode = ssl.CERT_OPTIONAL  # Jetty's client-auth: want
        context.verify_flags |= ssl.VERIFY_CRL_CHECK_CHAIN
        context.load_cert_chain(place.certificate, place.key)
        trust = place.path / "trust.pem"
        with self._lock:  # Python takes CRLs from a file only
            trust.write_bytes(self.ca_bundle + self.crl_bundle)
            context.load_verify_locations(cafile=trust)
        return context

    def write_cadir(self, cadir: Path) -> None:
        """Write the CA's certificate, key and CRL bundle as in a master's cadir."""
        cadir.mkdir(mode=0o700, parents=True, exist_ok=True)
        (cadir / "ca_crt.pem").write_bytes(self.ca_bundle)
        (cadir / "ca_crl.pem").write_bytes(self.crl_bundle)
        pki.write_private(cadir / "ca_key.pem", pki.key_pem(self.authority.key))

    def _issue(self, key: CertificatePublicKeyTypes, certname: str, alt_names: Iterable[str]) -> x509.Certificate:
        serial = len(self.inventory) + 3  # root and intermediate are 1 and 2
        certificate = pki.sign(self.authority, key, certname, alt_names, serial=serial)
        self.inventory.append(certificate)
        self._certificates[certname] = certificate
        return certificate


def _bad_subject(name: str, requested: str) -> str | None:
    """Return why the subject is refused, checked in puppetserver's order."""
    if name != requested:
        return f'Instance name "{name}" does not match requested key "{requested}"'
    if name != name.lower():
        return "Certificate names must be lower case."
    if "*" in name:
        return f"Subject contains a wildcard, which is not allowed: {name}"
    if not _HOSTNAME.fullmatch(name) or name.endswith("-"):
        return "Subject hostname format is invalid"
    return None


def _unsignable(csr: x509.CertificateSigningRequest) -> str | None:
    """Return why a request is not signed; without autosigning the CA checks this only when an administrator signs."""
    name = pki.certname_of(csr)
    for extension in csr.extensions:
        if isinstance(extension.value, x509.SubjectAlternativeName):
            names = [f"{'DNS' if isinstance(n, x509.DNSName) else 'IP'}:{n.value}" for n in extension.value]
            if names != [f"DNS:{name}"]:
                forbidden = f"extra subject alternative names ({', '.join(names)})"
                return _FORBIDDEN.format(name, forbidden, "are", "subject alternative names", "allow-subject-alt-names")
        elif extension.oid.dotted_string.startswith(_AUTHORIZATION_ARC):
            return _FORBIDDEN.format(
                name,
                "an authorization extension",
                "is",
                "authorization extensions",
                "allow-authorization-extensions",
            )
    if not csr.is_signature_valid:
        return "CSR contains a public key that does not correspond to the signing key"
    return None
