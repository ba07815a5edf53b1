from inspector.rules.kit import *

_CLEAR = {"secured": None, "tls_version": None, "cipher": None, "sni": None, "peer_chain": (), "own_chain": ()}


@rule(
    "T15",
    Severity.ERROR,
    opening=True,
    otherwise="notice for requests other than Puppet's",
    title="request in plain text, without TLS",
    fix=(
        advice(
            "find out what sends http:// requests to the master's port: a proxy or load balancer that terminates TLS "
            "and forwards in plain text, a health check, or a script"
        ),
    ),
    source="docs/protocol.md#tls-versions-and-ciphers",
    explains=("T28",),
    good=lambda: [talk(catalog(), report())],
    bad=lambda: [talk(altered(unanswered(catalog()), leg=_CLEAR))],
    also=("R22",),
)
def plain_http(case: ExchangeCase) -> Iterator[Statement]:
    """A request came without TLS. A master does not answer it, and its contents (facts, catalogs, reports) could be
    read by everyone on the network path. Agents never send it; a device in between does, or a health check that was
    configured for http."""
    leg = case.exchange.agent
    if case.kind is Kind.CONNECTION:
        return  # to an HTTP proxy, before TLS
    if leg.secured is not None or leg.tls_version is not None or leg.connected is None or leg.peer_chain:
        return
    what = f"{case.endpoint} was requested" if case.endpoint else "a request that is not Puppet's came"
    yield Statement(
        f"{what} in plain text, without TLS",
        severity=None if case.endpoint else Severity.NOTICE,
        at=places.tls("handshake: none"),
    )
