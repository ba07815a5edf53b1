from inspector.rules.kit import *


@rule(
    "B01",
    Severity.WARNING,
    at=(Kind.CA_BUNDLE,),
    title="CA fetched over an unverified connection",
    fix=(
        on_node("put the CA bundle there before its first run, as ssldir/certs/ca.pem"),
        on_node(
            "or pin it",
            "puppet config set ca_fingerprint <SHA-256 of the PEM file> --section agent",
            only_if="the agent is of version 6 or later",
        ),
    ),
    source="docs/protocol.md#ca-download; docs/protocol.md#verification-by-request; "
    "puppet 7.23.0 lib/puppet/ssl/state_machine.rb",
    good=lambda: [talk(catalog(), report()), talk(ca(refresh=True), catalog(), report())],
    bad=lambda: [talk(ca(), catalog(), report())],
)
def ca_fetched_unverified(case: ExchangeCase) -> Iterator[Statement]:
    """A node without ca.pem downloads it without verifying the server, and trusts it from then on. An attacker on the
    network at that moment can become the node's CA. Puppet bootstraps this way by default; a site can choose another
    way."""
    if case.kind is not Kind.CA_BUNDLE or case.status != 200 or case.exchange.agent.peer_chain:
        return
    if case.exchange.request.header("if-modified-since") is None:
        yield Statement(
            "the CA bundle was downloaded without verifying the server", at=places.tls("presented by the agent")
        )
