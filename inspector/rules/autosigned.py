from inspector.rules.kit import *


@rule(
    "B45",
    Severity.NOTICE,
    at=(Kind.CERTIFICATE,),
    title="signed automatically",
    fix=(
        on_ca(
            "see how it decides: `true` signs every request, a list of names every client that chooses such a name",
            "puppet config print autosign --section master",
        ),
        on_ca("let an executable decide: it can check a token in the request", only_if="names alone shall not decide"),
    ),
    instead=at_openvox_ca(
        on_ca(
            "see how it decides: `true` signs every request, a list of names every client that chooses such a name",
            "grep autosign_config /etc/puppet-ca/config.yaml",
        ),
        on_ca("let an executable decide: it can check a token in the request", only_if="names alone shall not decide"),
    ),
    source="docs/protocol.md#autosigning",
    good=lambda: [
        talk(ca(), crl(), csr(), not_issued(), wait(120), csr(status=400, text=SIGNED), issued(), catalog(), report()),
        talk(ca(), crl(), csr(), wait(30), issued(), catalog(), report()),
    ],
    bad=lambda: [talk(ca(), crl(), csr(), issued(), catalog(), report())],
)
def autosigned(case: ExchangeCase, *, within_s: float = 2) -> Iterator[Statement]:
    """The CA signed the request immediately, so no administrator reviewed it. If the CA decides by name only, anyone
    who can reach it gets a certificate for a matching name, and with it that node's catalog."""
    answer, run = case.step.response, case.run
    if not isinstance(answer, d.Certificates):
        return
    key = answer.certificates[0].key
    accepted = next(
        (
            submission
            for submission in run.csrs
            if submission.key == key and submission.status is not None and submission.status < 400
        ),
        None,
    )
    if accepted is None or case.exchange.time - accepted.time > within_s:
        return
    if not any(certificate.status == 404 and certificate.seq > accepted.seq for certificate in run.certificates):
        yield Statement(
            f"the CA signed the request for {case.name} immediately",
            (accepted.seq, case.exchange.seq),
            at=(places.csr(case.name), places.certificate(case.name)),
        )
