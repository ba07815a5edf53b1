"""Issuer chains, every error of a chain, fingerprints, authorizations, entries of revocation lists."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta

from cryptography import x509 as lib
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding

from inspector.host import pki
from inspector.protocol import x509

NOW = datetime.now(UTC)
DAY = timedelta(days=1)
ROOT = pki.make_ca("Root CA", serial=1)
CA = pki.make_ca("Middle CA", ROOT, serial=2)
AGAIN = pki.make_ca("Middle CA", ROOT, serial=3)
KEY = pki.new_key()


def der(thing: lib.Certificate | lib.CertificateRevocationList | lib.CertificateSigningRequest) -> bytes:
    return thing.public_bytes(Encoding.DER)


LEAF = pki.sign(AGAIN, KEY.public_key(), "a.example", serial=7)


def test_the_issuer_of_two_with_one_name_is_the_one_that_signed() -> None:
    others = [der(CA.certificate), der(ROOT.certificate), der(AGAIN.certificate)]
    assert x509.issuer_chain(der(LEAF), others) == [der(LEAF), der(AGAIN.certificate), der(ROOT.certificate)]
    assert x509.issuer_chain(der(LEAF), []) == [der(LEAF)]
    assert x509.issuer_chain(der(LEAF), [der(CA.certificate)]) == [der(LEAF), der(CA.certificate)]
    assert x509.issuer_chain(der(ROOT.certificate), others) == [der(ROOT.certificate)]


def test_every_error_on_every_level_is_reported() -> None:
    expired = pki.sign(CA, KEY.public_key(), "a.example", serial=8, not_before=NOW - 9 * DAY, lifetime=5 * DAY)
    leaf_lists = pki.make_crl(CA, [8], 1, NOW - 3 * DAY, NOW - DAY)
    root_lists = pki.make_crl(ROOT, [2], 1, NOW - 3 * DAY, NOW - DAY)
    roots = [der(CA.certificate), der(ROOT.certificate)]
    problems = x509.verify([der(expired)], roots, [der(leaf_lists), der(root_lists)], NOW.timestamp())
    assert {(problem.code, problem.subject) for problem in problems} >= {
        (10, "CN=a.example"),  # expired
        (23, "CN=a.example"),  # revoked
        (12, "CN=a.example"),  # the list that says so is out of date
        (12, "CN=Middle CA"),  # and so is the root's
        (23, "CN=Middle CA"),  # which revokes the CA itself
    }
    assert len(problems) == len({(problem.code, problem.subject) for problem in problems})
    assert {problem.depth for problem in problems if problem.subject == "CN=Middle CA"} == {1}
    leaf = x509.verify([der(expired)], roots, [der(leaf_lists)], NOW.timestamp(), "leaf")
    assert {problem.subject for problem in leaf} == {"CN=a.example"}
    none = x509.verify([der(expired)], roots, [], NOW.timestamp(), "none")
    assert [str(problem) for problem in none] == [
        "The certificate 'CN=a.example' has expired, verify time is synchronized"
    ]


def test_fingerprints_are_printed_as_puppet_prints_them() -> None:
    digest = hashlib.sha256(der(LEAF)).digest().hex(":").upper()
    assert x509.fingerprint(der(LEAF)) == x509.read_der(der(LEAF)).fingerprint == digest
    assert x509.printed_fingerprint(der(LEAF)) == f"(SHA256) {digest}"
    assert x509.printed_fingerprint(der(LEAF), "ca") == f"(SHA256)  {digest}"
    md5 = hashlib.md5(der(LEAF), usedforsecurity=False).digest().hex(":").upper()
    assert x509.printed_fingerprint(der(LEAF), "2.7") == x509.fingerprint(der(LEAF), "md5") == md5


def test_a_request_names_what_gives_rights_and_fits_its_certificate() -> None:
    arcs = {"pp_cli_auth": "1.3.39", "pp_auth_role": "1.3.13", "pp_role": "1.1.13"}
    builder = lib.CertificateSigningRequestBuilder().subject_name(
        lib.Name([lib.NameAttribute(lib.NameOID.COMMON_NAME, "a.example")])
    )
    for arc in (*arcs.values(), "1.3.99"):
        oid = lib.ObjectIdentifier(f"1.3.6.1.4.1.34380.{arc}")
        builder = builder.add_extension(lib.UnrecognizedExtension(oid, b"\x0c\x04true"), critical=False)
    builder = builder.add_attribute(lib.ObjectIdentifier("1.2.840.113549.1.9.7"), b"secret")
    asked = builder.sign(KEY, hashes.SHA256())
    found = x509.read_csr(pki.pem(asked))
    assert found.extensions == dict.fromkeys((*arcs, "1.3.6.1.4.1.34380.1.3.99"), "true")
    assert set(found.authorizations) == {"pp_cli_auth", "pp_auth_role", "1.3.6.1.4.1.34380.1.3.99"}
    assert found.attributes["challengePassword"] == "secret"
    assert found.signature_valid
    assert found.der == der(asked)
    assert x509.read_der(der(LEAF)).is_for(found)
    assert not x509.read_der(der(CA.certificate)).is_for(found)


def test_a_request_that_another_key_signed_is_reported() -> None:
    good = der(pki.make_csr("a.example", KEY))
    damaged = pki.pem(lib.load_der_x509_csr(good[:-1] + bytes([good[-1] ^ 1])))
    assert x509.read_csr(damaged).signature_valid is False


def test_a_certificate_tells_its_extensions_and_keys() -> None:
    cli = lib.Extension(
        lib.ObjectIdentifier("1.3.6.1.4.1.34380.1.3.39"),
        critical=False,
        value=lib.UnrecognizedExtension(lib.ObjectIdentifier("1.3.6.1.4.1.34380.1.3.39"), b"\x0c\x04true"),
    )
    found = x509.read_der(der(pki.sign(CA, KEY.public_key(), "m.example", extensions=[cli])))
    assert found.authorizations == {"pp_cli_auth": "true"}
    assert found.authority_key_identifier == x509.read_der(der(CA.certificate)).key_identifier is not None


def test_a_list_tells_when_what_was_revoked_and_why() -> None:
    made = pki.make_crl(CA, [5, 6], 9, NOW - DAY)
    (found,) = x509.read_crls(pki.pem(made))
    dates = {entry.serial_number: entry.revocation_date_utc.timestamp() for entry in made}
    assert {entry.serial: entry.date for entry in found.entries} == dates
    assert found.revoked == [5, 6]
    assert found.authority_key_identifier == x509.read_der(der(CA.certificate)).key_identifier
    assert found.signature == "sha256"
    entry = lib.RevokedCertificateBuilder().serial_number(4).revocation_date(NOW)
    entry = entry.add_extension(lib.CRLReason(lib.ReasonFlags.key_compromise), critical=False)
    builder = lib.CertificateRevocationListBuilder().issuer_name(CA.certificate.subject)
    builder = builder.last_update(NOW).next_update(NOW + DAY).add_revoked_certificate(entry.build())
    (output,) = x509.read_crls(pki.pem(builder.sign(CA.key, hashes.SHA256())))
    assert [entry.reason for entry in output.entries] == ["keyCompromise"]
