"""The CA of a replay: it signs the one key of the agent that the replay is for.

Whoever reaches the port could otherwise enrol under the recorded certname, and would be given its catalog.
"""

from __future__ import annotations

import contextlib
import hmac
import secrets
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self
from urllib.parse import unquote

from cryptography import x509
from cryptography.x509.oid import AttributeOID

from inspector.errors import InspectorError
from inspector.host import pki
from inspector.lab.ca import LabCA
from inspector.model import Response
from inspector.protocol.kinds import Kind
from inspector.protocol.pem import UNREADABLE
from inspector.replay.agent_command import FOLDER

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes

    from inspector.model import Request
    from inspector.replay.recording import Signing

KEY_BITS = 2048
"""Of the agent's key: RSA, which all agents read."""
ATTRIBUTES = "csr_attributes.yaml"
_TEXT = (("Content-Type", "text/plain"), ("X-Puppet-Version", "7.23.0"))


class Refused(Exception):
    """Somebody else than the agent asked; the text is the reason, without anything captured."""


@dataclass(frozen=True, slots=True)
class Prepared:
    """What the agent is recognised by: a key in its own directory, or a challenge password for one elsewhere."""

    certname: str
    key: CertificatePublicKeyTypes
    password: str

    @classmethod
    def create(cls, folder: Path, certname: str) -> Self:
        """Write the agent's key, and the password in csr_attributes.yaml, readable by their owner only."""
        place, key = pki.SslDirPaths(folder / FOLDER / "ssl", certname), pki.new_key(KEY_BITS)
        place.create()
        pki.write_private(place.key, pki.key_pem(key))
        password = secrets.token_urlsafe(24)
        attribute = f"custom_attributes:\n  {AttributeOID.CHALLENGE_PASSWORD.dotted_string}: {password}\n"
        pki.write_private(folder / ATTRIBUTES, attribute.encode())
        return cls(certname, key.public_key(), password)

    def key_of(self, body: bytes, name: str) -> CertificatePublicKeyTypes:
        """Return the key of the agent's signing request. Raises Refused if it is somebody else's."""
        try:
            csr = x509.load_pem_x509_csr(body)
            key, proven = csr.public_key(), csr.is_signature_valid
        except UNREADABLE as error:
            raise Refused("a signing request that cannot be read") from error
        if name != self.certname:
            raise Refused("a signing request for another certname")
        if not proven:
            raise Refused("a signing request that its key has not signed")
        if key != self.key and not hmac.compare_digest(_password(csr), self.password.encode()):
            raise Refused("a signing request for another key than the prepared one, without the challenge password")
        return key


def _password(csr: x509.CertificateSigningRequest) -> bytes:
    try:
        return csr.attributes.get_attribute_for_oid(AttributeOID.CHALLENGE_PASSWORD).value
    except (x509.AttributeNotFound, *UNREADABLE):
        return b""


class Enrolment:
    """The CA: it signs the agent's own key, with the states of the recorded bootstrap in their order.

    It answers for ``/puppet-ca/v1``, and is safe to use from several threads. A signing request with another key begins
    the bootstrap anew. ``revoked``: the certificate is revoked as soon as it is issued.
    """

    def __init__(self, prepared: Prepared, signings: Sequence[Signing] = (), *, revoked: bool = False) -> None:
        self.ca = LabCA("puppet-inspector replay")
        self._prepared = prepared
        self._signings = signings
        self._revoked = revoked
        self._asked = {Kind.CSR: 0, Kind.CERTIFICATE: 0}
        self._key: CertificatePublicKeyTypes | None = None
        self._lock = threading.Lock()

    def answer(self, kind: Kind, request: Request, name: str) -> Response | None:
        """Answer a request about a name; None: there is nothing to answer it with. Raises Refused."""
        with self._lock:
            match kind:
                case Kind.CA_BUNDLE:
                    return text(200, self.ca.ca_bundle)
                case Kind.CRL:
                    return text(200, self.ca.crl_bundle)
                case Kind.CSR_LOOKUP:
                    # A request with the password in it is for nobody's eyes: this needs no certificate.
                    shown = self.ca.request(name) if self._key == self._prepared.key else None
                    return _found(shown, request)
                case Kind.CSR:
                    return self._submit(name, request.body)
                case Kind.CERTIFICATE:
                    return self._certificate(name, request)
        return None

    def _submit(self, name: str, body: bytes) -> Response:
        key = self._prepared.key_of(body, name)
        if key != self._key:
            self.ca.clean(name)
            self._key, self._asked = key, dict.fromkeys(self._asked, 0)
        status, reason = self.ca.submit(name, body)
        recorded = self._next(Kind.CSR)
        if self.ca.state(name) is None or recorded is None:
            return text(status, reason.encode())
        return text(recorded.status, recorded.body)

    def _certificate(self, name: str, request: Request) -> Response:
        if name != self._prepared.certname or self._key is None:  # the turn of a recorded answer is the agent's
            return _found(None, request)
        recorded = self._next(Kind.CERTIFICATE)
        if recorded is not None and recorded.status != 200:
            return text(recorded.status, recorded.body)
        if recorded is not None and recorded.foreign:
            return text(200, pki.pem(pki.sign(self.ca.authority, pki.new_key().public_key(), name)))
        if self.ca.state(name) == "requested":
            with contextlib.suppress(InspectorError):  # it asks for more than a CA grants: it stays a request
                self.ca.sign(name)
                if self._revoked:
                    self.ca.revoke(name)
        return _found(self.ca.certificate(name), request)

    def _next(self, kind: Kind) -> Signing | None:
        """Return the recorded answer whose turn it is; the last one repeats, unless a certificate was issued."""
        recorded = [signing for signing in self._signings if signing.kind is kind]
        at = self._asked[kind]
        self._asked[kind] += 1
        if at < len(recorded):
            return recorded[at]
        issued = any(signing.kind is Kind.CERTIFICATE and signing.status == 200 for signing in self._signings)
        return None if issued or not recorded or kind is Kind.CSR else recorded[-1]


def text(status: int, body: bytes) -> Response:
    """Return an answer in plain text."""
    return Response(status=status, headers=_TEXT, body=body)


def _found(body: bytes | None, request: Request) -> Response:
    if body is not None:
        return text(200, body)
    kind, _, name = unquote(request.path).rpartition("/")
    return text(404, f"Could not find {kind.rpartition('/')[2]} {name}".encode())
