"""The CA of a replay: it signs the one key of the agent that the replay is for.

Whoever reaches the port could otherwise enrol under the recorded certname, and would be given its catalog.

The answers of the recorded bootstrap come in their order over connections on which the agent's own signing request
came: agents from 6 on ask for their certificate there. Whatever is asked on others changes nothing.
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


@dataclass(slots=True)
class Peer:
    """Who asks over a connection."""

    agent: bool = False
    """Whether it has the agent's certificate, or sent the agent's signing request, which nobody else is shown."""


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
        issued = [signing.foreign for signing in signings if signing.kind is Kind.CERTIFICATE and signing.status == 200]
        self._issued = bool(issued)
        self._signs = not all(issued) if issued else not any(one.kind is Kind.CERTIFICATE for one in signings)
        """Whether the agent's key has its certificate in the end."""
        self._foreign = b""
        """The certificate of another key, if that is what the agent is given."""
        if any(issued):
            self._foreign = pki.pem(pki.sign(self.ca.authority, pki.new_key().public_key(), prepared.certname))
        self._revoked = revoked
        self._asked = {Kind.CSR: 0, Kind.CERTIFICATE: 0}
        self._key: CertificatePublicKeyTypes | None = None
        self._request: bytes | None = None
        self._lock = threading.Lock()

    def answer(self, kind: Kind, request: Request, name: str, peer: Peer) -> Response | None:
        """Answer a request about a name; None: there is nothing to answer it with. Raises Refused."""
        with self._lock:
            match kind:
                case Kind.CA_BUNDLE:
                    return text(200, self.ca.ca_bundle)
                case Kind.CRL:
                    return text(200, self.ca.crl_bundle)
                case Kind.CSR_LOOKUP:
                    shown = peer.agent and self._key == self._prepared.key
                    return _found(self._request if shown else None, request)
                case Kind.CSR:
                    return self._submit(name, request.body, peer)
                case Kind.CERTIFICATE:
                    return self._certificate(name, request, peer)
        return None

    def _submit(self, name: str, body: bytes, peer: Peer) -> Response:
        key = self._prepared.key_of(body, name)
        peer.agent = True
        if key != self._key:
            self.ca.clean(name)
            self._key, self._asked = key, dict.fromkeys(self._asked, 0)
        status, reason = self.ca.submit(name, body)
        if self.ca.state(name) == "requested":
            self._request = body
            self._sign(name)
        recorded = self._next(Kind.CSR)
        if self.ca.state(name) is None or recorded is None:
            return text(status, reason.encode())
        return text(recorded.status, recorded.body)

    def _sign(self, name: str) -> None:
        """Issue the certificate now, though the agent may have to wait for it: else who asks first would issue it."""
        if self._signs:
            with contextlib.suppress(InspectorError):  # it asks for more than a CA grants: it stays a request
                self.ca.sign(name)
                if self._revoked:
                    self.ca.revoke(name)

    def _certificate(self, name: str, request: Request, peer: Peer) -> Response:
        if name != self._prepared.certname or self._key is None:
            return _found(None, request)
        recorded = self._next(Kind.CERTIFICATE) if peer.agent else None
        if recorded is not None and recorded.status != 200:
            return text(recorded.status, recorded.body)
        foreign = recorded.foreign if recorded is not None else not self._signs
        return _found((self._foreign or None) if foreign else self.ca.certificate(name), request)

    def _next(self, kind: Kind) -> Signing | None:
        """Return the recorded answer whose turn it is; the last one repeats, unless a certificate was issued."""
        recorded = [signing for signing in self._signings if signing.kind is kind]
        at = self._asked[kind]
        self._asked[kind] += 1
        if at < len(recorded):
            return recorded[at]
        return None if self._issued or not recorded or kind is Kind.CSR else recorded[-1]


def text(status: int, body: bytes) -> Response:
    """Return an answer in plain text."""
    return Response(status=status, headers=_TEXT, body=body)


def _found(body: bytes | None, request: Request) -> Response:
    if body is not None:
        return text(200, body)
    kind, _, name = unquote(request.path).rpartition("/")
    return text(404, f"Could not find {kind.rpartition('/')[2]} {name}".encode())
