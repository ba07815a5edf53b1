"""Fields of certificates and signing requests as text: names, keys, fingerprints, Puppet's extensions."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Literal

from cryptography import x509
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes


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


def key_kind(key: CertificatePublicKeyTypes) -> tuple[str, int | None]:
    if isinstance(key, rsa.RSAPublicKey):
        return "rsa", key.key_size
    if isinstance(key, ec.EllipticCurvePublicKey):
        return "ec", key.key_size
    return type(key).__name__.removesuffix("PublicKey").strip("_").lower(), None


def extension_text(raw: bytes) -> str:
    """Return the text of one of Puppet's extensions."""
    # 4.x and later wrap the value in a DER UTF8String, 3.x sends the bare bytes.
    if len(raw) >= 2 and raw[0] in (0x0C, 0x13, 0x16):
        long = raw[1] - 0x80 if raw[1] > 0x80 else 0  # octets of a length beyond 127
        if int.from_bytes(raw[2 : 2 + long] if long else raw[1:2]) == len(raw) - 2 - long:
            raw = raw[2 + long :]
    return raw.decode("utf-8", "replace")
