"""B10."""

import datetime

from inspector.rules.kit import *


@rule(
    "B10",
    Severity.ERROR,
    On.EXCHANGE,
    at=(Kind.CRL,),
    visible=Visible.WIRE,
    title="CRL expired",
    fix=(group("renew_crl"),),
    source="docs/protocol.md#verification-by-agents; puppet 7.23.0 lib/puppet/ssl/ssl_provider.rb",
    good=lambda: [talk(ca(), crl(), csr(), issued(), catalog(), report())],
    bad=lambda: [talk(ca(), crl(expired=True))],
    also=("B01",),
)
def crl_expired(case: ExchangeCase) -> Iterator[Statement]:
    """The CRL's nextUpdate has passed. An agent that has this CRL refuses every certificate of that CA, first of all
    the master's, and sends the alert certificate_expired, which looks like a different fault."""
    if case.kind is not Kind.CRL or not isinstance(case.step.response, d.RevocationLists):
        return
    for entry in case.step.response.crls:
        if entry.next_update is not None and entry.next_update < case.exchange.ended:
            expiry = datetime.datetime.fromtimestamp(entry.next_update, datetime.UTC)
            yield Statement(
                f"the CRL issued by '{entry.issuer}' expired on {expiry:%Y-%m-%d %H:%M} UTC",
                at=places.crl(f"{expiry:%Y-%m-%d %H:%M} UTC"),
            )
