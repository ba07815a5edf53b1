"""Which program a CA is: by what an openvox-ca answered to a real agent, and by what others answer."""

from __future__ import annotations

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes

from inspector.host import pki
from inspector.model import Response
from inspector.protocol import ca_service
from inspector.protocol.endpoints import match

PLAIN = (("Content-Type", "text/plain"),)
REFUSAL = (("Content-Type", "text/plain; charset=utf-8"), ("X-Content-Type-Options", "nosniff"))
VERSION = (("X-Puppet-Version", "7.9.5"),)
CERTIFICATE = ("GET", "/puppet-ca/v1/certificate/node1.example")


def _service(request: tuple[str, str], status: int, headers: tuple[tuple[str, str], ...], body: bytes) -> str | None:
    found = match(*request)
    assert found
    response = Response(headers=headers, body=body, status=status)
    return ca_service.of(found, response, found.endpoint.response(response))


@pytest.mark.parametrize(
    ("request_line", "status", "text"),
    [
        (CERTIFICATE, 404, "certificate not found"),
        (("GET", "/certificate/node1.example"), 404, "certificate not found"),
        (("GET", "/puppet-ca/v1/certificate_request/node1.example"), 403, "client certificate required"),
        (("POST", "/puppet-ca/v1/certificate_renewal"), 422, "CSR key does not meet policy"),
        (("POST", "/puppet-ca/v1/certificate_renewal"), 503, "CA not ready"),
        (("POST", "/generate/node1.example"), 409, "certificate already exists"),
    ],
)
def test_a_refusal_of_an_openvox_ca(request_line: tuple[str, str], status: int, text: str) -> None:
    body = f"{text}\n".encode()
    assert _service(request_line, status, REFUSAL, body) == "openvox-ca"
    assert _service(request_line, status, (*REFUSAL, *VERSION), body) is None
    assert _service(request_line, status, PLAIN, body) is None


@pytest.mark.parametrize(
    ("request_line", "status", "text"),
    [
        (CERTIFICATE, 404, "404 page not found"),  # any program in Go, a load balancer for example
        (CERTIFICATE, 502, "Bad Gateway"),
        (("GET", "/puppet/v3/node/node1.example"), 403, "access denied"),
        (("GET", "/production/certificate/node1.example"), 403, "access denied"),
    ],
)
def test_what_others_answer_too(request_line: tuple[str, str], status: int, text: str) -> None:
    assert _service(request_line, status, REFUSAL, f"{text}\n".encode()) is None


def _issued(*, comment: bool) -> bytes:
    ca, key = pki.make_ca("Puppet CA: ca.example"), pki.new_key().public_key()
    puppets = pki.sign(ca, key, "node1.example")
    if comment:
        return pki.pem(puppets)
    other = (
        x509.CertificateBuilder()
        .subject_name(puppets.subject)
        .issuer_name(puppets.issuer)
        .public_key(key)
        .serial_number(puppets.serial_number)
        .not_valid_before(puppets.not_valid_before_utc)
        .not_valid_after(puppets.not_valid_after_utc)
    )
    return pki.pem(other.sign(ca.key, hashes.SHA256()))


def test_a_certificate_without_the_comment_of_puppets_own_cas() -> None:
    assert _service(CERTIFICATE, 200, PLAIN, _issued(comment=False)) == "openvox-ca"
    assert _service(CERTIFICATE, 200, PLAIN, _issued(comment=True)) is None
    assert _service(CERTIFICATE, 200, (*PLAIN, *VERSION), _issued(comment=False)) is None
    # The CA's own may be older than the program that serves it.
    assert _service(("GET", "/puppet-ca/v1/certificate/ca"), 200, PLAIN, _issued(comment=False)) is None
