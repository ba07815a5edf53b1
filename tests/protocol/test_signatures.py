"""Signatures over SHA-1, as CAs up to Puppet 3.8 make them: accepted by every check that asks who signed."""

from __future__ import annotations

import pytest
from cryptography import x509 as lib
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ed25519, padding, rsa
from cryptography.hazmat.primitives.serialization import Encoding

from inspector.analysis.analyzer import Analyzer
from inspector.doctor.findings import crl_problems
from inspector.explain.trust import Trust
from inspector.host import pki
from inspector.pages import certificates as pages
from inspector.protocol import signatures, x509
from inspector.runs.examples import bundle, crl, talk

_OID = bytes.fromhex("06092a864886f70d0101")
_SHA256, _SHA1 = _OID + b"\x0b", _OID + b"\x05"


def _authority(name: str) -> pki.Authority:
    """An RSA CA, as Puppet's are."""
    key = pki.new_key(2048)
    own = pki.make_ca(name)
    subject = own.certificate.subject
    builder = lib.CertificateBuilder(
        subject, subject, key.public_key(), 1, own.certificate.not_valid_before_utc, own.certificate.not_valid_after_utc
    )
    for extension in own.certificate.extensions:
        if not isinstance(extension.value, lib.SubjectKeyIdentifier):
            builder = builder.add_extension(extension.value, extension.critical)
    identifier = lib.SubjectKeyIdentifier.from_public_key(key.public_key())
    return pki.Authority(builder.add_extension(identifier, critical=False).sign(key, hashes.SHA256()), key)


def _over_sha1(signed: bytes, content: bytes, signer: pki.PrivateKey) -> bytes:
    """A signature over SHA-1 instead of SHA-256: the library makes none itself."""
    assert isinstance(signer, rsa.RSAPrivateKey)
    weak = content.replace(_SHA256, _SHA1)
    tail = signed[signed.index(content) + len(content) :].replace(_SHA256, _SHA1)
    signature = signer.sign(weak, padding.PKCS1v15(), hashes.SHA1())  # noqa: S303 - what old CAs do
    return signed[: signed.index(content)] + weak + tail[:-256] + signature


OLD, STRANGER = _authority("Puppet CA: old"), _authority("Puppet CA: old")
_CRL = pki.make_crl(OLD, last_update=OLD.certificate.not_valid_before_utc)
OLD_CRL = lib.load_der_x509_crl(_over_sha1(_CRL.public_bytes(Encoding.DER), _CRL.tbs_certlist_bytes, OLD.key))
FORGED = lib.load_der_x509_crl(_over_sha1(_CRL.public_bytes(Encoding.DER), _CRL.tbs_certlist_bytes, STRANGER.key))
CA = x509.read_certificates(pki.pem(OLD.certificate))[0]
LEAF = x509.read_certificates(pki.pem(pki.sign(OLD, pki.new_key().public_key(), "node1.example")))[0]
NOW = CA.not_before + 86_400


@pytest.mark.parametrize(("served", "genuine"), [(OLD_CRL, True), (FORGED, False)], ids=["genuine", "forged"])
def test_a_crl_over_sha1_is_judged_alike_everywhere(served: lib.CertificateRevocationList, genuine: bool) -> None:
    assert served.signature_hash_algorithm is not None
    assert served.signature_hash_algorithm.name == "sha1"
    (read,) = x509.read_crls(pki.pem(served))

    assert signatures.signed_by(read, CA) is genuine

    analyzer = Analyzer()
    for record in talk(bundle(OLD.certificate), crl(body=pki.pem(served))):
        analyzer.feed(record)
    rules = {finding.rule for run in analyzer.finish() for finding in run.findings}
    assert ("B14" not in rules) is genuine

    assert [problem.code for problem in crl_problems([CA], [read], NOW)] == ([] if genuine else [8])

    known = pages.TrustContext(NOW, certificates=(CA,), crls=(read,), trusted=(CA,))
    (signer,) = [item for item in pages.crl(read, known).items if item.name == "signed by"]
    assert (str(signer.value) == CA.subject) is genuine

    trust = Trust(own=True, held=(CA,), crls=(read,), revocation="chain", mine=LEAF)
    assert (trust.judged(NOW).problems == ()) is genuine


def test_a_certificate_and_a_request_over_sha1() -> None:
    signed = OLD.certificate.public_bytes(Encoding.DER)
    weak = x509.read_der(_over_sha1(signed, OLD.certificate.tbs_certificate_bytes, OLD.key))
    known = pages.TrustContext(NOW, certificates=(weak,))
    assert next(item.text for item in pages.verdicts(weak, known)) == "signed by: itself (root certificate)"
    assert not signatures.signed_by(weak, x509.read_certificates(pki.pem(STRANGER.certificate))[0])

    request = pki.make_csr("old.example", OLD.key)
    for signer, valid in ((OLD.key, True), (STRANGER.key, False)):
        der = _over_sha1(request.public_bytes(Encoding.DER), request.tbs_certrequest_bytes, signer)
        assert x509.read_csr(pki.pem(lib.load_der_x509_csr(der))).signature_valid is valid


def test_keys_of_every_kind() -> None:
    own = pki.make_ca("CA")
    assert signatures.issued_by(own.certificate, own.certificate)
    assert signatures.issued_by(own.certificate, OLD.certificate) is False
    assert signatures.issued_by(OLD.certificate, own.certificate) is False
    key = ed25519.Ed25519PrivateKey.generate()
    request = lib.CertificateSigningRequestBuilder().subject_name(OLD.certificate.subject).sign(key, None)
    assert signatures.verifies(request, key.public_key())
    assert signatures.verifies(request, OLD.key.public_key()) is False
