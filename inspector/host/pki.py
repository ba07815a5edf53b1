"""Make keys, certificates, requests and CRLs in the form of Puppet's own.

Used by ``provision``, by the identity mode ``mint`` and by the lab. The caller decides what is issued: this module
keeps no inventory and no serial numbers, has no policy, and verifies nothing.

The forms are those of puppetserver 7.9.5 (docs/protocol.md#issued-certificates), which differ from common practice: the
extendedKeyUsage is critical, every leaf is for servers and clients alike and carries a Netscape comment.
"""

from __future__ import annotations

import ipaddress
import os
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from inspector import inputs
from inspector.errors import IdentityError
from inspector.protocol.ca_service import KEY_FILE, OPENVOX_CA
from inspector.protocol.pem import UNREADABLE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes

type PrivateKey = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey

CA_LIFETIME = timedelta(days=15 * 365)
LEAF_LIFETIME = timedelta(days=5 * 365)
"""puppetserver's ``ca_ttl``; its CRLs are valid equally long."""
BACKDATED = timedelta(days=1)
"""Puppet starts every certificate a day early, for agents whose clock is behind."""

_COMMENT = b"Puppet Server Internal Certificate"
_NETSCAPE_COMMENT = x509.UnrecognizedExtension(
    x509.ObjectIdentifier("2.16.840.1.113730.1.13"),
    bytes([0x16, len(_COMMENT)]) + _COMMENT,  # DER: an IA5String
)


@dataclass(frozen=True, slots=True)
class Authority:
    """A CA that can sign: its certificate and key."""

    certificate: x509.Certificate
    key: PrivateKey


@dataclass(frozen=True, slots=True)
class SslDirPaths:
    """The paths of a certname's files in an agent's ssldir (docs/protocol.md#the-ssldir-of-an-agent)."""

    path: Path
    certname: str

    @property
    def ca(self) -> Path:
        return self.path / "certs" / "ca.pem"

    @property
    def crl(self) -> Path:
        return self.path / "crl.pem"

    @property
    def certificate(self) -> Path:
        return self.path / "certs" / f"{self.certname}.pem"

    @property
    def key(self) -> Path:
        return self.path / "private_keys" / f"{self.certname}.pem"

    def create(self) -> None:
        """Create the missing directories, accessible to their owner only (Puppet's own are less strict)."""
        for directory in (self.path, self.ca.parent, self.key.parent):
            directory.mkdir(mode=0o700, parents=True, exist_ok=True)


def new_key(rsa_bits: int | None = None) -> PrivateKey:
    """Make a P-256 key, as agents do with ``key_type=ec``; or an RSA key (Puppet's default is 4096 bits, and slow)."""
    if rsa_bits:
        return rsa.generate_private_key(public_exponent=65537, key_size=rsa_bits)
    return ec.generate_private_key(ec.SECP256R1())


def make_ca(
    name: str, issuer: Authority | None = None, *, serial: int | None = None, lifetime: timedelta = CA_LIFETIME
) -> Authority:
    """Make a CA, self-signed without ``issuer``."""
    key = new_key()
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    start = _now() - BACKDATED
    builder = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer.certificate.subject if issuer else subject)
        .public_key(key.public_key())
        .serial_number(serial or x509.random_serial_number())
        .not_valid_before(start)
        .not_valid_after(start + BACKDATED + lifetime)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(_key_usage(ca=True), critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .add_extension(_NETSCAPE_COMMENT, critical=False)
    )
    if issuer:
        builder = builder.add_extension(_key_of(issuer), critical=False)
    return Authority(builder.sign(issuer.key if issuer else key, hashes.SHA256()), key)


def make_csr(
    certname: str, key: PrivateKey, alt_names: Iterable[str] = (), attributes: Mapping[str, str] | None = None
) -> x509.CertificateSigningRequest:
    """Make a signing request as an agent does.

    If there are ``alt_names``, the certname is added to them, as the agent does. ``attributes`` are those of
    ``custom_attributes`` in csr_attributes.yaml: dotted OID and value.
    """
    builder = x509.CertificateSigningRequestBuilder().subject_name(_common_name(certname))
    if names := sorted({certname, *alt_names}) if alt_names else []:
        builder = builder.add_extension(x509.SubjectAlternativeName([x509.DNSName(n) for n in names]), critical=False)
    for oid, value in (attributes or {}).items():
        builder = builder.add_attribute(x509.ObjectIdentifier(oid), value.encode())
    return builder.sign(key, hashes.SHA256())


def sign(
    ca: Authority,
    request: x509.CertificateSigningRequest | CertificatePublicKeyTypes,
    certname: str,
    alt_names: Iterable[str] = (),
    *,
    lifetime: timedelta = LEAF_LIFETIME,
    serial: int | None = None,
    not_before: datetime | None = None,
    extensions: Iterable[x509.Extension[x509.ExtensionType]] = (),
) -> x509.Certificate:
    """Issue a certificate for ``certname``; only the public key of the request is used. A name that is an address is
    one in the certificate, too.

    ``lifetime`` counts from ``not_before``, by default from now. ``extensions`` are added to the usual ones.
    """
    key = request.public_key() if isinstance(request, x509.CertificateSigningRequest) else request
    names: list[x509.GeneralName] = [x509.DNSName(name) for name in dict.fromkeys((certname, *alt_names))]
    with suppress(ValueError):
        names.append(x509.IPAddress(ipaddress.ip_address(certname)))
    issuer = ca.certificate
    builder = (
        x509.CertificateBuilder()
        .subject_name(_common_name(certname))
        .issuer_name(issuer.subject)
        .public_key(key)
        .serial_number(serial or x509.random_serial_number())
        .not_valid_before(not_before or _now() - BACKDATED)
        .not_valid_after((not_before or _now()) + lifetime)
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .add_extension(_NETSCAPE_COMMENT, critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier(
                _key_of(ca).key_identifier, [x509.DirectoryName(issuer.issuer)], issuer.serial_number
            ),
            critical=False,
        )
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]),
            critical=True,
        )
        .add_extension(_key_usage(ca=False), critical=True)
    )
    for extension in extensions:
        builder = builder.add_extension(extension.value, critical=extension.critical)
    return builder.sign(ca.key, hashes.SHA256())


def puppet_extensions(certificate: x509.Certificate) -> list[x509.Extension[x509.ExtensionType]]:
    """Return Puppet's own extensions (trusted facts, authorization), on which a master's answers depend."""
    return [
        extension
        for extension in certificate.extensions
        if extension.oid.dotted_string.startswith("1.3.6.1.4.1.34380.1.")
    ]


def alt_names(certificate: x509.Certificate) -> list[str]:
    """Return the DNS names in a certificate, besides its common name."""
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName)
    except x509.ExtensionNotFound:
        return []
    return found.value.get_values_for_type(x509.DNSName)


def make_crl(
    ca: Authority,
    revoked_serials: Iterable[int] = (),
    number: int = 0,
    last_update: datetime | None = None,
    next_update: datetime | None = None,
) -> x509.CertificateRevocationList:
    """Issue the CA's CRL; by default valid from now, for as long as puppetserver's CRLs are."""
    # A second ago: OpenSSL uses a coarser clock, which may still show the second before.
    last_update = last_update or _now() - timedelta(seconds=1)
    builder = (
        x509.CertificateRevocationListBuilder()
        .issuer_name(ca.certificate.subject)
        .last_update(last_update)
        .next_update(next_update or last_update + LEAF_LIFETIME)
        .add_extension(x509.CRLNumber(number), critical=False)
        .add_extension(_key_of(ca), critical=False)
    )
    for serial in revoked_serials:
        builder = builder.add_revoked_certificate(
            x509.RevokedCertificateBuilder()
            .serial_number(serial)
            .revocation_date(last_update)
            .add_extension(x509.CRLReason(x509.ReasonFlags.key_compromise), critical=False)
            .build()
        )
    return builder.sign(ca.key, hashes.SHA256())


def renew_crl(
    ca: Authority,
    old: Sequence[x509.CertificateRevocationList],
    last_update: datetime,
    next_update: datetime,
) -> x509.CertificateRevocationList:
    """Issue the CA's next CRL: all revoked entries of its ``old`` ones, the extensions of the last of them, and the
    highest number plus one (without old ones, the number 1 and no entries)."""
    if not old:
        return make_crl(ca, number=1, last_update=last_update, next_update=next_update)
    number = 1 + max(_number(crl) for crl in old)
    builder = x509.CertificateRevocationListBuilder(
        ca.certificate.subject,
        last_update,
        next_update,
        # A list given here costs linear time; a hundred thousand entries added one by one do not.
        revoked_certificates=list({entry.serial_number: entry for crl in old for entry in crl}.values()),
    ).add_extension(x509.CRLNumber(number), critical=False)
    for extension in old[-1].extensions:
        if not isinstance(extension.value, x509.CRLNumber):
            builder = builder.add_extension(extension.value, critical=extension.critical)
    return builder.sign(ca.key, hashes.SHA256())


def _number(crl: x509.CertificateRevocationList) -> int:
    try:
        return crl.extensions.get_extension_for_class(x509.CRLNumber).value.crl_number
    except x509.ExtensionNotFound:
        return 0


def certname_of(holder: x509.Certificate | x509.CertificateSigningRequest) -> str:
    """Return the subject's common name; empty if there is none."""
    names = holder.subject.get_attributes_for_oid(NameOID.COMMON_NAME)
    return str(names[0].value) if names else ""


def pem(*things: x509.Certificate | x509.CertificateSigningRequest | x509.CertificateRevocationList) -> bytes:
    """Return everything as PEM, concatenated, as Puppet serves its bundles."""
    return b"".join(thing.public_bytes(serialization.Encoding.PEM) for thing in things)


def key_pem(key: PrivateKey) -> bytes:
    """Return the key as unencrypted PEM, as Puppet stores it."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def read_key(path: Path, password: bytes | None = None) -> PrivateKey:
    """Read an EC or RSA key from a PEM file; ``password`` is for an encrypted one. Raises IdentityError."""
    try:
        # Validating an RSA key of 4096 bits takes half a second. The key is the administrator's own, and callers
        # compare it with its certificate.
        data = inputs.read(path, inputs.SMALL)
        key = serialization.load_pem_private_key(data, password, unsafe_skip_rsa_key_validation=True)
    except TypeError as error:  # encrypted, or not: with the password it is the other way round
        without = f"Give a copy without a password, which nobody else can read: openssl pkey -in {path} -out COPY"
        raise IdentityError(
            f"{path} cannot be read as a private key: {str(error).rstrip('.')}.",
            without if password is None else "Leave the password out.",
        ) from error
    except (OSError, *UNREADABLE) as error:
        reason = getattr(error, "strerror", None) or (
            "the password is another one, or it contains none in PEM format" if password else
            "it contains none in PEM format"
        )  # fmt: skip
        raise IdentityError(
            f"{path} cannot be read as a private key: {reason}.", "Name the file with the key of the certificate."
        ) from error
    if not isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        raise IdentityError(f"{path} is neither an EC nor an RSA key.")
    return key


def read_authority(cadir: Path) -> Authority:
    """Read the signing CA of a cadir: the first certificate in ``ca_crt.pem``, and its key. Raises IdentityError."""
    try:
        certificate = x509.load_pem_x509_certificate(inputs.read(cadir / "ca_crt.pem", inputs.SMALL))
        public = certificate.public_key()  # parsed only now
    except (OSError, *UNREADABLE) as error:
        raise IdentityError(
            f"{cadir} contains no usable ca_crt.pem: {getattr(error, 'strerror', None) or error}.",
            "Use the directory that `puppet config print cadir` prints.",
        ) from error
    path = authority_key(cadir)
    key = read_key(path)
    if key.public_key() != public:
        name = path.relative_to(cadir)
        raise IdentityError(f"{cadir}: {name} is not the key of the first certificate in ca_crt.pem.")
    return Authority(certificate, key)


def authority_key(cadir: Path) -> Path:
    """Return the path of a CA's key: that of an openvox-ca, if only that one may exist."""
    own, other = cadir / KEY_FILE[None], cadir / KEY_FILE[OPENVOX_CA]
    try:
        return other if not inputs.exists(own) and inputs.exists(other) else own
    except OSError:  # whoever reads it there says who may not
        return other


def write_private(path: Path, data: bytes) -> None:
    """Write a file with a private key, replacing an existing one; its mode is 0600 from the first byte on."""
    path.unlink(missing_ok=True)  # an existing file would keep its mode and its readers, a symlink its target
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(data)


def _now() -> datetime:
    return datetime.now(UTC)


def _common_name(certname: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, certname)])


def _key_of(ca: Authority) -> x509.AuthorityKeyIdentifier:
    ski = ca.certificate.extensions.get_extension_for_class(x509.SubjectKeyIdentifier).value
    return x509.AuthorityKeyIdentifier.from_issuer_subject_key_identifier(ski)


def _key_usage(*, ca: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not ca,
        content_commitment=False,
        key_encipherment=not ca,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=ca,
        crl_sign=ca,
        encipher_only=False,
        decipher_only=False,
    )
