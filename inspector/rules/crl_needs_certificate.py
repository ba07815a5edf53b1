from inspector.rules.kit import *


@rule(
    "S17",
    Severity.ERROR,
    at=(Kind.CRL,),
    generations=SINCE_6,
    refused=True,
    title="the CA serves its CRL only to agents that have a certificate",
    fix=(
        on_ca(
            "let everybody read the CRL in auth.conf: `path /puppet-ca/v1/certificate_revocation_list/ca`, "
            "`method find`, "
            "`auth any`, `allow *`"
        ),
        on_ca("or upgrade it to Puppet Server 5.3 or later, which allows it by default"),
    ),
    source="docs/protocol.md#the-crl-of-a-ca-in-ruby",
    good=lambda: [
        talk(ca(), crl(), csr(), issued(), plugins(), catalog(), report()),
    ],
    bad=lambda: [talk(ca(), crl(status=403))],
    also=("B01", "B09"),
)
def crl_needs_certificate(case: ExchangeCase) -> Iterator[Statement]:
    """Agents of version 6.0 and later download the CRL before they request a certificate. A CA that runs on a Ruby
    master, or with auth.conf rules of that time, refuses the download, and no new agent can be enrolled."""
    if case.status in (401, 403) and not case.exchange.agent.peer_chain:
        yield Statement(f"the CRL was refused with {case.status} to an agent without a certificate: it cannot enrol")
