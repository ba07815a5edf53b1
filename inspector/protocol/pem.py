"""PEM and DER to plain fields. Raises Malformed for anything else."""

from __future__ import annotations

import binascii
import warnings
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization

from inspector import regex
from inspector.protocol import signatures, unusual
from inspector.protocol.certificates import Certificate, CertificateRequest, RevocationList, Revoked
from inspector.protocol.fields import common_name, extension_text, fingerprint, key_id, key_kind, name_of
from inspector.protocol.oids import REQUESTED_EXTENSIONS, oid_name

if TYPE_CHECKING:
    from collections.abc import Callable

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
    """Return every certificate of a PEM bundle, for showing: also those that only OpenSSL reads. Raises Malformed."""
    blocks = pem_blocks(data, "CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE")
    return [_read(_der_certificate, unusual.certificate, block) for block in blocks]


@lru_cache(maxsize=CACHED)
def read_der(der: bytes) -> Certificate:
    """Return one certificate from DER, as in a TLS handshake, where the same is shown again and again, for showing:
    also one that only OpenSSL reads. Raises Malformed."""
    try:
        return guard(_der_certificate, der)
    except Malformed as error:
        return _unusual(unusual.certificate, der, error)


def read_csr(data: bytes, *, strict: bool = False) -> CertificateRequest:
    """Return the first signing request of a body, for showing: also one that only OpenSSL reads, unless ``strict``.

    Raises Malformed.
    """
    block = pem_blocks(data, "CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST")[0]
    return guard(lambda block: _request(_decoded(block)), block) if strict else _read(_request, unusual.request, block)


def read_crls(data: bytes) -> list[RevocationList]:
    """Return every CRL of a PEM bundle, for showing: also those that only OpenSSL reads. Raises Malformed."""
    return [_read(_crl, unusual.crl, block) for block in pem_blocks(data, "X509 CRL")]


def _read[T](read: Callable[[bytes], T], otherwise: Callable[[bytes], T], block: bytes) -> T:
    der = guard(_decoded, block)
    try:
        return guard(read, der)
    except Malformed as error:
        return _unusual(otherwise, der, error)


def _unusual[T](read: Callable[[bytes], T], der: bytes, error: Malformed) -> T:
    """Return what the library refuses; its own error if nothing can be read."""
    if len(der) > unusual.LARGEST:
        raise error
    try:
        return guard(read, der)
    except Malformed:
        raise error from None


def _decoded(block: bytes) -> bytes:
    """Return what a PEM block contains, without headers and without what follows the first value (OpenSSL ignores it:
    a TRUSTED CERTIFICATE has such a part). Raises ValueError."""
    text = block.split(b"-----")[2].replace(b"\r\n", b"\n")
    text = text[text.find(b"\n\n") + 1 :] if b":" in text else text
    return unusual.first_value(binascii.a2b_base64(b"".join(text.split()), strict_mode=True))


def request_of(der: bytes) -> x509.CertificateSigningRequest:
    """Return the library's object of a signing request, whatever its version: `puppetserver ca generate` of
    puppetserver-ca before 2.5 makes version 3. ``signatures.verifies`` wants ``unusual.signed_part`` then."""
    try:
        return x509.load_der_x509_csr(der)
    except x509.InvalidVersion:
        return x509.load_der_x509_csr(unusual.of_version_1(der))


def guard[T](read: Callable[[bytes], T], data: bytes) -> T:
    try:
        return read(data)
    except UNREADABLE as error:
        raise Malformed(str(error) or type(error).__name__) from error


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
    kind, size = key_kind(key)
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


def _der_certificate(der: bytes) -> Certificate:
    return certificate(x509.load_der_x509_certificate(der))


def _request(der: bytes) -> CertificateRequest:
    csr = request_of(der)
    key = csr.public_key()
    kind, size = key_kind(key)
    return CertificateRequest(
        subject=name_of(csr.subject),
        common_name=common_name(csr.subject),
        key=key_id(key),
        key_type=kind,
        key_size=size,
        signature=csr.signature_hash_algorithm.name if csr.signature_hash_algorithm else "",
        fingerprint=fingerprint(der),
        alt_names=_alt_names(csr.extensions),
        extensions=_extensions(csr.extensions),
        attributes={
            oid_name(attribute.oid.dotted_string): attribute.value.decode("utf-8", "replace")
            for attribute in csr.attributes
            if attribute.oid.dotted_string not in REQUESTED_EXTENSIONS
        },
        der=der,
        signature_valid=signatures.verifies(csr, csr.public_key(), unusual.signed_part(der)),
    )


def _extensions(extensions: x509.Extensions) -> dict[str, str]:
    """Puppet's extensions, and others that the library has no class for."""
    return {
        oid_name(extension.oid.dotted_string): extension_text(extension.value.value)
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


def _crl(der: bytes) -> RevocationList:
    crl = x509.load_der_x509_crl(der)
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
