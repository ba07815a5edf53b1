"""Certificates as plain fields, and what an agent would say of a chain."""

from __future__ import annotations

import hashlib
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509 as lib
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from hypothesis import example, given
from hypothesis import strategies as st

from inspector.host import pki
from inspector.protocol import x509

ROOT = pki.make_ca("Test Root CA", serial=1)
CA = pki.make_ca("Test CA", ROOT, serial=2)
FOREIGN = pki.make_ca("Foreign CA", serial=1)
NOW = datetime.now(UTC)
KEY = pki.new_key()
LEAF = pki.sign(CA, KEY.public_key(), "a.example", ["puppet", "*.wild.example"], serial=7)


def der(thing: lib.Certificate | lib.CertificateRevocationList) -> bytes:
    return thing.public_bytes(Encoding.DER)


def colons(data: bytes) -> str:
    digest = hashlib.sha256(data).hexdigest().upper()
    return ":".join(digest[at : at + 2] for at in range(0, 64, 2))


def test_a_certificates_fields_are_those_of_its_der() -> None:
    found = x509.read_der(der(LEAF))
    spki = KEY.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    assert (found.subject, found.common_name, found.issuer) == ("CN=a.example", "a.example", "CN=Test CA")
    assert found.fingerprint == colons(der(LEAF))
    assert found.key == hashlib.sha256(spki).hexdigest()
    assert (found.key_type, found.key_size, found.signature) == ("ec", 256, "sha256")
    assert (found.serial, found.is_ca, found.der) == (7, False, der(LEAF))
    assert found.alt_names == ["DNS:a.example", "DNS:puppet", "DNS:*.wild.example"]
    assert found.not_before == LEAF.not_valid_before_utc.timestamp()
    assert found.not_after == LEAF.not_valid_after_utc.timestamp()
    (bundled,) = x509.read_certificates(b"Certificate:\n  Data:\n" + pki.pem(LEAF))
    assert bundled == found


def test_names_are_written_as_agents_print_them() -> None:
    """What `to_utf8` of Ruby 3.1 with OpenSSL 3.0 returns for them."""
    oid = lib.NameOID
    rows: list[tuple[list[tuple[lib.ObjectIdentifier, str]], str]] = [
        ([(oid.COUNTRY_NAME, "US"), (oid.ORGANIZATION_NAME, "Puppet, Inc"), (oid.COMMON_NAME, "int.example"),
          (oid.EMAIL_ADDRESS, "a@b.c")], "emailAddress=a@b.c,CN=int.example,O=Puppet\\, Inc,C=US"),
        ([(oid.ORGANIZATION_NAME, 'A+B "q" <x>;#é'), (oid.COMMON_NAME, " x ")],
         'CN=\\ x\\ ,O=A\\+B \\"q\\" \\<x\\>\\;#é'),
        ([(oid.STREET_ADDRESS, "s"), (oid.SERIAL_NUMBER, "5"), (oid.GIVEN_NAME, "g")], "GN=g,serialNumber=5,street=s"),
        ([(oid.COMMON_NAME, "a#b\nc\td\x7f")], "CN=a#b\\0Ac\\09d\\7F"),
    ]  # fmt: skip
    for attributes, written in rows:
        assert x509.name_of(lib.Name(lib.NameAttribute(*each) for each in attributes)) == written


def test_a_ca_and_an_rsa_key_are_recognized() -> None:
    key = rsa.generate_private_key(public_exponent=65537, key_size=2048)
    found = x509.read_der(der(pki.sign(CA, key.public_key(), "r.example")))
    assert (found.key_type, found.key_size) == ("rsa", 2048)
    assert x509.read_der(der(CA.certificate)).is_ca


def utf8(text: str) -> bytes:
    data = text.encode()
    if len(data) < 128:
        return bytes([0x0C, len(data)]) + data
    size = len(data).to_bytes(2 if len(data) > 255 else 1)
    return bytes([0x0C, 0x80 + len(size)]) + size + data


def request(extensions: dict[str, bytes], attributes: dict[str, bytes]) -> bytes:
    name = lib.Name([lib.NameAttribute(lib.NameOID.COMMON_NAME, "a.example")])
    builder = lib.CertificateSigningRequestBuilder().subject_name(name)
    for oid, data in extensions.items():
        unknown = lib.UnrecognizedExtension(lib.ObjectIdentifier(oid), data)
        builder = builder.add_extension(unknown, critical=False)
    builder = builder.add_extension(lib.SubjectAlternativeName([lib.DNSName("b.example")]), critical=False)
    for oid, data in attributes.items():
        builder = builder.add_attribute(lib.ObjectIdentifier(oid), data)
    return builder.sign(KEY, hashes.SHA256()).public_bytes(Encoding.PEM)


def test_a_requests_attributes_have_puppets_names() -> None:
    arc = "1.3.6.1.4.1.34380.1"
    data = request(
        {
            f"{arc}.1.1": utf8("ED803750"),
            f"{arc}.1.4": utf8("s" * 200),
            f"{arc}.1.8": b"bare",
            f"{arc}.1.13": utf8("web"),
            f"{arc}.1.99": utf8("?"),
            f"{arc}.1.3": utf8("i" * 300),
            f"{arc}.2.1": utf8("own"),
            f"{arc}.3.1": utf8("true"),
            f"{arc}.3.13": utf8("role"),
            f"{arc}.3.39": utf8("cli"),
        },
        {"1.2.840.113549.1.9.7": b"secret", "1.3.6.1.4.1.34380.1.3.2": b"1h"},
    )
    found = x509.read_csr(data)
    assert found.extensions == {
        "pp_uuid": "ED803750",
        "pp_preshared_key": "s" * 200,
        "pp_application": "bare",
        "pp_role": "web",
        "1.3.6.1.4.1.34380.1.1.99": "?",
        "pp_image_name": "i" * 300,
        "1.3.6.1.4.1.34380.1.2.1": "own",
        "pp_authorization": "true",
        "pp_auth_role": "role",
        "pp_cli_auth": "cli",
    }
    assert found.attributes == {"challengePassword": "secret", "pp_auth_auto_renew": "1h"}
    assert found.alt_names == ["DNS:b.example"]
    assert found.fingerprint == colons(lib.load_pem_x509_csr(data).public_bytes(Encoding.DER))
    assert found.key == x509.read_der(der(LEAF)).key


def tlv(tag: int, *content: bytes) -> bytes:
    data = b"".join(content)
    size = len(data).to_bytes(2 if len(data) > 255 else 1)
    return bytes([tag]) + (bytes([0x80 + len(size)]) if len(data) > 127 else b"") + size + data


EXTENSION_REQUEST = bytes.fromhex("06092a864886f70d01090e")
MS_EXTENSION_REQUEST = bytes.fromhex("060a2b060104018237 02010e")
PP_ROLE = bytes.fromhex("060b2b0601040182 8c4c01010d")
SUBJECT_ALT_NAME = bytes.fromhex("0603551d11")


def request_with(*attributes: tuple[bytes, bytes]) -> bytes:
    """A signing request whose attributes ask for a role, and a name: (OID, role) each."""
    asked = b""
    for oid, role in attributes:
        name = tlv(0x30, tlv(0x82, role + b".example"))
        extensions = tlv(0x30, tlv(0x30, PP_ROLE, tlv(0x04, tlv(0x0C, role))),
                         tlv(0x30, SUBJECT_ALT_NAME, tlv(0x04, name)))  # fmt: skip
        asked += tlv(0x30, oid, tlv(0x31, extensions))
    subject = lib.Name([lib.NameAttribute(lib.NameOID.COMMON_NAME, "a.example")]).public_bytes()
    spki = KEY.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    info = tlv(0x30, b"\x02\x01\x00", subject, spki, tlv(0xA0, asked))
    assert isinstance(KEY, ec.EllipticCurvePrivateKey)
    signature = KEY.sign(info, ec.ECDSA(hashes.SHA256()))
    algorithm = bytes.fromhex("300a06082a8648ce3d040302")
    data = tlv(0x30, info, algorithm, tlv(0x03, b"\x00", signature))
    return lib.load_der_x509_csr(data).public_bytes(Encoding.PEM)


@pytest.mark.parametrize("oid", [EXTENSION_REQUEST, MS_EXTENSION_REQUEST], ids=["PKCS#9", "Microsoft"])
def test_extensions_are_asked_for_in_either_attribute(oid: bytes) -> None:
    found = x509.read_csr(request_with((oid, b"web")))
    assert found.signature_valid
    assert (found.extensions, found.alt_names) == ({"pp_role": "web"}, ["DNS:web.example"])
    assert found.attributes == {}


def test_of_both_attributes_the_first_counts() -> None:
    """As for an agent and its CA, which look for the first of either."""
    found = x509.read_csr(request_with((MS_EXTENSION_REQUEST, b"a"), (EXTENSION_REQUEST, b"production")))
    assert (found.extensions, found.attributes) == ({"pp_role": "a"}, {})


def test_a_crls_fields() -> None:
    crl = pki.make_crl(CA, [7, 8], 12, NOW, NOW + timedelta(days=3))
    (found,) = x509.read_crls(pki.pem(crl))
    assert (found.issuer, found.number, found.revoked) == ("CN=Test CA", 12, [7, 8])
    assert found.next_update == int((NOW + timedelta(days=3)).timestamp())
    assert found.last_update == int(NOW.timestamp())


@pytest.mark.parametrize("data", [b"", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"])
def test_what_is_no_certificate_is_malformed(data: bytes) -> None:
    with pytest.raises(x509.Malformed):
        x509.read_certificates(data)
    with pytest.raises(x509.Malformed):
        x509.read_der(data)


@pytest.mark.filterwarnings("ignore::cryptography.utils.CryptographyDeprecationWarning")
@given(st.integers(0, len(der(LEAF)) - 1), st.binary(min_size=1, max_size=3))
@example(92, b"\0")
def test_a_damaged_certificate_is_read_or_malformed(at: int, piece: bytes) -> None:
    data = der(LEAF)[:at] + piece + der(LEAF)[at + len(piece) :]
    try:
        found: object = x509.read_der(data)
    except x509.Malformed as error:
        found = str(error)
    assert found


# -- what an agent would say ---------------------------------------------------------------------------

ROOTS = [der(CA.certificate), der(ROOT.certificate)]
GOOD = pki.make_crl(CA)
ROOTS_CRL = pki.make_crl(ROOT)
REVOKED = pki.make_crl(CA, [7])
OLD = pki.make_crl(CA, [], 0, NOW - timedelta(days=2), NOW - timedelta(days=1))
OLD_REVOKED = pki.make_crl(CA, [7], 0, NOW - timedelta(days=2), NOW - timedelta(days=1))
EXPIRED = pki.sign(CA, KEY.public_key(), "a.example", serial=9, not_before=NOW - timedelta(days=9),
                   lifetime=timedelta(days=2))  # fmt: skip
EXPIRED_AND_REVOKED = pki.make_crl(CA, [9])
UNBORN = pki.sign(CA, KEY.public_key(), "a.example", not_before=NOW + timedelta(days=3))
STRANGER = pki.sign(FOREIGN, KEY.public_key(), "a.example")


def problem_texts(
    leaf: lib.Certificate, *crls: lib.CertificateRevocationList, revocation: x509.Revocation = "chain"
) -> list[str]:
    problems = x509.verify([der(leaf)], ROOTS, [der(crl) for crl in crls], NOW.timestamp(), revocation)
    return [str(problem) for problem in problems]


def test_a_good_chain_raises_nothing() -> None:
    assert problem_texts(LEAF, GOOD, ROOTS_CRL) == []
    assert problem_texts(LEAF, GOOD, revocation="leaf") == []
    assert problem_texts(LEAF, revocation="none") == []
    assert x509.verify([], ROOTS, [], NOW.timestamp()) == []


@pytest.mark.parametrize(
    ("leaf", "crls", "words"),
    [
        (LEAF, [REVOKED, ROOTS_CRL], ["Certificate 'CN=a.example' is revoked"]),
        (EXPIRED, [GOOD, ROOTS_CRL], ["The certificate 'CN=a.example' has expired, verify time is synchronized"]),
        (UNBORN, [GOOD, ROOTS_CRL], ["The certificate 'CN=a.example' is not yet valid, verify time is synchronized"]),
        (LEAF, [OLD, ROOTS_CRL], ["The CRL issued by 'CN=Test CA' has expired, verify time is synchronized"]),
        (LEAF, [ROOTS_CRL], ["The CRL issued by 'CN=Test CA' is missing"]),
        (STRANGER, [GOOD, ROOTS_CRL],
         ["certificate verify failed [unable to get local issuer certificate for CN=a.example]"]),
        (FOREIGN.certificate, [GOOD, ROOTS_CRL],
         ["certificate verify failed [self signed certificate for CN=Foreign CA]"]),
    ],
)  # fmt: skip
def test_a_bad_chain_is_reported_in_the_agents_words(
    leaf: lib.Certificate, crls: list[lib.CertificateRevocationList], words: list[str]
) -> None:
    assert problem_texts(leaf, *crls) == words


def test_every_reason_is_reported() -> None:
    assert set(problem_texts(EXPIRED, EXPIRED_AND_REVOKED, ROOTS_CRL)) == {
        "The certificate 'CN=a.example' has expired, verify time is synchronized",
        "Certificate 'CN=a.example' is revoked",
    }
    assert set(problem_texts(LEAF, OLD_REVOKED, ROOTS_CRL)) == {
        "The CRL issued by 'CN=Test CA' has expired, verify time is synchronized",
        "Certificate 'CN=a.example' is revoked",
    }
    problems = x509.verify([der(LEAF)], ROOTS, [der(OLD), der(ROOTS_CRL)], NOW.timestamp())
    assert all(problem.undecided for problem in problems)
    revoked = x509.verify([der(LEAF)], ROOTS, [der(REVOKED), der(ROOTS_CRL)], NOW.timestamp())
    assert not any(problem.undecided for problem in revoked)


def test_the_issuers_crl_is_needed_for_the_whole_chain_only() -> None:
    assert problem_texts(LEAF, GOOD) == ["The CRL issued by 'CN=Test Root CA' is missing"]
    assert problem_texts(LEAF, GOOD, revocation="leaf") == []
    assert problem_texts(LEAF, REVOKED, revocation="leaf") == ["Certificate 'CN=a.example' is revoked"]
    assert problem_texts(LEAF, REVOKED, revocation="none") == []


def test_an_intermediate_may_come_with_the_chain() -> None:
    crls = [der(GOOD), der(ROOTS_CRL)]
    alone = x509.verify([der(LEAF)], [der(ROOT.certificate)], crls, NOW.timestamp())
    assert [problem.code for problem in alone] == [20]
    chain = [der(LEAF), der(CA.certificate)]
    assert x509.verify(chain, [der(ROOT.certificate)], crls, NOW.timestamp()) == []
    with pytest.raises(x509.Malformed):
        x509.verify([b"none"], ROOTS, [], NOW.timestamp())


def test_another_cas_signature_in_the_same_name_is_refused() -> None:
    impostor = pki.make_ca("Test CA", serial=2)
    forged = pki.sign(impostor, KEY.public_key(), "a.example")
    assert problem_texts(forged, GOOD, ROOTS_CRL) != []


@pytest.mark.parametrize(
    ("host", "accepted"),
    [
        ("a.example", True),
        ("A.Example.", True),
        ("puppet", True),
        ("x.wild.example", True),
        ("y.x.wild.example", False),
        ("wild.example", False),
        ("b.example", False),
        ("a.example.org", False),
        ("", False),
    ],
)
def test_names_are_compared_as_an_agent_does(host: str, accepted: bool) -> None:
    assert x509.names_match(x509.read_der(der(LEAF)), host) is accepted


def test_the_common_name_counts_only_without_alternative_names() -> None:
    assert x509.names_match(x509.read_der(der(CA.certificate)), "test ca")
    builder = lib.CertificateBuilder().subject_name(lib.Name([lib.NameAttribute(lib.NameOID.COMMON_NAME, "cn.test")]))
    builder = builder.issuer_name(CA.certificate.subject).serial_number(3).public_key(KEY.public_key())
    builder = builder.not_valid_before(NOW).not_valid_after(NOW + timedelta(days=1))
    alone = x509.read_der(der(builder.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())))
    assert x509.names_match(alone, "cn.test")
    named = builder.add_extension(lib.SubjectAlternativeName([lib.DNSName("san.test")]), critical=False)
    other = x509.read_der(der(named.sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())))
    assert not x509.names_match(other, "cn.test")
    assert x509.names_match(other, "san.test")
