"""PEM and DER to plain fields. Raises Malformed for anything else."""

from __future__ import annotations

import hashlib
import warnings
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Literal

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from inspector import regex
from inspector.protocol import signatures
from inspector.protocol.certificates import Certificate, CertificateRequest, RevocationList, Revoked
from inspector.protocol.oids import REQUESTED_EXTENSIONS, oid_name

if TYPE_CHECKING:
    from collections.abc import Callable

    from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes

# The library's warnings about unusual certificates must not reach the terminal; rules report what matters.
warnings.filterwarnings("ignore", category=UserWarning, module=r"inspector\.")

MAX_BLOCKS = 10_000
"""Maximum number of PEM blocks read from one body (a CRL bundle of a large site has only a few)."""

CRL_NUMBER = 320
"""Bits of a CRL number (RFC 5280, 5.2.3 allows 160); of a longer one nothing is known. Python refuses to print it."""
CACHED = 4096
"""Certificates that are cached: those of so many agents."""
_PEM = regex.compile(rb"-----BEGIN ([A-Z0-9 ]{1,40})-----[^-]+-----END ([A-Z0-9 ]{1,40})-----")


UNREADABLE = (ValueError, TypeError, KeyError, IndexError, OverflowError, UnsupportedAlgorithm, x509.ExtensionNotFound,
              x509.DuplicateExtension, x509.UnsupportedGeneralNameType, x509.InvalidVersion)  # fmt: skip
"""What the library raises for damaged certificates, CRLs and keys, some of it only when a field is read."""


class Malformed(ValueError):
    """The bytes are not PEM of the requested kind."""


def pem_blocks(data: bytes, *labels: str) -> list[bytes]:
    """Return the PEM blocks with one of these labels. Text between blocks is ignored, as in agents.

    Raises Malformed if there is none.
    """
    found = (block for block in _PEM.finditer(data) if block[1] == block[2] and block[1].decode() in labels)
    blocks = [block[0] for block in islice(found, MAX_BLOCKS + 1)]
    if not blocks:
        raise Malformed(f"no {labels[0]} in PEM form")
    if len(blocks) > MAX_BLOCKS:
        raise Malformed(f"more than {MAX_BLOCKS} PEM blocks")
    return blocks


def read_certificates(data: bytes) -> list[Certificate]:
    """Return every certificate of a PEM bundle. Raises Malformed."""
    blocks = pem_blocks(data, "CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE")
    return [guard(_pem_certificate, block) for block in blocks]


@lru_cache(maxsize=CACHED)
def read_der(der: bytes) -> Certificate:
    """Return one certificate from DER, as in a TLS handshake, where the same is shown again and again. Raises
    Malformed."""
    return guard(_der_certificate, der)


def read_csr(data: bytes) -> CertificateRequest:
    """Return the first signing request of a body. Raises Malformed."""
    block = pem_blocks(data, "CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST")[0]
    return guard(_request, block)


def read_crls(data: bytes) -> list[RevocationList]:
    """Return every CRL of a PEM bundle. Raises Malformed."""
    return [guard(_crl, block) for block in pem_blocks(data, "X509 CRL")]


def guard[T](read: Callable[[bytes], T], data: bytes) -> T:
    try:
        return read(data)
    except UNREADABLE as error:
        raise Malformed(str(error) or type(error).__name__) from error


_ATTRIBUTES = {
    x509.NameOID.BUSINESS_CATEGORY: "businessCategory",
    x509.NameOID.DN_QUALIFIER: "dnQualifier",
    x509.NameOID.EMAIL_ADDRESS: "emailAddress",
    x509.NameOID.GENERATION_QUALIFIER: "generationQualifier",
    x509.NameOID.GIVEN_NAME: "GN",
    x509.NameOID.INITIALS: "initials",
    x509.NameOID.JURISDICTION_COUNTRY_NAME: "jurisdictionC",
    x509.NameOID.JURISDICTION_LOCALITY_NAME: "jurisdictionL",
    x509.NameOID.JURISDICTION_STATE_OR_PROVINCE_NAME: "jurisdictionST",
    x509.NameOID.ORGANIZATION_IDENTIFIER: "organizationIdentifier",
    x509.NameOID.POSTAL_ADDRESS: "postalAddress",
    x509.NameOID.POSTAL_CODE: "postalCode",
    x509.NameOID.PSEUDONYM: "pseudonym",
    x509.NameOID.SERIAL_NUMBER: "serialNumber",
    x509.NameOID.STREET_ADDRESS: "street",
    x509.NameOID.SURNAME: "SN",
    x509.NameOID.TITLE: "title",
    x509.NameOID.UNSTRUCTURED_NAME: "unstructuredName",
    x509.NameOID.X500_UNIQUE_IDENTIFIER: "x500UniqueIdentifier",
}
"""Names of attributes that OpenSSL has and the library has not."""
_CONTROL = {code: f"\\{code:02X}" for code in (*range(32), 127)}


def name_of(name: x509.Name) -> str:
    """A subject or issuer as agents print it (RFC 2253, the last part first): ``CN=node1.example``,
    ``CN=Root,O=Example\\, Inc,C=US``."""
    return name.rfc4514_string(_ATTRIBUTES).translate(_CONTROL)


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value


def common_name(name: x509.Name) -> str | None:
    attributes = name.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    return _text(attributes[0].value) if attributes else None


def fingerprint(der: bytes, digest: str = "sha256") -> str:
    """The digest of a certificate's or a request's DER as agents and CAs print it: ``AA:BB:...``."""
    return hashlib.new(digest, der, usedforsecurity=False).digest().hex(":").upper()


def printed_fingerprint(der: bytes, by: Literal["agent", "2.7", "ca"] = "agent") -> str:
    """The fingerprint as ``puppet agent --fingerprint`` prints it (2.7: MD5, without a label), or ``puppetserver ca
    list``."""
    if by == "2.7":
        return fingerprint(der, "md5")
    return f"(SHA256){' ' if by == 'agent' else '  '}{fingerprint(der)}"


def key_id(key: CertificatePublicKeyTypes) -> str:
    """SHA-256 of the SubjectPublicKeyInfo: the same for a key in every document."""
    spki = key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)
    return hashlib.sha256(spki).hexdigest()


def _key_kind(key: CertificatePublicKeyTypes) -> tuple[str, int | None]:
    if isinstance(key, rsa.RSAPublicKey):
        return "rsa", key.key_size
    if isinstance(key, ec.EllipticCurvePublicKey):
        return "ec", key.key_size
    return type(key).__name__.removesuffix("PublicKey").strip("_").lower(), None


def _alt_names(extensions: x509.Extensions) -> list[str]:
    try:
        names = extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return [f"{_kind_of(name)}:{name.value}" for name in names]


def _kind_of(name: x509.GeneralName) -> str:
    if isinstance(name, x509.DNSName):
        return "DNS"
    return "IP" if isinstance(name, x509.IPAddress) else type(name).__name__


def certificate(cert: x509.Certificate) -> Certificate:
    """A parsed certificate as plain fields."""
    key = cert.public_key()
    kind, size = _key_kind(key)
    try:
        is_ca = cert.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    except x509.ExtensionNotFound:
        is_ca = False
    der = cert.public_bytes(serialization.Encoding.DER)
    return Certificate(
        subject=name_of(cert.subject),
        common_name=common_name(cert.subject),
        issuer=name_of(cert.issuer),
        serial=cert.serial_number,
        not_before=cert.not_valid_before_utc.timestamp(),
        not_after=cert.not_valid_after_utc.timestamp(),
        key=key_id(key),
        key_type=kind,
        key_size=size,
        signature=cert.signature_hash_algorithm.name if cert.signature_hash_algorithm else "",
        fingerprint=fingerprint(der),
        is_ca=is_ca,
        alt_names=_alt_names(cert.extensions),
        der=der,
        extensions=_extensions(cert.extensions),
        key_identifier=_identifier(cert.extensions, x509.SubjectKeyIdentifier),
        authority_key_identifier=_identifier(cert.extensions, x509.AuthorityKeyIdentifier),
    )


def _pem_certificate(block: bytes) -> Certificate:
    return certificate(x509.load_pem_x509_certificate(block))


def _der_certificate(der: bytes) -> Certificate:
    return certificate(x509.load_der_x509_certificate(der))


def _request(block: bytes) -> CertificateRequest:
    csr = x509.load_pem_x509_csr(block)
    key = csr.public_key()
    kind, size = _key_kind(key)
    return CertificateRequest(
        subject=name_of(csr.subject),
        common_name=common_name(csr.subject),
        key=key_id(key),
        key_type=kind,
        key_size=size,
        signature=csr.signature_hash_algorithm.name if csr.signature_hash_algorithm else "",
        fingerprint=fingerprint(csr.public_bytes(serialization.Encoding.DER)),
        alt_names=_alt_names(csr.extensions),
        extensions=_extensions(csr.extensions),
        attributes={
            oid_name(attribute.oid.dotted_string): attribute.value.decode("utf-8", "replace")
            for attribute in csr.attributes
            if attribute.oid.dotted_string not in REQUESTED_EXTENSIONS
        },
        der=csr.public_bytes(serialization.Encoding.DER),
        signature_valid=signatures.verifies(csr, csr.public_key()),
    )


def _extensions(extensions: x509.Extensions) -> dict[str, str]:
    """Puppet's extensions, and others that the library has no class for."""
    return {
        oid_name(extension.oid.dotted_string): _extension_text(extension.value)
        for extension in extensions
        if isinstance(extension.value, x509.UnrecognizedExtension)
    }


def _identifier(
    extensions: x509.Extensions, kind: type[x509.SubjectKeyIdentifier] | type[x509.AuthorityKeyIdentifier]
) -> str | None:
    try:
        value = extensions.get_extension_for_class(kind).value
    except x509.ExtensionNotFound:
        return None
    found = value.digest if isinstance(value, x509.SubjectKeyIdentifier) else value.key_identifier
    return found.hex(":").upper() if found else None


def _extension_text(value: x509.ExtensionType) -> str:
    raw = value.value if isinstance(value, x509.UnrecognizedExtension) else b""
    # 4.x and later wrap the value in a DER UTF8String, 3.x sends the bare bytes.
    if len(raw) >= 2 and raw[0] in (0x0C, 0x13, 0x16):
        long = raw[1] - 0x80 if raw[1] > 0x80 else 0  # octets of a length beyond 127
        if int.from_bytes(raw[2 : 2 + long] if long else raw[1:2]) == len(raw) - 2 - long:
            raw = raw[2 + long :]
    return raw.decode("utf-8", "replace")


def _crl(block: bytes) -> RevocationList:
    crl = x509.load_pem_x509_crl(block)
    try:
        number = crl.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number
    except x509.ExtensionNotFound:
        number = None
    if number is not None and number.bit_length() > CRL_NUMBER:
        number = None
    next_update = crl.next_update_utc
    entries = [Revoked(entry.serial_number, entry.revocation_date_utc.timestamp(), _reason(entry)) for entry in crl]
    return RevocationList(
        issuer=name_of(crl.issuer),
        number=number,
        last_update=crl.last_update_utc.timestamp(),
        next_update=next_update.timestamp() if next_update else None,
        revoked=[entry.serial for entry in entries],
        der=crl.public_bytes(serialization.Encoding.DER),
        entries=entries,
        signature=crl.signature_hash_algorithm.name if crl.signature_hash_algorithm else "",
        authority_key_identifier=_identifier(crl.extensions, x509.AuthorityKeyIdentifier),
    )


def _reason(entry: x509.RevokedCertificate) -> str | None:
    try:
        return str(entry.extensions.get_extension_for_class(x509.CRLReason).value.reason.value)
    except x509.ExtensionNotFound:
        return None


def names_match(cert: Certificate, host: str) -> bool:
    """True if an agent that called ``host`` accepts this certificate's names (CN only if there are no SANs)."""
    names = [name.partition(":")[2] for name in cert.alt_names if name.startswith(("DNS:", "IP:"))]
    if not names and cert.common_name:
        names = [cert.common_name]
    host = host.lower().rstrip(".")
    for name in names:
        name = name.lower().rstrip(".")
        if name == host:
            return True
        if name.startswith("*.") and "." in host and host.partition(".")[2] == name[2:]:
            return True
    return False
