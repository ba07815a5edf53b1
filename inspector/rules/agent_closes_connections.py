from inspector.rules.kit import *

_CLOSE = {"Connection": "close"}


@rule(
    "T13",
    Severity.WARNING,
    at=RUN,
    title="the agent closes every connection",
    fix=(
        on_node("see whether a web proxy is set", "puppet config print http_proxy_host --section agent"),
        advice("find out what makes its requests: a report processor or a module with its own HTTP client"),
        on_node("upgrade the agent", only_if="the agent is older than 3.7"),
    ),
    source="docs/protocol.md#the-connection-header",
    good=lambda: [
        talk(catalog(), report()),
        talk(*(altered(part, headers=_CLOSE) for part in (catalog(), report())), version="2.7.26"),
    ],
    bad=lambda: [talk(*(altered(part, headers=_CLOSE) for part in (catalog(), report())))],
)
def agent_closes_connections(case: ExchangeCase) -> Iterator[Statement]:
    """The agent asks the master to close the connection after this answer. No agent since 3.7 does so in a run: another
    program makes the requests, or something changes them on the way. Every new connection costs a TLS handshake."""
    connection = case.exchange.request.header("connection")
    if connection is not None and connection.lower() == "close" and not case.run.tool and case.run.major >= (3, 7):
        yield Statement("the agent sends 'Connection: close' in its run", at=places.request_header(case, "connection"))
