from inspector.rules.kit import *


@rule(
    "B16",
    Severity.NOTICE,
    at=(Kind.CRL,),
    title="large or slow CRL",
    fix=(
        on_ca(
            "serve a CRL with only the certificates of the infrastructure: `enable-infra-crl: true` in ca.conf",
            only_if="the CA is a puppetserver of version 6 or later",
        ),
        on_ca(
            "upgrade it to version 8, which drops expired serial numbers by itself",
            only_if="it is older than version 8",
        ),
    ),
    source="docs/protocol.md#crls",
    good=lambda: [talk(ca(), crl(), csr(), issued(), catalog(), report())],
    bad=lambda: [talk(ca(), slow(crl(), 30))],
)
def crl_large(case: ExchangeCase, *, megabytes: float = 5, seconds: float = 10) -> Iterator[Statement]:
    """Agents download every CRL completely, and load it for each connection. A large one slows down the bootstrap of
    each node and the handshakes of all nodes."""
    exchange, response = case.exchange, case.exchange.response
    if response is None or response.status != 200:
        return
    if response.size > megabytes * 1e6:
        yield Statement(
            f"the CRL takes more than {megabytes:g} MB on the network",
            at=places.response_header(case, "content-length"),
        )
    if exchange.ended - (exchange.request.started or exchange.ended) > seconds:
        yield Statement(
            f"the download of the CRL took more than {seconds:g} s", at=places.timing("receiving the response")
        )
