from inspector.rules.kit import *


@rule(
    "B21",
    Severity.ERROR,
    at=(Kind.CSR,),
    title="one key under two certnames",
    fix=(
        advice("choose the host that keeps the key; do what follows for each other one, with its certname"),
        group("enrol"),
        advice("remove the ssldir from the image"),
    ),
    source="docs/protocol.md#keys",
    explains=("B46", "T17", *ANOTHER_KEY),
    good=lambda: [
        together(
            talk(ca(), crl(), csr(), not_issued()),
            talk(ca(), crl(), csr(), not_issued(), certname="node2.example", address="192.0.2.8", after=60),
        )
    ],
    bad=lambda: [
        together(
            talk(ca(), crl(), csr(key="image"), not_issued()),
            talk(ca(), crl(), csr(key="image"), not_issued(), certname="node2.example", address="192.0.2.8", after=60),
        )
    ],
)
def key_under_two_names(case: ExchangeCase) -> Iterator[Statement]:
    """Requests for two certnames contain the same public key: the hosts were cloned from an image that contains a
    private key. Any of these hosts can impersonate the others. A host that was given a new certname manually but kept
    its old key looks the same."""
    request = case.step.request
    if not isinstance(request, d.CertificateRequest) or request.signature_valid is False:
        return
    first, seq = case.ledger.keys.get(request.key, (case.name, 0))
    if first.lower() != case.name.lower():
        yield Statement(
            f"{case.name} requests a certificate for the public key of {first} (SHA-256 {request.key[:16]}...)",
            (seq, case.exchange.seq),
            at=places.csr(request.key),
        )
