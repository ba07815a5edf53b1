"""B10, B11 and B12: CRLs outside of their validity, or near its end."""

import datetime

from inspector.rules.clock_skew import clocks_first
from inspector.rules.kit import *


@rule(
    "B10",
    Severity.ERROR,
    at=(Kind.CRL,),
    title="CRL expired",
    fix=(group("renew_crl"),),
    instead=clocks_first,
    source="docs/protocol.md#verification-by-agents; puppet 7.23.0 lib/puppet/ssl/ssl_provider.rb",
    explains=NO_TRUST,
    good=lambda: [talk(ca(), crl(), csr(), issued(), catalog(), report())],
    bad=lambda: [talk(ca(), crl(expired=True))],
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


@rule(
    "B12",
    Severity.ERROR,
    at=(Kind.CRL,),
    title="CRL not yet valid",
    fix=(
        on_ca("see whether its clock is right and set by NTP; the same on the agent", "timedatectl"),
        advice("set the clock that is wrong by NTP", only_if="one is wrong"),
        group("renew_crl", only_if="that of the CA was ahead"),
    ),
    instead=clocks_first,
    source="docs/protocol.md#clocks; puppet 7.23.0 lib/puppet/ssl/verifier.rb",
    explains=NO_TRUST,
    good=lambda: [talk(ca(), crl(starts=240), csr(), issued(), catalog(), report())],
    bad=lambda: [talk(ca(), crl(starts=3600))],
)
def crl_not_yet_valid(case: ExchangeCase, *, skew_s: float = 300) -> Iterator[Statement]:
    """The CRL's lastUpdate is in the future, by more than agents tolerate: the clock of the CA that issued it was
    ahead, or this proxy's clock is behind. Until that time agents refuse every certificate of that CA."""
    answer = case.step.response
    if not isinstance(answer, d.RevocationLists):
        return
    for entry in answer.crls:
        if entry.last_update > case.exchange.ended + skew_s:
            yield (
                Statement(
                    f"the CRL issued by '{brief(entry.issuer)}' is not valid before {utc(entry.last_update)}, "
                    f"it was downloaded on {utc(case.exchange.ended)}",
                    at=places.crl(utc(entry.last_update)),
                )
            )


@rule(
    "B11",
    Severity.WARNING,
    at=(Kind.CRL,),
    title="CRL expires soon",
    fix=(group("renew_crl"),),
    instead=clocks_first,
    source="docs/protocol.md#crls",
    good=lambda: [
        talk(ca(), crl(), csr(), issued(), catalog(), report()),
        talk(ca(), crl(ends=31 * 86400), csr(), issued(), catalog(), report()),
        talk(ca(), crl(starts=-86400, ends=6 * 86400), csr(), issued(), catalog(), report()),
    ],
    bad=lambda: [talk(ca(), crl(starts=-1000 * 86400, ends=29 * 86400))],
)
def crl_ends_soon(case: ExchangeCase, *, days: float = 30) -> Iterator[Statement]:
    """The CRL's nextUpdate is near. Once it has passed, agents that have this CRL refuse every certificate of that CA,
    first of all the master's. A CRL with a short lifetime is meant to be renewed often: it is reported when a tenth of
    its lifetime is left."""
    answer = case.step.response
    if not isinstance(answer, d.RevocationLists):
        return
    received = case.exchange.ended
    for entry in answer.crls:
        if entry.next_update is None or entry.next_update < received:
            continue
        if entry.next_update - received < min(days * DAY, (entry.next_update - entry.last_update) / 10):
            yield Statement(
                f"the CRL issued by '{brief(entry.issuer)}' expires on {utc(entry.next_update)}",
                at=places.crl(utc(entry.next_update)),
            )
