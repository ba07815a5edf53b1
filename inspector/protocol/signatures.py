"""Signature checks: did this key sign this certificate, signing request or revocation list?

The library's own checks (``is_signature_valid``, ``verify_directly_issued_by``) reject SHA-1, and CAs up to Puppet 3.8
sign with SHA-1. These checks accept every digest that the library can compute.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric import ec, ed448, ed25519, padding, rsa

from inspector.protocol.certificates import RevocationList

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.types import CertificatePublicKeyTypes

    from inspector.protocol.certificates import Certificate

type Signed = x509.Certificate | x509.CertificateSigningRequest | x509.CertificateRevocationList


def signed_by(signed: Certificate | RevocationList, authority: Certificate) -> bool | None:
    """Return whether the key of ``authority`` signed a certificate or CRL; None if that cannot be determined here.

    Names are not compared.
    """
    return _signed_by(signed.der, authority.der, crl=isinstance(signed, RevocationList))


@lru_cache(maxsize=64)
def _signed_by(signed: bytes, authority: bytes, *, crl: bool) -> bool | None:
    try:
        issuer = x509.load_der_x509_certificate(authority)
        return issued_by(x509.load_der_x509_crl(signed) if crl else x509.load_der_x509_certificate(signed), issuer)
    except (ValueError, TypeError, x509.InvalidVersion):
        return False


def issued_by(signed: x509.Certificate | x509.CertificateRevocationList, issuer: x509.Certificate) -> bool | None:
    """Return the result of ``signed_by`` for objects of the library."""
    try:
        key = issuer.public_key()
    except UnsupportedAlgorithm:
        return None
    except (ValueError, TypeError):
        return False
    return verifies(signed, key)


def verifies(signed: Signed, key: CertificatePublicKeyTypes, content: bytes | None = None) -> bool | None:
    """Return whether a signature was made with a key, over ``content`` if that is not what the object has.

    None: it cannot be determined here, because of the kind of key or a digest that is not supported (MD5).
    """
    content, signature = content or signed_content(signed), signed.signature
    try:
        digest = signed.signature_hash_algorithm
        match key:
            case rsa.RSAPublicKey():
                if digest is None:
                    return False
                key.verify(signature, content, rsa_padding(signed), digest)
            case ec.EllipticCurvePublicKey():
                if digest is None:
                    return False
                key.verify(signature, content, ec.ECDSA(digest))
            case ed25519.Ed25519PublicKey() | ed448.Ed448PublicKey():
                key.verify(signature, content)
            case _:
                return None
    except UnsupportedAlgorithm:
        return None
    except (InvalidSignature, ValueError, TypeError, OverflowError):
        return False
    return True


def signed_content(signed: Signed) -> bytes:
    """Return the bytes over which the signature was made."""
    match signed:
        case x509.Certificate():
            return signed.tbs_certificate_bytes
        case x509.CertificateSigningRequest():
            return signed.tbs_certrequest_bytes
    return signed.tbs_certlist_bytes


def rsa_padding(signed: Signed) -> padding.PSS | padding.PKCS1v15:
    """Return the padding of an RSA signature."""
    parameters = signed.signature_algorithm_parameters
    return parameters if isinstance(parameters, padding.PSS) else padding.PKCS1v15()
