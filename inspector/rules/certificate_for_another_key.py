from inspector.rules.kit import *
from inspector.runs.observations import CertificateAnswer

_LOOK = "/production/certificate_request/node1.example?"


@rule(
    "B23",
    Severity.ERROR,
    title="certificate does not match the agent's key",
    fix=(
        group("enrol", only_if="the node was reinstalled or lost its ssldir"),
        on_node(
            "run the agent as root: another user has another ssldir, and so another key",
            only_if="somebody ran it as another user",
        ),
        advice("give the other host that uses this certname its own", only_if="it is none of these"),
    ),
    source="docs/protocol.md#certificate-download; puppet 3.8.7 lib/puppet/ssl/host.rb; "
    "puppet 5.5.22 lib/puppet/ssl/host.rb; puppet 7.23.0 lib/puppet/ssl/ssl_provider.rb",
    explains=("B02",),
    good=lambda: [
        talk(ca(), crl(), csr(), not_issued(), csr(status=400, text=SIGNED), issued(), catalog(), report()),
        talk(ca(), issued(), crl(), catalog(), report(), version="5.5.22"),
        talk(not_issued(), issued(), version="5.5.22"),
        talk(ca(), not_issued(), csr(), not_issued(), wait(60), ca(), issued(), crl(), catalog(), report(),
             version="5.5.22"),
    ],
    bad=lambda: [
        talk(ca(), crl(), csr(status=400, text=SIGNED), issued(key="other")),
        talk(ca(), issued(), version="5.5.22"),
        talk(ca(), not_issued(), csr(status=400, text=REQUESTED), issued(key="other"), version="3.8.7"),
        talk(ca(), not_issued(), csr(), not_issued(), wait(60), ca(), not_issued(),
             asked(_LOOK, status=200, body=b"", run=False, media="text/plain"), not_issued(), wait(60), issued(),
             version="3.8.7"),
    ],
    also=("B17",),
)  # fmt: skip
def certificate_for_another_key(case: RunCase) -> Iterator[Statement]:
    """The CA served the certificate that it has for this name, and that certificate belongs to a different key than the
    agent's: the node was reinstalled, lost its ssldir, or two hosts share the name. Agents up to version 5 request a
    certificate before they send a signing request, and 2.7 and 3 adopt one that the CA has of an earlier key, so their
    key is not visible in the traffic. There, a new agent receives a certificate that it did not request, and then
    stops."""
    run = case.run
    answers = [certificate for certificate in run.certificates if certificate.certificate]
    if not answers:
        return
    if run.csrs:
        yield from _by_key(case.name, run, answers)
        return
    ca_download = next((ca_answer for ca_answer in run.cas if ca_answer.status == 200 and not ca_answer.refresh), None)
    if run.old_engine and ca_download and not run.authenticated:
        yield Statement(
            f"a fresh agent received the certificate of {case.name} without requesting it and stopped: most "
            "likely it is for another key than the agent's",
            (ca_download.seq, *(answer.seq for answer in answers)),
            at=places.certificate("key: "),
        )


def _by_key(name: str, run: Run, answers: list[CertificateAnswer]) -> Iterator[Statement]:
    for answer in answers:
        request = next(
            (submission for submission in reversed(run.csrs) if submission.seq < answer.seq and submission.key), None
        )
        certificate = answer.certificate
        if request and request.key and certificate and request.key != certificate.key:
            yield Statement(
                f"the certificate of {name} (listed as {certificate.fingerprint[:23]}...) is for the public key "
                f"{certificate.key[:16]}..., the agent's request for {request.key[:16]}...",
                (request.seq, answer.seq),
                at=(places.csr(request.key), places.certificate(certificate.key)),
            )
