from inspector.rules.csr_for_signed_name import SIGNED
from inspector.rules.kit import *

REVOKED = "already has a revoked certificate"


@rule(
    "B19",
    Severity.ERROR,
    at=(Kind.CSR,),
    refused=True,
    title="signing request for a name whose certificate was revoked",
    fix=(
        group("enrol", only_if="the node is meant to come back"),
        on_node("stop its agent", only_if="it was revoked permanently"),
    ),
    source="docs/protocol.md#checks-of-a-signing-request; "
    "puppetserver 7.9.5 src/clj/puppetlabs/puppetserver/certificate_authority.clj",
    good=lambda: [
        talk(ca(), crl(), csr(), not_issued(), csr(status=400, text=SIGNED), issued(), catalog(), report()),
    ],
    bad=lambda: [talk(ca(), crl(), csr(status=400, text=REVOKED), not_issued())],
    also=("B01",),
)
def csr_for_revoked_name(case: ExchangeCase) -> Iterator[Statement]:
    """The node's certificate was revoked and is still stored on the CA: until it is cleaned, the CA accepts no new
    request for this name. Revoking alone is not enough, the certificate must be cleaned. If the node is not meant to
    come back, the revocation works as intended."""
    if REVOKED in case.answer:
        yield Statement(
            f"the certificate of {case.name} was revoked but is still on the CA, which refuses a new request"
        )
