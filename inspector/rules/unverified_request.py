from functools import lru_cache

from inspector.protocol import x509
from inspector.rules.kit import *


@rule(
    "B03",
    Severity.ERROR,
    otherwise="warning for the bootstrap of agents up to 6.3",
    visible=Visible.CONSEQUENCE,
    title="request over an unverified connection",
    fix=(
        on_node(
            "upgrade the agent, or bootstrap over a network you trust",
            only_if="the agent is of version 6.3 or earlier (its bootstrap verifies nothing)",
        ),
        on_node("look for a custom HTTP client", only_if="it is later (it verifies everything after the CA download)"),
    ),
    source="docs/protocol.md#verification-by-request; docs/protocol.md#bootstrap-of-60-to-63; "
    "puppet 5.5.22 lib/puppet/ssl/host.rb; puppet 7.23.0 lib/puppet/ssl/state_machine.rb",
    good=lambda: [talk(ca(), crl(), csr(), issued(), catalog(), report()), talk(catalog(), report(), version="5.5.22")],
    bad=lambda: [
        talk(ca(), csr(), issued(), catalog(), report(), version="5.5.22"),
        talk(ca(), crl(), csr(), issued(), catalog(), report(), shown="foreign"),
    ],
    also=("B45",),
)
def unverified_request(case: ExchangeCase) -> Iterator[Statement]:
    """The agent sent a request without verifying the server. Agents up to 6.3 do so during their whole bootstrap. Later
    agents verify every request after the CA download. One that continues although the presented certificate does not
    match its CA bundle, or the name it connected to, does not verify."""
    exchange, run = case.exchange, case.run
    phase = case.step.match.endpoint.phase if case.step.match else Phase.OTHER
    if phase is Phase.OTHER or case.kind is Kind.CA_BUNDLE:
        return
    probed = exchange.agent.probed
    if run.old_engine and not (probed and exchange.agent.peer_chain):
        if phase is Phase.CERTIFICATES and not exchange.agent.peer_chain:
            yield Statement(
                "the agent bootstraps without verifying the server, as all agents up to 6.3 do",
                severity=Severity.WARNING,
                at=places.tls("presented to the agent"),
            )
        return
    if probed:
        yield Statement(
            "the agent continued despite the certificate of the verification probe, which it must not trust",
            at=places.tls("presented to the agent"),
        )
        return
    chain, sni = exchange.agent.own_chain, exchange.agent.sni
    if not run.cas or not chain or exchange.agent.for_one_run:
        return
    trusted = [item for bundle in run.cas for item in bundle.items or [] if bundle.seq < exchange.seq]
    if not trusted or run.major < (6, 4):
        return
    # The agent verifies when it connects, so that moment counts for every request on the connection.
    verified = exchange.agent.secured or exchange.time
    problem = _problem(chain, tuple(cert.der for cert in trusted), verified, sni)
    if problem:
        yield Statement(problem, at=places.tls("presented to the agent"))


@lru_cache(maxsize=1024)
def _problem(chain: tuple[bytes, ...], trusted: tuple[bytes, ...], time: float, sni: str | None) -> str | None:
    try:
        problems = x509.verify(chain, trusted, [], time, "none")
        leaf = x509.read_der(chain[0])
    except x509.Malformed:
        return None
    if problems:
        return brief(f"the agent continued although the certificate presented to it does not verify: {problems[0]}")
    if sni and not x509.names_match(leaf, sni):
        return f"the agent connected to {brief(sni)} and continued although {brief(leaf.subject)} was presented"
    return None
