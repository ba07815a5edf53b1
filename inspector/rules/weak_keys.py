"""B31 and B32: certificates and signing requests with a weak key, or signed over a weak digest."""

from inspector.host import pki
from inspector.rules.kit import *
from inspector.runs.examples import weakly_signed


@rule(
    "B31",
    Severity.ERROR,
    at=(Kind.CSR, Kind.CERTIFICATE, Kind.RENEWAL, Kind.CA_BUNDLE, Kind.CATALOG),
    otherwise="warning for agents up to version 3",
    title="weak public key",
    fix=(
        on_node(
            "set a longer key", "puppet config set keylength 4096 --section main", only_if="the node's key is weak"
        ),
        group("enrol", only_if="the node's key is weak"),
        on_ca("recreate the CA", only_if="the CA's key is weak"),
    ),
    source="docs/protocol.md#keys",
    good=lambda: [
        talk(ca(), crl(), csr(made=pki.make_csr(NAME, pki.new_key(2048))), not_issued()),
        talk(ca(), crl(), csr(), issued(), catalog(), report()),
    ],
    bad=lambda: [talk(ca(), crl(), csr(made=pki.make_csr(NAME, pki.new_key(1024))), not_issued())],
)
def weak_key(case: ExchangeCase, *, rsa_bits: float = 2048) -> Iterator[Statement]:
    """A key is so short that it can be broken. Current OpenSSL refuses it, so connections fail at the latest when one
    of the two hosts is upgraded. With 2.7 and 3.x on both sides nothing refuses it yet."""
    severity = Severity.WARNING if case.run.dialect == "legacy" else Severity.ERROR
    for owner, keyed in _keys_in(case):
        if keyed.key_type == "rsa" and keyed.key_size is not None and keyed.key_size < rsa_bits:
            yield Statement(
                brief(f"{owner} '{keyed.subject}' has an RSA key of {keyed.key_size} bits"),
                severity=severity,
                at=places.keyed(f"RSA {keyed.key_size} bits"),
            )


@rule(
    "B32",
    Severity.ERROR,
    at=(Kind.CSR, Kind.CERTIFICATE, Kind.RENEWAL, Kind.CA_BUNDLE, Kind.CATALOG),
    otherwise="warning for SHA-1; notice with agents up to version 3 for SHA-1 and for signing requests",
    title="weak digest",
    fix=(advice("upgrade the software that signs: agents of 2.7 sign with MD5, CAs of 2.7 with SHA-1"), group("enrol")),
    source="docs/protocol.md#signature-digests",
    good=lambda: [talk(ca(), crl(), csr(), issued(), catalog(), report())],
    bad=lambda: [
        talk(ca(), crl(), csr(made=weakly_signed("md5")), not_issued()),
        talk(ca(), crl(), csr(made=weakly_signed("sha1")), not_issued()),
        talk(ca(), csr(made=weakly_signed("md5")), not_issued(), version="2.7.26"),
    ],
)
def weak_digest(case: ExchangeCase) -> Iterator[Statement]:
    """A certificate or a signing request is signed with a digest that can be forged. Current OpenSSL refuses such a
    certificate. Agents of 2.7 sign their requests with MD5, and CAs of 2.7 their certificates with SHA-1: there this is
    normal. A root certificate's own signature is not relevant and not checked."""
    legacy = case.run.dialect == "legacy"
    for owner, signed in _keys_in(case):
        if signed.signature not in ("md5", "sha1") or (
            isinstance(signed, d.Certificate) and signed.issuer == signed.subject
        ):
            continue
        severity = Severity.ERROR if signed.signature == "md5" else Severity.WARNING
        if legacy and (signed.signature == "sha1" or isinstance(signed, d.CertificateRequest)):
            severity = Severity.NOTICE
        name = "MD5" if signed.signature == "md5" else "SHA-1"
        yield Statement(
            brief(f"{owner} '{signed.subject}' is signed over {name}"),
            severity=severity,
            at=places.keyed(f"signature: {signed.signature}"),
        )


def _keys_in(case: ExchangeCase) -> Iterator[tuple[str, d.Certificate | d.CertificateRequest]]:
    """The certificates and signing requests in an exchange, each with a word for the message."""
    request, answer, client = case.step.request, case.step.response, case.step.client
    if isinstance(request, d.CertificateRequest):
        yield "the signing request", request
    if isinstance(answer, d.Certificates):
        for certificate in answer.certificates:
            yield ("the CA" if case.kind is Kind.CA_BUNDLE else "the certificate"), certificate
    if client is not None:
        yield "the certificate", client
