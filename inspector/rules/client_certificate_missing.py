from inspector.rules.kit import *


@rule(
    "T03",
    Severity.ERROR,
    refused=True,
    title="no client certificate where one is required",
    fix=(
        on_node("complete its bootstrap", "puppet ssl bootstrap", only_if="the agent is of version 6 or later"),
        on_node("complete its bootstrap", "puppet agent -t", only_if="the agent is of version 5 or earlier"),
        advice("let it pass on the agent's identity", only_if="a device between agent and master terminates TLS"),
    ),
    source="docs/protocol.md#default-rules; puppetserver 7.9.5 ezbake/config/conf.d/auth.conf",
    explains=("S02", "T04"),
    without_catalog=NO_CATALOG_NO_REPORT,
    good=lambda: [talk(catalog(), report())],
    bad=lambda: [talk(catalog(status=403), report(status=403), certificate=False)],
)
def client_certificate_missing(case: ExchangeCase) -> Iterator[Statement]:
    """Requests of a run are authorised by the certname in the client certificate. Without a certificate the master
    answers 403: the bootstrap was not completed, the client is a tool without a certificate, or a device in between
    removed it."""
    match, certified = case.step.match, case.exchange.agent.peer_chain
    if match and match.endpoint.phase in AFTER_BOOTSTRAP and case.status in (401, 403) and not certified:
        yield Statement(
            f"{match.endpoint.name} was requested without a client certificate and refused with {case.status}",
            at=places.tls("presented by the agent"),
        )
