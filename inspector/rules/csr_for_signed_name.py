from inspector.rules.kit import *

SIGNED = "already has a signed certificate"


@rule(
    "B18",
    Severity.ERROR,
    title="signing request for a name that has a certificate",
    fix=(
        group("enrol", only_if="the node was reinstalled or lost its ssldir"),
        advice("give that host a certname of its own", only_if="another host uses this certname"),
    ),
    source="docs/protocol.md#checks-of-a-signing-request; "
    "puppetserver 7.9.5 src/clj/puppetlabs/puppetserver/certificate_authority.clj",
    good=lambda: [
        talk(ca(), crl(), csr(), not_issued(), csr(status=400, text=SIGNED), issued(), catalog(), report()),
        talk(ca(), crl(), csr(), not_issued(), csr(status=400, text=SIGNED)),
    ],
    bad=lambda: [talk(ca(), crl(), csr(status=400, text=SIGNED), issued(key="other"))],
    also=("B01", "B23"),
)
def csr_for_signed_name(case: RunCase) -> Iterator[Statement]:
    """The CA already has a certificate for this name and refuses the request. If it was signed a moment ago for this
    same key, the download that follows succeeds and nothing is wrong. Otherwise the node's key differs from the key in
    the certificate: the node lost its key, or two hosts use the name."""
    run = case.run
    for at, submission in enumerate(run.csrs):
        if SIGNED not in submission.text:
            continue
        answers = [answer for answer in run.certificates if answer.seq > submission.seq and answer.certificate]
        if any(answer.certificate and answer.certificate.key == submission.key for answer in answers):
            continue
        seqs = (submission.seq, *(answer.seq for answer in answers[:1]))
        if answers:
            yield Statement(
                "the CA has a certificate for this name, made for another key than the agent's",
                seqs,
                at=(places.csr("key: "), places.certificate("key: ")),
            )
        elif not any(earlier.key == submission.key and earlier.status == 200 for earlier in run.csrs[:at]):
            # Else it is the agent's own request that was signed meanwhile, and it is about to download the certificate.
            yield Statement(
                "the CA has a certificate for this name and refuses the agent's request",
                seqs,
                at=(places.csr("key: "), places.certificate("key: ")),
            )
