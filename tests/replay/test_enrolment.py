"""The CA of a replay: an agent's own key, with the recorded states."""

from __future__ import annotations

import pytest
from cryptography import x509

from inspector.host import pki
from inspector.model import Request, Response
from inspector.protocol.kinds import Kind
from inspector.replay.enrolment import Enrolment
from inspector.replay.recording import Signing

NAME = "a.example"
OLD, NEW = pki.new_key(), pki.new_key()
PENDING = f"{NAME} already has a requested certificate; ignoring certificate request".encode()


def asked(enrolment: Enrolment, kind: Kind, body: bytes = b"", name: str = NAME) -> Response:
    request = Request(body=body, target=f"/puppet-ca/v1/{'certificate_request' if body else 'certificate'}/{name}")
    answer = enrolment.answer(kind, request, name)
    assert answer is not None
    return answer


def submit(enrolment: Enrolment, key: pki.PrivateKey = OLD, name: str = NAME) -> tuple[int, bytes]:
    answer = asked(enrolment, Kind.CSR, pki.pem(pki.make_csr(name, key)), name)
    return answer.status, answer.body


def fetch(enrolment: Enrolment) -> tuple[int, bytes]:
    answer = asked(enrolment, Kind.CERTIFICATE)
    return answer.status, answer.body


def is_for(body: bytes, key: pki.PrivateKey) -> bool:
    return x509.load_pem_x509_certificate(body).public_key() == key.public_key()


def test_without_a_recorded_bootstrap_a_request_is_signed_at_once() -> None:
    enrolment = Enrolment()
    assert fetch(enrolment) == (404, b"Could not find certificate a.example")
    assert submit(enrolment) == (200, b"")
    for _ in range(2):
        status, body = fetch(enrolment)
        assert (status, is_for(body, OLD)) == (200, True)
    assert submit(enrolment)[0] == 400


def test_recorded_states_come_in_their_order() -> None:
    recorded = [
        Signing(Kind.CSR, 200, b""), Signing(Kind.CERTIFICATE, 404, b"not yet"),
        Signing(Kind.CSR, 400, PENDING), Signing(Kind.CERTIFICATE, 200, b""),
    ]  # fmt: skip
    enrolment = Enrolment(recorded)
    assert submit(enrolment) == (200, b"")
    assert fetch(enrolment) == (404, b"not yet")
    assert submit(enrolment) == (400, PENDING)
    status, body = fetch(enrolment)
    assert (status, is_for(body, OLD)) == (200, True)
    assert fetch(enrolment)[0] == 200


def test_a_new_key_begins_anew() -> None:
    enrolment = Enrolment([Signing(Kind.CERTIFICATE, 404, b"not yet"), Signing(Kind.CERTIFICATE, 200, b"")])
    for key in (OLD, NEW):
        submit(enrolment, key)
        assert fetch(enrolment) == (404, b"not yet")
        assert is_for(fetch(enrolment)[1], key)
    serials = {entry.serial_number for entry in x509.load_pem_x509_crl(enrolment.ca.signing_crl)}
    assert len(serials) == 1  # of the first key: nobody else can use its certificate


def test_a_request_that_was_never_signed_is_not_signed() -> None:
    enrolment = Enrolment([Signing(Kind.CSR, 200, b""), Signing(Kind.CERTIFICATE, 404, b"no")])
    submit(enrolment)
    assert [fetch(enrolment) for _ in range(3)] == [(404, b"no")] * 3


def test_the_certificate_of_another_key_stays_one() -> None:
    enrolment = Enrolment([Signing(Kind.CSR, 400, PENDING), Signing(Kind.CERTIFICATE, 200, b"", foreign=True)])
    assert submit(enrolment) == (400, PENDING)
    status, body = fetch(enrolment)
    assert (status, is_for(body, OLD)) == (200, False)


def test_a_revoked_certificate_is_revoked_as_soon_as_it_is_issued() -> None:
    enrolment = Enrolment(revoked=True)
    submit(enrolment)
    certificate = x509.load_pem_x509_certificate(fetch(enrolment)[1])
    crl = x509.load_pem_x509_crl(enrolment.ca.signing_crl)
    assert crl.get_revoked_certificate_by_serial_number(certificate.serial_number) is not None


def test_a_refusal_of_the_ca_itself_is_not_replaced() -> None:
    enrolment = Enrolment([Signing(Kind.CSR, 200, b"")])
    status, body = submit(enrolment, name="UPPER.example")
    assert (status, body) == (400, b"Certificate names must be lower case.")
    assert asked(enrolment, Kind.CSR, b"garbage").status == 500


@pytest.mark.parametrize(
    ("kind", "start"), [(Kind.CA_BUNDLE, b"-----BEGIN CERTIFICATE"), (Kind.CRL, b"-----BEGIN X509 CRL")]
)
def test_public_documents(kind: Kind, start: bytes) -> None:
    assert asked(Enrolment(), kind).body.startswith(start)


def test_old_agents_look_for_their_request() -> None:
    enrolment = Enrolment()
    assert asked(enrolment, Kind.CSR_LOOKUP).status == 404
    submit(enrolment)
    assert asked(enrolment, Kind.CSR_LOOKUP).status == 200


def test_renewal_is_not_offered() -> None:
    assert Enrolment().answer(Kind.RENEWAL, Request(), "") is None
