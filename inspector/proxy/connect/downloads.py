"""What a CA gives to anybody: its bundle and its CRLs."""

from __future__ import annotations

import http.client
import ssl
import time
from http import HTTPStatus
from typing import TYPE_CHECKING

from cryptography.hazmat.primitives.serialization import Encoding

from inspector import inputs
from inspector.protocol import x509
from inspector.proxy.connect.dialing import dial
from inspector.proxy.connect.trust import certificates_in, crls_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from inspector.proxy.connect.dialing import SiteProxy

BUNDLE, CRLS = "/puppet-ca/v1/certificate/ca", "/puppet-ca/v1/certificate_revocation_list/ca"
PATIENCE = 10.0
"""Seconds that each of them may take."""


def download(server: tuple[str, int], site: SiteProxy | None, path: str) -> bytes:
    """Return what a server has there, as an agent without a CA bundle downloads it: from anybody; empty for nothing."""
    unverified = ssl.create_default_context()
    unverified.check_hostname, unverified.verify_mode = False, ssl.CERT_NONE
    connection = http.client.HTTPSConnection(*server, context=unverified)
    try:
        plain = dial(server, site, PATIENCE)
        connection.sock = unverified.wrap_socket(plain, server_hostname=server[0])
        connection.request("GET", path, headers={"Accept": "text/plain"})
        answer = connection.getresponse()
        return answer.read(inputs.SMALL) if answer.status == HTTPStatus.OK else b""
    except (OSError, http.client.HTTPException):
        return b""
    finally:
        connection.close()


def refusals(server: tuple[str, int], site: SiteProxy | None, chain: Sequence[bytes]) -> tuple[str, ...]:
    """Return why a master refuses a certificate chain (DER), by what its CA has now; empty if that shows nothing."""
    authorities = certificates_in(download(server, site, BUNDLE))
    lists = crls_in(download(server, site, CRLS))
    if not authorities:
        return ()
    ders = [each.public_bytes(Encoding.DER) for each in authorities]
    crls = [each.public_bytes(Encoding.DER) for each in lists]
    try:
        problems = x509.verify(chain, ders, crls, time.time(), "chain" if crls else "none")
    except x509.Malformed:
        return ()
    return tuple(str(problem) for problem in problems)
