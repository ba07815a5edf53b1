"""Certificates, signing requests and revocation lists: PEM to plain fields, and what an agent would say.

Reading uses cryptography. Verifying a chain uses OpenSSL's own store, because that is what agents and
masters use: the same checks in the same order, so the same errors (``cryptography.x509.verification``
refuses Puppet's critical extendedKeyUsage and knows no CRL).
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from OpenSSL import crypto

from inspector.protocol.documents import (
    Certificate,
    CertificateRequest,
    RevocationList,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes

type Revocation = Literal["chain", "leaf", "none"]
"""The agent's setting ``certificate_revocation``."""

MAX_BLOCKS = 10_000
"""PEM blocks read from one body (a CRL bundle of a large site has a handful)."""

_PEM = re.compile(rb"-----BEGIN ([A-Z0-9 ]{1,40})-----[^-]+-----END \1-----")

PUPPET_OIDS = {
    "1.3.6.1.4.1.34380.1.1": (
        "", "pp_uuid", "pp_instance_id", "pp_image_name", "pp_preshared_key", "pp_cost_center", "pp_product",
        "pp_project", "pp_application", "pp_service", "pp_employee", "pp_created_by", "pp_environment",
        "pp_role", "pp_software_version", "pp_department", "pp_cluster", "pp_provisioner", "pp_region",
        "pp_datacenter", "pp_zone", "pp_network", "pp_securitypolicy", "pp_cloudplatform", "pp_apptier",
        "pp_hostname", "pp_owner",
    ),
}  # fmt: skip
"""Registered extensions by their last arc (protocol 4.1)."""
AUTHORIZATION_OIDS = {
    "1.3.6.1.4.1.34380.1.3.1": "pp_authorization",
    "1.3.6.1.4.1.34380.1.3.2": "pp_auth_auto_renew",
    "1.3.6.1.4.1.34380.1.3.13": "pp_auth_role",
    "1.3.6.1.4.1.34380.1.3.39": "pp_cli_auth",
    "1.2.840.113549.1.9.7": "challengePassword",
}


class Malformed(ValueError):
    """The bytes are no PEM of the kind that was asked for."""


def oid_name(dotted: str) -> str:
    """Puppet's short name of an OID, or the OID itself."""
    arc, _, last = dotted.rpartition(".")
    names = PUPPET_OIDS.get(arc, ())
    if last.isdigit() and 0 < int(last) < len(names):
        return names[int(last)]
    return AUTHORIZATION_OIDS.get(dotted, dotted)


def pem_blocks(data: bytes, *labels: str) -> list[bytes]:
    """The PEM blocks with one of these labels; text between blocks is ignored, as agents do.

    Raises Malformed if there is none.
    """
    blocks = [m.group() for m in _PEM.finditer(data) if m.group(1).decode() in labels][: MAX_BLOCKS + 1]
    if not blocks:
        raise Malformed(f"no {labels[0]} in PEM form")
    if len(blocks) > MAX_BLOCKS:
        raise Malformed(f"more than {MAX_BLOCKS} PEM blocks")
    return blocks


def read_certificates(data: bytes) -> list[Certificate]:
    """Every certificate of a PEM bundle. Raises Malformed."""
    blocks = pem_blocks(data, "CERTIFICATE", "X509 CERTIFICATE", "TRUSTED CERTIFICATE")
    return [_guard(_pem_certificate, block) for block in blocks]


def read_der(der: bytes) -> Certificate:
    """One certificate in DER, as a TLS handshake carries it. Raises Malformed."""
    return _guard(_der_certificate, der)


def read_csr(data: bytes) -> CertificateRequest:
    """The first signing request of a body. Raises Malformed."""
    block = pem_blocks(data, "CERTIFICATE REQUEST", "NEW CERTIFICATE REQUEST")[0]
    return _guard(_request, block)


def read_crls(data: bytes) -> list[RevocationList]:
    """Every CRL of a PEM bundle. Raises Malformed."""
    return [_guard(_crl, block) for block in pem_blocks(data, "X509 CRL")]


def _guard[T](read: Callable[[bytes], T], data: bytes) -> T:
    try:
        return read(data)
    except (ValueError, TypeError, KeyError, IndexError, OverflowError, UnsupportedAlgorithm, x509.ExtensionNotFound,
            x509.DuplicateExtension, x509.UnsupportedGeneralNameType, x509.InvalidVersion) as error:  # fmt: skip
        raise Malformed(str(error) or type(error).__name__) from error


def name_of(name: x509.Name) -> str:
    """A subject or issuer as agents print it: ``CN=node1.example``."""
    return ",".join(f"{attribute.rfc4514_attribute_name}={_text(attribute.value)}" for attribute in name)


def _text(value: str | bytes) -> str:
    return value.decode("latin-1") if isinstance(value, bytes) else value


def common_name(name: x509.Name) -> str | None:
    attributes = name.get_attributes_for_oid(x509.NameOID.COMMON_NAME)
    return _text(attributes[0].value) if attributes else None


def fingerprint(der: bytes) -> str:
    """As ``puppet agent --fingerprint`` and ``puppetserver ca list`` print it: SHA-256, ``AA:BB:...``."""
    digest = hashes.Hash(hashes.SHA256())
    digest.update(der)
    return digest.finalize().hex(":").upper()


def key_id(key: CertificatePublicKeyTypes) -> str:
    """SHA-256 of the SubjectPublicKeyInfo: the same for a key wherever it appears."""
    digest = hashes.Hash(hashes.SHA256())
    digest.update(key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo))
    return digest.finalize().hex()


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
        extensions={
            oid_name(extension.oid.dotted_string): _extension_text(extension.value)
            for extension in csr.extensions
            if isinstance(extension.value, x509.UnrecognizedExtension)
        },
        attributes={
            oid_name(attribute.oid.dotted_string): attribute.value.decode("utf-8", "replace")
            for attribute in csr.attributes
            if attribute.oid != x509.ObjectIdentifier("1.2.840.113549.1.9.14")
        },
    )


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
    next_update = crl.next_update_utc
    return RevocationList(
        issuer=name_of(crl.issuer),
        number=number,
        last_update=crl.last_update_utc.timestamp(),
        next_update=next_update.timestamp() if next_update else None,
        revoked=[entry.serial_number for entry in crl],
        der=crl.public_bytes(serialization.Encoding.DER),
    )


# -- verification: what an agent would say ------------------------------------------------------------

CRL_TROUBLE = frozenset({3, 11, 12})
"""OpenSSL's codes for "no CRL", "CRL not yet valid", "CRL expired": revocation can't be told, which is no
fault of the certificate."""


@dataclass(frozen=True, slots=True)
class Problem:
    """One reason why a chain does not verify."""

    code: int
    """OpenSSL's X509_V_ERR number."""
    depth: int
    subject: str
    issuer: str

    @property
    def undecided(self) -> bool:
        """True if only the revocation state is unknown: the certificate itself was not refused."""
        return self.code in CRL_TROUBLE

    def __str__(self) -> str:
        return in_agents_words(self.code, self.subject, self.issuer)


def in_agents_words(code: int, subject: str, issuer: str) -> str:
    """The sentence a Puppet 6+ agent prints for an X509_V_ERR code."""
    sentences = {
        2: f"The issuer '{issuer}' of certificate '{subject}' cannot be found locally",
        3: f"The CRL issued by '{issuer}' is missing",
        7: f"Invalid signature for certificate '{subject}'",
        8: f"Invalid signature for CRL issued by '{issuer}'",
        9: f"The certificate '{subject}' is not yet valid, verify time is synchronized",
        10: f"The certificate '{subject}' has expired, verify time is synchronized",
        11: f"The CRL issued by '{issuer}' is not yet valid, verify time is synchronized",
        12: f"The CRL issued by '{issuer}' has expired, verify time is synchronized",
        18: f"certificate verify failed [self signed certificate for {subject}]",
        19: f"certificate verify failed [self signed certificate in certificate chain for {subject}]",
        20: f"certificate verify failed [unable to get local issuer certificate for {subject}]",
        23: f"Certificate '{subject}' is revoked",
    }
    return sentences.get(code) or f"Certificate '{subject}' failed verification (X509_V_ERR {code})"


def verify(
    chain: Sequence[bytes],
    authorities: Sequence[bytes],
    crls: Sequence[bytes],
    at: float,
    revocation: Revocation = "chain",
) -> list[Problem]:
    """Every reason why an agent that trusts ``authorities`` and holds ``crls`` refuses ``chain`` at a time.

    All arguments are DER; ``chain`` begins with the leaf. OpenSSL stops at the first error, so the check
    is repeated with that error's cause taken away. Raises Malformed for bytes that are no certificate.
    """
    certificates = [_guard(x509.load_der_x509_certificate, der) for der in chain]
    roots = [_guard(x509.load_der_x509_certificate, der) for der in authorities]
    lists = [_guard(x509.load_der_x509_crl, der) for der in crls]
    problems: list[Problem] = []
    seen: set[tuple[int, int]] = set()
    attempts: list[tuple[Revocation, float]] = [(revocation, at)]
    # Without the CRLs the certificate's own errors show; at a time within its validity, the CRLs' do.
    if certificates:
        middle = (
            certificates[0].not_valid_before_utc.timestamp() + certificates[0].not_valid_after_utc.timestamp()
        ) / 2
        attempts += [
            ("none", at),
            (revocation, middle),
            ("leaf" if revocation == "chain" else revocation, at),
        ]
        # A list that is out of date still says who was revoked when it was made.
        made = [crl.last_update_utc.timestamp() for crl in lists if crl.issuer == certificates[0].issuer]
        attempts += [("leaf", max(made))] if made and revocation != "none" else []
    for mode, when in attempts:
        problem = _first_problem(certificates, roots, lists, when, mode)
        if problem is None or (problem.code, problem.depth) in seen:
            continue
        if when != at and problem.code in (9, 10, 11, 12):
            continue
        seen.add((problem.code, problem.depth))
        problems.append(problem)
    return problems


def _first_problem(
    chain: list[x509.Certificate],
    roots: list[x509.Certificate],
    crls: list[x509.CertificateRevocationList],
    at: float,
    revocation: Revocation,
) -> Problem | None:
    if not chain:
        return None
    store = crypto.X509Store()
    for root in roots:
        store.add_cert(crypto.X509.from_cryptography(root))
    for crl in crls:
        store.add_crl(crl)
    flags = 0
    if revocation != "none":
        flags |= crypto.X509StoreFlags.CRL_CHECK
    if revocation == "chain":
        flags |= crypto.X509StoreFlags.CRL_CHECK_ALL
    if flags:
        store.set_flags(flags)
    store.set_time(datetime.datetime.fromtimestamp(at, datetime.UTC).replace(tzinfo=None))
    context = crypto.X509StoreContext(
        store,
        crypto.X509.from_cryptography(chain[0]),
        [crypto.X509.from_cryptography(cert) for cert in chain[1:]],
    )
    try:
        context.verify_certificate()
    except crypto.X509StoreContextError as error:
        culprit = error.certificate.to_cryptography() if error.certificate else chain[0]
        code, depth = int(error.errors[0]), int(error.errors[1])
        return Problem(code, depth, name_of(culprit.subject), name_of(culprit.issuer))
    return None


def names_match(cert: Certificate, host: str) -> bool:
    """True if an agent that asked for ``host`` accepts this certificate's names (CN only without SANs)."""
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
