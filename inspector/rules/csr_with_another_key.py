from inspector.rules.csr_repeated import WAITS, refused
from inspector.rules.kit import *


@rule(
    "B20",
    Severity.ERROR,
    at=(Kind.CSR,),
    otherwise="notice if the CA accepts the request",
    title="signing request with another key for the same name",
    fix=(
        group("compare"),
        group("enrol", only_if="the node was reinstalled"),
        advice("give one of them its own", only_if="two hosts share the name"),
    ),
    source="docs/protocol.md#keys; docs/protocol.md#checks-of-a-signing-request",
    good=lambda: [
        talk(ca(), crl(), csr(), not_issued(), csr(status=400, text=WAITS), issued(), catalog(), report()),
    ],
    bad=lambda: [
        talk(
            ca(),
            crl(),
            csr(),
            not_issued(),
            ca(),
            crl(),
            csr(key="other", status=400, text=WAITS),
            not_issued(),
        ),
    ],
    also=("B01", "B17"),
)
def csr_with_another_key(case: ExchangeCase) -> Iterator[Statement]:
    """Two requests for one certname contain different public keys. The node lost its key while its first request was
    waiting, two hosts use one name, or someone is trying to get a certificate in another host's name."""
    request, match = case.step.request, case.step.match
    if not isinstance(request, d.CertificateRequest) or not match:
        return
    history = case.ledger.known(case.name)
    others = [entry for key, entry in history.csrs.items() if key != request.key]
    if not others or (history.issued and not refused(case)):
        return
    seqs = (others[-1].last_seq, case.exchange.seq)
    if refused(case):
        yield Statement(f"two keys request a certificate for {match.certname}", seqs, at=places.csr("key: "))
    elif case.status is not None and case.status < 400:
        # The first request was cleaned from the CA, or the CA allows duplicates.
        yield Statement(
            f"{match.certname} requests a certificate with another key than before, and the CA accepts it",
            seqs,
            severity=Severity.NOTICE,
            at=places.csr("key: "),
        )
