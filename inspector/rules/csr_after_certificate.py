from inspector.rules.csr_for_signed_name import SIGNED
from inspector.rules.csr_repeated import refused
from inspector.rules.kit import *


@rule(
    "B22",
    Severity.ERROR,
    at=(Kind.CSR,),
    otherwise="notice if the CA accepts the request",
    title="signing request after the certificate was issued",
    fix=(
        group("enrol", only_if="the node was reinstalled or lost its ssldir"),
        advice("give that host a certname of its own", only_if="another host uses this certname"),
    ),
    source="docs/protocol.md#submitting-the-signing-request",
    good=lambda: [
        talk(ca(), crl(), csr(), not_issued(), csr(status=400, text=SIGNED), issued(), catalog(), report()),
    ],
    bad=lambda: [
        talk(ca(), crl(), csr(), issued(), catalog(), report(),
             ca(), crl(), csr(key="other", status=400, text=SIGNED), issued()),
    ],
    also=("B01", "B02", "B18", "B20", "B23", "B45"),
)  # fmt: skip
def csr_after_certificate(case: ExchangeCase) -> Iterator[Statement]:
    """A certificate for this name was downloaded before, and now a signing request for the same name arrives: the node
    lost its disk, or two hosts share the name. If the CA accepts the request, the old certificate was cleaned on the
    CA, and the node is enrolling again."""
    request, match, run = case.step.request, case.step.match, case.run
    if not isinstance(request, d.CertificateRequest) or not match:
        return
    history = case.ledger.known(case.name)
    issued_before = history.issued
    if issued_before is None or (
        not run.certificate and any(certificate.seq == issued_before.seq for certificate in run.certificates)
    ):
        return  # in the same bootstrap: the old certificate does not match the key (B18)
    seq, key = issued_before.seq, issued_before.certificate.key
    used = history.presented is not None and history.presented.certificate.key == key
    if not used and key not in history.csrs:
        return  # nobody is known to have its key: perhaps this agent received it, and discarded it (B18)
    received = any(answer.certificate and answer.certificate.key == request.key for answer in run.certificates)
    if key == request.key and not received:
        return
    seqs = (seq, case.exchange.seq)
    if case.status is not None and case.status < 400:
        yield Statement(
            f"{match.certname} enrols again: the CA accepts a request for a name that had a certificate",
            seqs,
            severity=Severity.NOTICE,
            at=(places.csr("key: "), places.certificate("key: ")),
        )
    elif refused(case):
        yield Statement(
            f"{match.certname} requests a certificate although one was issued before",
            seqs,
            at=(places.csr("key: "), places.certificate("key: ")),
        )
