from inspector.rules.kit import *


@rule(
    "B09",
    Severity.ERROR,
    at=(Kind.CRL,),
    refused=True,
    otherwise="warning for an agent that only refreshes its CRL",
    title="the master refuses to serve its CRL",
    fix=(
        on_master(
            "allow GET on /puppet-ca/v1/certificate_revocation_list/ca without a certificate in its auth.conf, which "
            "is puppetserver's default"
        ),
        on_master("restart it", "systemctl restart puppetserver"),
    ),
    source="docs/protocol.md#the-crl-of-a-ca-in-ruby; docs/protocol.md#crl-download",
    good=lambda: [talk(ca(), crl(), csr(), issued(), catalog(), report())],
    bad=lambda: [talk(ca(), crl(status=403)), talk(ca(), crl(status=401))],
    also=("B01", "S17"),
)
def crl_denied(case: ExchangeCase) -> Iterator[Statement]:
    """The master forbids the download of the CRL. A new agent has no certificate yet to authenticate with, and stops;
    an agent that only refreshes its CRL keeps the old one until that expires."""
    if case.status not in (401, 403):
        return
    if case.exchange.request.header("if-modified-since"):
        yield Statement(
            f"the master refuses the CRL with {case.status}: the agent keeps its current one", severity=Severity.WARNING
        )
    elif case.exchange.agent.peer_chain:
        yield Statement(f"the master refuses the CRL with {case.status}: the agent stops")
    else:
        yield Statement(
            f"the master refuses the CRL with {case.status} to an agent that has no certificate yet: it stops"
        )
