from inspector.rules.kit import *
from inspector.rules.weak_key import keys_in
from inspector.runs.examples import weakly_signed


@rule(
    "B32",
    Severity.ERROR,
    at=(Kind.CSR, Kind.CERTIFICATE, Kind.RENEWAL, Kind.CA_BUNDLE, Kind.CATALOG),
    otherwise="warning for SHA-1; notice with agents up to version 3 for SHA-1 and for signing requests",
    title="weak digest",
    fix=(
        advice("upgrade the software that signs: agents of 2.7 sign with MD5, CAs of 2.7 with SHA-1"),
        group("enrol"),
    ),
    source="docs/protocol.md#signature-digests",
    good=lambda: [talk(ca(), crl(), csr(), issued(), catalog(), report())],
    bad=lambda: [
        talk(ca(), crl(), csr(made=weakly_signed("md5")), not_issued()),
        talk(ca(), crl(), csr(made=weakly_signed("sha1")), not_issued()),
        talk(ca(), csr(made=weakly_signed("md5")), not_issued(), version="2.7.26"),
    ],
    also=("B01", "B03"),
)
def weak_digest(case: ExchangeCase) -> Iterator[Statement]:
    """A certificate or a signing request is signed with a digest that can be forged. Current OpenSSL refuses such a
    certificate. Agents of 2.7 sign their requests with MD5, and CAs of 2.7 their certificates with SHA-1: there this is
    normal. A root certificate's own signature is not relevant and not checked."""
    legacy = case.run.dialect == "legacy"
    for owner, signed in keys_in(case):
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
