from inspector.rules.kit import *


@rule(
    "T16",
    Severity.ERROR,
    title="client claims an identity in headers",
    fix=(
        advice("find out who sends them: on a node it is an attack or a script"),
        advice("let the agents reach the proxy directly", only_if="there is a TLS terminator in front of this proxy"),
        advice("remove such headers at the edge", only_if="`allow-header-cert-info` is set on the master"),
    ),
    source="docs/protocol.md#identity-in-headers; "
    "puppetserver 7.9.5 src/clj/puppetlabs/services/request_handler/request_handler_core.clj",
    good=lambda: [talk(catalog(), report())],
    bad=lambda: [talk(altered(catalog(), stripped=("X-Client-Verify", "X-Client-DN")), report())],
)
def identity_claimed(case: ExchangeCase) -> Iterator[Statement]:
    """The request contains headers with which a TLS terminator reports the client's identity to the master. Agents
    never send them: a client is trying to impersonate another node, or there is a TLS terminator in front of this
    proxy. The proxy did not pass the headers on."""
    if case.exchange.stripped:
        yield Statement(
            f"the client sent {some(list(case.exchange.stripped))}; the proxy removed it",
            at=(
                places.tls("removed before the master: X"),
                places.request_header(case, case.exchange.stripped[0].lower()),
            ),
        )
