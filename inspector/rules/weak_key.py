from inspector.host import pki
from inspector.rules.kit import *


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
    also=("B01",),
)
def weak_key(case: ExchangeCase, *, rsa_bits: float = 2048) -> Iterator[Statement]:
    """A key is so short that it can be broken. Current OpenSSL refuses it, so connections fail at the latest when one
    of the two hosts is upgraded. With 2.7 and 3.x on both sides nothing refuses it yet."""
    severity = Severity.WARNING if case.run.dialect == "legacy" else Severity.ERROR
    for owner, keyed in keys_in(case):
        if keyed.key_type == "rsa" and keyed.key_size is not None and keyed.key_size < rsa_bits:
            yield Statement(
                brief(f"{owner} '{keyed.subject}' has an RSA key of {keyed.key_size} bits"),
                severity=severity,
                at=places.keyed(f"RSA {keyed.key_size} bits"),
            )


def keys_in(case: ExchangeCase) -> Iterator[tuple[str, d.Certificate | d.CertificateRequest]]:
    """The certificates and signing requests in an exchange, each with a word for the message."""
    request, answer, client = case.step.request, case.step.response, case.step.client
    if isinstance(request, d.CertificateRequest):
        yield "the signing request", request
    if isinstance(answer, d.Certificates):
        for certificate in answer.certificates:
            yield ("the CA" if case.kind is Kind.CA_BUNDLE else "the certificate"), certificate
    if client is not None:
        yield "the certificate", client
