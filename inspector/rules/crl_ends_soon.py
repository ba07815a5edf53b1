from inspector.rules.kit import *


@rule(
    "B11",
    Severity.WARNING,
    at=(Kind.CRL,),
    title="CRL expires soon",
    fix=(group("renew_crl"),),
    source="docs/protocol.md#crls",
    good=lambda: [
        talk(ca(), crl(), csr(), issued(), catalog(), report()),
        talk(ca(), crl(ends=31 * 86400), csr(), issued(), catalog(), report()),
        talk(ca(), crl(starts=-86400, ends=6 * 86400), csr(), issued(), catalog(), report()),
    ],
    bad=lambda: [talk(ca(), crl(starts=-1000 * 86400, ends=29 * 86400))],
    also=("B01",),
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
