"""B15."""

from collections.abc import Iterator

from inspector.model import Severity, Visible
from inspector.protocol import documents as d
from inspector.protocol.kinds import Kind
from inspector.rules import ExchangeCase, On, Statement, places, rule
from inspector.rules.words import brief, utc
from inspector.runs.examples import ca, catalog, crl, csr, issued, report, talk, together


@rule(
    "B15",
    Severity.ERROR,
    On.EXCHANGE,
    at=(Kind.CRL,),
    otherwise="notice if it is newer, but lacks serial numbers",
    visible=Visible.WIRE,
    title="CRL older than the one before",
    remedy="On the CA check the number and dates of each CRL: {crls}. Restore the newer one from the CA's backup. "
    "With several masters: copy the CA's CRL to each.",
    source="docs/protocol.md#crls; RFC 5280 section 5.2.3",
    good=lambda: [
        together(
            talk(ca(), crl(number=4, revoked=[7]), csr(), issued(), catalog(), report()),
            talk(
                ca(),
                crl(number=5, revoked=[7, 8]),
                csr(),
                issued(),
                catalog(),
                report(),
                certname="node2.example",
                address="192.0.2.8",
                after=60,
            ),
        ),
    ],
    bad=lambda: [
        together(
            talk(ca(), crl(number=5, revoked=[7, 8])),
            talk(ca(), crl(number=4, revoked=[7]), address="192.0.2.8", after=60),
        ),
    ],
    also=("B01",),
)
def crl_older(case: ExchangeCase) -> Iterator[Statement]:
    """The master serves an older CRL of a CA than before: it was restored from a backup, one of several masters has an
    old copy, or an attacker replays an old one so that a revoked certificate is accepted again."""
    lists = case.step.response
    if not isinstance(lists, d.RevocationLists):
        return
    newest: dict[tuple[str, str | None], d.RevocationList] = {}
    for each in sorted(lists.crls, key=lambda crl: crl.last_update):
        newest[each.issuer, each.authority_key_identifier] = each
    for each in newest.values():
        before = case.ledger.list_of(each)
        if before is None:
            continue
        proof, what = (before.seq, case.exchange.seq), f"the CRL issued by '{brief(each.issuer)}'"
        numbers = each.number is not None and before.number is not None
        if numbers and (each.number or 0) < (before.number or 0):
            yield Statement(
                f"{what} has the number {each.number}, but had {before.number} on {utc(before.time)}",
                proof,
                at=(places.crl(f"number: {each.number}"), places.crl(f"number: {before.number}")),
            )
        elif each.last_update < before.last_update:
            yield Statement(
                f"{what} is from {utc(each.last_update)}, but one from {utc(before.last_update)} was served before",
                proof,
                at=(places.crl(utc(each.last_update)), places.crl(utc(before.last_update))),
            )
        elif gone := len(before.revoked.difference(each.revoked)):
            yield Statement(
                f"{what} has {gone} fewer serial numbers than on {utc(before.time)}",
                proof,
                severity=Severity.NOTICE,
                at=places.crl("serial numbers"),
            )
