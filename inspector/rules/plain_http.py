"""T15."""

from collections.abc import Iterator

from inspector.model import Severity, Visible
from inspector.rules import Case, On, Said, rule
from inspector.runs.examples import altered, catalog, report, talk, unanswered

_CLEAR = {"secured": None, "tls_version": None, "cipher": None, "sni": None, "peer_chain": (), "own_chain": ()}


@rule(
    "T15",
    Severity.ERROR,
    On.EXCHANGE,
    otherwise="notice for requests that are none of Puppet's",
    visible=Visible.WIRE,
    title="request in clear, without TLS",
    remedy="Find out who makes http:// requests to the master's port: a proxy or load balancer that ends TLS and "
    "goes on in clear, or a script. Agents speak TLS only.",
    source="docs/protocol.md#tls-versions-and-ciphers",
    good=lambda: [talk(catalog(), report())],
    bad=lambda: [
        talk(altered(unanswered(catalog()), leg=_CLEAR)),
    ],
    also=("S23", "R22"),
)
def plain_http(case: Case) -> Iterator[Said]:
    """A request came without TLS. A master does not answer that, and what it carries (facts, catalogs, reports) could
    be read by everybody on the way. Agents never do this; something in between does, or a health check that was set
    up for http."""
    leg = case.exchange.agent
    if leg.secured is not None or leg.tls_version is not None or leg.connected is None or leg.peer_chain:
        return
    if case.endpoint:
        yield Said(f"{case.endpoint} was asked for in clear, without TLS")
    else:
        yield Said("a request came in clear, without TLS; it is none of Puppet's", severity=Severity.NOTICE)
