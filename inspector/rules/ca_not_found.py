from inspector.rules.kit import *


@rule(
    "B06",
    Severity.ERROR,
    at=(Kind.CA_BUNDLE,),
    refused=True,
    otherwise="warning for an agent that only refreshes its CA",
    title="the master has no CA",
    fix=(
        on_node("point the agent to the CA", "puppet config set ca_server <host> --section agent"),
        on_master(
            "set `ca = true` in its puppet.conf, and look for ca_crt.pem in its cadir",
            only_if="this master is meant to be the CA",
        ),
    ),
    source="docs/protocol.md#ca-download; puppet 7.23.0 lib/puppet/ssl/state_machine.rb",
    explains=("B43",),
    good=lambda: [talk(ca(), crl(), csr(), issued(), catalog(), report())],
    bad=lambda: [talk(ca(status=404)), talk(ca(status=404), version="3.8.7")],
)
def ca_not_found(case: ExchangeCase) -> Iterator[Statement]:
    """The master answered 404 for the CA: it is a compiler without a CA service, or its CA was never set up. A new
    agent stops here. An agent that only refreshes its CA continues with the one it has."""
    if case.status != 404 or case.run.tool or NO_ENVIRONMENT in case.answer:  # a tool's request, R09
        return
    refreshes = case.exchange.request.header("if-modified-since")
    then = "keeps its current one" if refreshes else "stops with 'CA certificate is missing from the server'"
    yield Statement(
        f"the master serves no CA certificate: the agent {then}", severity=Severity.WARNING if refreshes else None
    )
