"""The CA of a replay: it signs the agent's own key, with the states of the recorded bootstrap in their order."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING
from urllib.parse import unquote

from cryptography import x509

from inspector.host import pki
from inspector.lab.ca import LabCA
from inspector.model import Response
from inspector.protocol.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes

    from inspector.model import Request
    from inspector.replay.recording import Signing

NAME = "puppet-inspector replay"
_TEXT = (("Content-Type", "text/plain"), ("X-Puppet-Version", "7.23.0"))


class Enrolment:
    """Answers for ``/puppet-ca/v1``. Safe to use from several threads.

    A signing request with another key begins the bootstrap anew. ``revoked``: the certificate is revoked as soon as it
    is issued.
    """

    def __init__(self, signings: Sequence[Signing] = (), *, revoked: bool = False) -> None:
        self.ca = LabCA(NAME)
        self._signings = signings
        self._revoked = revoked
        self._asked = {Kind.CSR: 0, Kind.CERTIFICATE: 0}
        self._key: CertificatePublicKeyTypes | None = None
        self._lock = threading.Lock()

    def answer(self, kind: Kind, request: Request, name: str) -> Response | None:
        """Answer a request about a name; None: there is nothing to answer it with."""
        with self._lock:
            match kind:
                case Kind.CA_BUNDLE:
                    return _text(200, self.ca.ca_bundle)
                case Kind.CRL:
                    return _text(200, self.ca.crl_bundle)
                case Kind.CSR_LOOKUP:
                    return _found(self.ca.request(name), request)
                case Kind.CSR:
                    return self._submit(name, request.body)
                case Kind.CERTIFICATE:
                    return self._certificate(name, request)
        return None

    def _submit(self, name: str, body: bytes) -> Response:
        self._begin(name, body)
        status, text = self.ca.submit(name, body)
        recorded = self._next(Kind.CSR)
        if self.ca.state(name) is None or recorded is None:
            return _text(status, text.encode())
        return _text(recorded.status, recorded.body)

    def _begin(self, name: str, body: bytes) -> None:
        """Forget what there is of a certname, if the key is another one."""
        try:
            key = x509.load_pem_x509_csr(body).public_key()
        except ValueError:
            return
        if key != self._key:
            self.ca.clean(name)
            self._key, self._asked = key, dict.fromkeys(self._asked, 0)

    def _certificate(self, name: str, request: Request) -> Response:
        recorded = self._next(Kind.CERTIFICATE)
        if recorded is not None and recorded.status != 200:
            return _text(recorded.status, recorded.body)
        if recorded is not None and recorded.foreign:
            return _text(200, pki.pem(pki.sign(self.ca.authority, pki.new_key().public_key(), name)))
        if self.ca.state(name) == "requested":
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


def _text(status: int, body: bytes) -> Response:
    return Response(status=status, headers=_TEXT, body=body)


def _found(body: bytes | None, request: Request) -> Response:
    if body is not None:
        return _text(200, body)
    kind, _, name = unquote(request.path).rpartition("/")
    return _text(404, f"Could not find {kind.rpartition('/')[2]} {name}".encode())
