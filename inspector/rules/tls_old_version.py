from inspector.rules.kit import *

OLD = {"SSLv2": "SSL 2", "SSLv3": "SSL 3", "TLSv1": "TLS 1.0", "TLSv1.0": "TLS 1.0", "TLSv1.1": "TLS 1.1"}


@rule(
    "T01",
    Severity.ERROR,
    opening=True,
    otherwise="warning for agents up to version 3",
    title="TLS older than 1.2",
    fix=(
        on_node("upgrade the agent, or its Ruby and OpenSSL", only_if="the agent is the limit"),
        on_master(
            "allow newer versions: `ssl-protocols: [TLSv1.2, TLSv1.3]` in webserver.conf (up to version 4: SSLProtocol "
            "in its web server)",
            only_if="the master is",
        ),
    ),
    source="docs/protocol.md#tls-versions-and-ciphers; RFC 8996 section 4; RFC 8996 section 5",
    good=lambda: [talk(*(altered(part, leg={"tls_version": "TLSv1.2"}) for part in (catalog(), report())))],
    bad=lambda: [
        talk(*(altered(part, leg={"tls_version": "TLSv1"}) for part in (catalog(), report()))),
        talk(*(altered(part, leg={"tls_version": "TLSv1.1"}) for part in (catalog(), report())), version="3.8.7"),
    ],
)
def tls_old_version(case: ExchangeCase) -> Iterator[Statement]:
    """Two ends could agree on nothing better than a TLS version that has been forbidden since 2021 and that current
    OpenSSL and Java refuse. The proxy itself offers all versions up to 1.3, so the limit is the other end's. Agents of
    2.7 and 3.x on old systems support nothing newer."""
    exchange = case.exchange
    master = exchange.master.tls_version if exchange.master else None
    if exchange.agent.tls_version in OLD:
        severity = Severity.WARNING if case.run.dialect == "legacy" else Severity.ERROR
        yield Statement(
            f"the agent uses {OLD[exchange.agent.tls_version]}",
            severity=severity,
            at=places.tls(f"version: {exchange.agent.tls_version}"),
        )
    if master in OLD:
        yield Statement(f"the master uses {OLD[master]}", at=places.tls(f"version: {master}"))
