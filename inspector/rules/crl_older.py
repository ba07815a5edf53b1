from inspector.rules.kit import *
from inspector.runs.servers import name_of


@rule(
    "B15",
    Severity.ERROR,
    at=(Kind.CRL,),
    otherwise="notice if it is newer, but lacks serial numbers",
    title="CRL older than the one before",
    fix=(
        on_ca("look at the number and the dates of each CRL", "{crls}"),
        on_ca("restore the newer one from a backup: pass its file to the same command with `--add`"),
        on_master("copy the CA's CRL to each", only_if="there are several masters"),
    ),
    source="docs/protocol.md#crls; RFC 5280 section 5.2.3",
    good=lambda: [
        together(talk(ca(), crl(number=4, revoked=[7]), csr(), issued(), catalog(), report()),
                 talk(ca(), crl(number=5, revoked=[7, 8]), csr(), issued(), catalog(), report(),
                      certname="node2.example", address="192.0.2.8", after=60)),
    ],
    bad=lambda: [
        together(talk(ca(), crl(number=5, revoked=[7, 8])),
                 talk(ca(), crl(number=4, revoked=[7]), address="192.0.2.8", after=60)),
    ],
)  # fmt: skip
def crl_older(case: ExchangeCase) -> Iterator[Statement]:
    """The master serves an older CRL of a CA than before: it was restored from a backup, one of several masters has an
    old copy, or an attacker replays an old one so that a revoked certificate is accepted again."""
    answer = case.step.response
    if not isinstance(answer, d.RevocationLists):
        return
    newest: dict[tuple[str, str | None], d.RevocationList] = {}
    for entry in sorted(answer.crls, key=lambda entry: entry.last_update):
        newest[entry.issuer, entry.authority_key_identifier] = entry
    for entry in newest.values():
        previous = case.ledger.list_of(entry)
        if previous is None:
            continue
        seqs, subject = (previous.seq, case.exchange.seq), f"the CRL issued by '{brief(entry.issuer)}'"
        server = name_of(case.exchange.master) if case.exchange.master else ""
        if server != previous.server and server and previous.server:
            subject = f"{subject} that {server} serves, and {previous.server} did before,"
        numbers = entry.number is not None and previous.number is not None
        if numbers and (entry.number or 0) < (previous.number or 0):
            yield Statement(
                f"{subject} has the number {entry.number}, but had {previous.number} on {utc(previous.time)}",
                seqs,
                at=(places.crl(f"number: {entry.number}"), places.crl(f"number: {previous.number}")),
            )
        elif entry.last_update < previous.last_update:
            yield Statement(
                f"{subject} is from {utc(entry.last_update)}, "
                f"but one from {utc(previous.last_update)} was served before",
                seqs,
                at=(places.crl(utc(entry.last_update)), places.crl(utc(previous.last_update))),
            )
        elif fewer := len(previous.revoked.difference(entry.revoked)):
            yield Statement(
                f"{subject} has {fewer} fewer serial numbers than on {utc(previous.time)}",
                seqs,
                severity=Severity.NOTICE,
                at=places.crl("serial numbers"),
            )
