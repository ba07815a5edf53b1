"""What the library refuses and OpenSSL reads is read for showing, and for nothing else."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from cryptography import x509 as lib
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given
from hypothesis import strategies as st

from inspector.host import pki
from inspector.model import Exchange
from inspector.privacy import redact
from inspector.protocol import pem, unusual, x509
from inspector.runs.examples import altered, csr, talk
from tests.support.request_versions import armed, with_version
from tests.support.secrets import WORD

if TYPE_CHECKING:
    from collections.abc import Callable

CA = pki.make_ca("Test CA", serial=2)
KEY = ec.generate_private_key(ec.SECP256R1())
LEAF = pki.sign(CA, KEY.public_key(), "a.example", ["puppet"], serial=7).public_bytes(Encoding.DER)
NAME = lib.Name([lib.NameAttribute(lib.NameOID.COMMON_NAME, "a.example")])
ROLE = lib.ObjectIdentifier("1.3.6.1.4.1.34380.1.1.13")


def requested() -> bytes:
    builder = (
        lib.CertificateSigningRequestBuilder()
        .subject_name(NAME)
        .add_extension(lib.SubjectAlternativeName([lib.DNSName("puppet")]), critical=False)
        .add_extension(lib.UnrecognizedExtension(ROLE, b"\x0c\x03web"), critical=False)
        .add_attribute(lib.ObjectIdentifier("1.2.840.113549.1.9.7"), WORD.encode())
    )
    return builder.sign(KEY, hashes.SHA256()).public_bytes(Encoding.DER)


def listed() -> bytes:
    start = datetime(2024, 1, 1, tzinfo=UTC)
    builder = (
        lib.CertificateRevocationListBuilder()
        .issuer_name(CA.certificate.subject)
        .last_update(start)
        .next_update(start + timedelta(days=30))
        .add_extension(lib.CRLNumber(5), critical=False)
        .add_extension(lib.AuthorityKeyIdentifier(b"12345678", None, None), critical=False)
    )
    for serial, reason in ((3, lib.ReasonFlags.key_compromise), (4, None)):
        entry = lib.RevokedCertificateBuilder().serial_number(serial).revocation_date(start)
        if reason:
            entry = entry.add_extension(lib.CRLReason(reason), critical=False)
        builder = builder.add_revoked_certificate(entry.build())
    return builder.sign(CA.key, hashes.SHA256()).public_bytes(Encoding.DER)


def changed(der: bytes, old: bytes, new: bytes) -> bytes:
    """The same structure with another value of the same length."""
    assert (len(old), der.count(old)) == (len(new), 1)
    return der.replace(old, new)


def test_our_reading_is_that_of_the_library() -> None:
    request, crl = requested(), listed()
    assert unusual.certificate(LEAF) == x509.read_der(LEAF)
    root = CA.certificate.public_bytes(Encoding.DER)
    assert unusual.certificate(root) == x509.read_der(root)
    assert unusual.crl(crl) == x509.read_crls(armed(crl, "X509 CRL"))[0]
    library, own = x509.read_csr(armed(request, "CERTIFICATE REQUEST")), unusual.request(request)
    assert library.signature_valid
    assert own.signature_valid is None
    assert {name: getattr(own, name) for name in own.__struct_fields__ if name != "signature_valid"} == {
        name: getattr(library, name) for name in library.__struct_fields__ if name != "signature_valid"
    }


@pytest.mark.parametrize("version", [1, 2, 7])
def test_a_signing_request_of_any_version_is_read_and_checked(version: int) -> None:
    request = with_version(requested(), version, KEY)
    with pytest.raises(lib.InvalidVersion):
        lib.load_der_x509_csr(request)
    found = x509.read_csr(armed(request, "CERTIFICATE REQUEST"), strict=True)
    assert (found.common_name, found.alt_names, found.extensions) == ("a.example", ["DNS:puppet"], {"pp_role": "web"})
    assert found.attributes == {"challengePassword": WORD}
    assert found.signature_valid
    assert found.fingerprint == x509.fingerprint(request)
    forged = changed(request, b"puppet", b"master")
    assert x509.read_csr(armed(forged, "CERTIFICATE REQUEST")).signature_valid is False


def test_a_certificate_that_the_library_refuses_is_shown_and_not_verified_with() -> None:
    version_8 = changed(LEAF, b"\xa0\x03\x02\x01\x02", b"\xa0\x03\x02\x01\x07")
    found = x509.read_der(version_8)
    assert (found.common_name, found.serial, found.alt_names) == ("a.example", 7, ["DNS:a.example", "DNS:puppet"])
    assert found.der == version_8
    with pytest.raises(x509.Malformed):
        x509.usable_certificates(armed(version_8, "CERTIFICATE"))
    with pytest.raises(x509.Malformed):
        x509.verify([version_8], [CA.certificate.public_bytes(Encoding.DER)], [], 0.0)


def test_what_follows_a_certificate_in_its_pem_is_ignored_as_by_openssl() -> None:
    for label in ("CERTIFICATE", "TRUSTED CERTIFICATE"):
        (found,) = x509.read_certificates(armed(LEAF + b"\x30\x02\x05\x00", label))
        assert found == x509.read_der(LEAF)


def test_a_request_that_only_openssl_reads_is_shown_and_is_none_where_secrets_are_masked() -> None:
    algorithm = bytes.fromhex("06082a8648ce3d0403")  # ecdsa-with-SHA2, and a number that has no meaning
    request = armed(changed(requested(), algorithm + b"\x02", algorithm + b"\x63"), "CERTIFICATE REQUEST")
    with pytest.raises(x509.Malformed):
        x509.read_csr(request, strict=True)
    found = x509.read_csr(request)
    assert (found.common_name, found.signature, found.signature_valid) == ("a.example", "", None)
    (exchange,) = talk(altered(csr(), request={"body": request}))
    assert isinstance(exchange, Exchange)
    assert redact.exchange(exchange).request.body == b"MASKED"


def test_a_signing_request_of_another_version_is_no_reason_for_a_rule_to_fail() -> None:
    assert unusual.extensions_of_request(with_version(requested(), 2, KEY)) == ["2.5.29.17", ROLE.dotted_string]


WHOLE: list[tuple[Callable[[bytes], object], bytes]] = [
    (unusual.certificate, LEAF), (unusual.request, requested()), (unusual.crl, listed()),
]  # fmt: skip


@given(st.data())
def test_damaged_documents_are_malformed_and_nothing_else(data: st.DataObject) -> None:
    read, der = data.draw(st.sampled_from(WHOLE))
    damaged = bytearray(der)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        damaged[at] = data.draw(st.integers(0, 255))
    with contextlib.suppress(x509.Malformed):
        pem.guard(read, bytes(damaged[: data.draw(st.integers(0, len(damaged)))]))
