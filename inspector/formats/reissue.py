"""Certificates, signing requests and CRLs issued again: with other names and other keys, otherwise the same.

Each key is replaced by one new key of the same type and size. What was signed with a known key is signed with its
replacement, what was signed with an unknown key stays so, and what was forged stays forged. So chains, revocation,
dates and comparisons of keys give the same results. The new keys protect nothing: RSA keys share their primes, which
makes them quick to generate.
"""

from __future__ import annotations

import contextlib
import hashlib
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, rsa

from inspector.formats import der_values
from inspector.privacy import patterns
from inspector.protocol.der import places
from inspector.protocol.pem import UNREADABLE, Malformed, guard, request_of
from inspector.protocol.signatures import rsa_padding, verifies
from inspector.protocol.unusual import signed_part

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from cryptography.hazmat.primitives.asymmetric.types import (
        CertificateIssuerPrivateKeyTypes,
        CertificatePublicKeyTypes,
    )

    from inspector.protocol.signatures import Signed

_EXPONENT = 65537
_SMALLEST, _COMMON = 1024, 2048
_BITS = 0x03
_VERSION = 0xA0
_OF_REQUEST, _OF_CERTIFICATE = 2, 5
"""The index of the public key; in a certificate after the version, if there is one."""
_ECDSA = "1.2.840.10045.4."
_WRONG = (ValueError, TypeError, KeyError, IndexError, OverflowError, UnsupportedAlgorithm, InvalidSignature)


class Reissuer:
    """Issues certificates again. All of them are learned first (``learn``): a signer may come after what it signed."""

    def __init__(self, text: Callable[[str], str], address: Callable[[bytes], bytes], salt: bytes) -> None:
        """Start without certificates. ``text`` and ``address`` return the pseudonym of a name."""
        self._text, self._address, self._salt = text, address, salt
        self._authorities: dict[bytes, list[x509.Certificate]] = {}
        """The certificates, by subject."""
        self._keys: dict[bytes, CertificateIssuerPrivateKeyTypes] = {}
        """The new key, by the old one, or by another mark of its owner."""
        self._rsa: dict[int, Iterator[rsa.RSAPrivateKey]] = {}
        self._identifiers: dict[bytes, bytes] = {}
        self._made: dict[bytes, bytes] = {}
        self._unmasked: dict[bytes, bytes] = {}
        """The learned items, by their DER with masked secrets: a mask breaks the signature."""

    def learn(self, der: bytes) -> None:
        """Learn a certificate, a signing request or a CRL that will be issued again."""
        try:
            read = parse(der)
            subject = read.subject.public_bytes() if isinstance(read, x509.Certificate) else b""
        except UNREADABLE:
            return
        self._unmasked[patterns.der(der)] = der
        if isinstance(read, x509.Certificate):
            known = self._authorities.setdefault(subject, [])
            if read not in known:
                known.append(read)

    def made(self, der: bytes) -> bytes:
        """Return it with new names and keys, its secrets masked; if it cannot be parsed, with new texts only."""
        der = self._unmasked.get(der, der)
        if der not in self._made:
            try:
                self._made[der] = guard(self._anew, der)
            except (Malformed, InvalidSignature):
                self._made[der] = self._text(der.decode("latin-1")).encode("latin-1", "replace")
        return self._made[der]

    def _anew(self, der: bytes) -> bytes:
        read = parse(der)
        signer = self._signer(read, der)  # first, as its key's identifier is part of what it signs
        if not isinstance(read, x509.CertificateRevocationList):
            self._key(read.public_key())
        for identifier in identifiers(read):
            new = hashlib.sha256(self._salt + identifier).digest()[: len(identifier)]
            self._identifiers.setdefault(identifier, new)
        der = patterns.der(der)
        outer = places(der, 0, len(der))[0]
        inner, algorithm, _ = places(der, *outer[2:])
        fields = places(der, *inner[2:])
        changes = der_values.Changes(self._text, self._address, self._salt, self._identifiers)
        parts = [der_values.rewritten(der, field, changes) for field in fields]
        if not isinstance(read, x509.CertificateRevocationList):
            request = isinstance(read, x509.CertificateSigningRequest)
            at = _OF_REQUEST if request else _OF_CERTIFICATE + (fields[0][1] == _VERSION)
            parts[at] = _spki(self._key(read.public_key()).public_key())
        signed = der_values.value(inner[1], b"".join(parts))
        signature = self._signature(signer, read, signed)
        return der_values.value(
            outer[1], signed + der[algorithm[0] : algorithm[3]] + der_values.value(_BITS, b"\0" + signature)
        )

    # -- keys ----------------------------------------------------------------------------------------------

    def _key(self, old: CertificatePublicKeyTypes) -> CertificateIssuerPrivateKeyTypes:
        before = _spki(old)
        if before not in self._keys:
            self._keys[before] = new = self._new(old)
            self._identifiers[_identifier(old)] = _identifier(new.public_key())
        return self._keys[before]

    def _new(self, like: CertificatePublicKeyTypes) -> CertificateIssuerPrivateKeyTypes:
        match like:
            case rsa.RSAPublicKey():
                return self._any_rsa(max(like.key_size, _SMALLEST))
            case ec.EllipticCurvePublicKey():
                return ec.generate_private_key(like.curve)
            case ed25519.Ed25519PublicKey():
                return ed25519.Ed25519PrivateKey.generate()
            case ed448.Ed448PublicKey():
                return ed448.Ed448PrivateKey.generate()
        return ec.generate_private_key(ec.SECP256R1())

    def _any_rsa(self, size: int) -> rsa.RSAPrivateKey:
        return next(self._rsa.setdefault(size, self._many(size)))

    def _many(self, size: int) -> Iterator[rsa.RSAPrivateKey]:
        """Generate RSA keys, each of a different pair of shared primes."""
        primes: list[int] = []
        while True:
            numbers = rsa.generate_private_key(public_exponent=_EXPONENT, key_size=size).private_numbers()
            for prime in (numbers.p, numbers.q):
                for other in primes:
                    if (prime * other).bit_length() == size:
                        yield _of_primes(prime, other)
                primes.append(prime)

    def _signature(self, signer: CertificateIssuerPrivateKeyTypes, read: Signed, signed: bytes) -> bytes:
        """Sign the new contents with the replacement of the original signer's key. Where that is not possible, return
        an invalid signature of the same length."""
        try:
            return _sign(signer, read, signed)
        except _WRONG:
            return hashlib.shake_256(self._salt + signed).digest(len(read.signature))

    def _signer(self, read: Signed, der: bytes) -> CertificateIssuerPrivateKeyTypes:
        if isinstance(read, x509.CertificateSigningRequest):
            own = read.public_key()
            return (
                self._key(own) if verifies(read, own, signed_part(der)) is not False else self._stranger(b"forger", own)
            )
        named = [certificate.public_key() for certificate in self._authorities.get(read.issuer.public_bytes(), [])]
        for key in named:
            if verifies(read, key) is not False:
                return self._key(key)
        if named:
            return self._stranger(b"forger", named[0])
        owner = read.issuer.public_bytes() + b"".join(identifiers(read, own=False))
        if owner not in self._keys:
            elliptic = read.signature_algorithm_oid.dotted_string.startswith(_ECDSA)
            self._keys[owner] = ec.generate_private_key(ec.SECP256R1()) if elliptic else self._any_rsa(_COMMON)
        return self._keys[owner]

    def _stranger(self, owner: bytes, like: CertificatePublicKeyTypes) -> CertificateIssuerPrivateKeyTypes:
        """Return a key for a signer whose own key is not known: the same one for each signer."""
        if owner not in self._keys:
            self._keys[owner] = self._new(like)
        return self._keys[owner]


def parse(der: bytes) -> Signed:
    """Parse a certificate, a signing request or a CRL. Raises Malformed."""
    loads: tuple[Callable[[bytes], Signed], ...] = (
        x509.load_der_x509_certificate, request_of, x509.load_der_x509_crl
    )  # fmt: skip
    for load in loads:
        with contextlib.suppress(Malformed):
            return guard(load, der)
    raise Malformed("not a certificate, signing request or CRL")


def identifiers(read: Signed, *, own: bool = True) -> list[bytes]:
    """Return the key identifiers in its extensions: of its own key, of its signer's. Raises Malformed."""
    found: list[bytes | None] = []
    try:
        extensions = list(read.extensions)  # parsed only now
    except UNREADABLE as error:
        raise Malformed(str(error)) from error
    for extension in extensions:
        match extension.value:
            case x509.SubjectKeyIdentifier(digest=subject) if own:
                found.append(subject)
            case x509.AuthorityKeyIdentifier(key_identifier=signer):
                found.append(signer)
    return [identifier for identifier in found if identifier]


def _spki(key: CertificatePublicKeyTypes) -> bytes:
    return key.public_bytes(serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo)


def _identifier(key: CertificatePublicKeyTypes) -> bytes:
    """Return the identifier that CAs compute: SHA-1 over the key's bits."""
    return x509.SubjectKeyIdentifier.from_public_key(key).digest


def _of_primes(p: int, q: int) -> rsa.RSAPrivateKey:
    d = pow(_EXPONENT, -1, (p - 1) * (q - 1))
    numbers = rsa.RSAPrivateNumbers(
        p, q, d, rsa.rsa_crt_dmp1(d, p), rsa.rsa_crt_dmq1(d, q), rsa.rsa_crt_iqmp(p, q),
        rsa.RSAPublicNumbers(_EXPONENT, p * q),
    )  # fmt: skip
    return numbers.private_key(unsafe_skip_rsa_key_validation=True)


def _sign(key: CertificateIssuerPrivateKeyTypes, read: Signed, contents: bytes) -> bytes:
    digest = read.signature_hash_algorithm
    match key:
        case rsa.RSAPrivateKey() if digest:
            return key.sign(contents, rsa_padding(read), digest)
        case ec.EllipticCurvePrivateKey() if digest:
            return key.sign(contents, ec.ECDSA(digest))
        case ed25519.Ed25519PrivateKey() | ed448.Ed448PrivateKey():
            return key.sign(contents)
    raise ValueError("signed with another key")
