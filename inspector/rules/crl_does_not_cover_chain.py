from collections.abc import Sequence

from inspector.rules.kit import *


@rule(
    "B13",
    Severity.ERROR,
    otherwise="notice if the agent continued (certificate_revocation=leaf)",
    title="CRL bundle does not cover the CA chain",
    fix=(group("missing_crl"),),
    source="docs/protocol.md#revocation-modes; puppet 7.23.0 lib/puppet/ssl/ssl_provider.rb",
    explains=NO_TRUST,
    good=lambda: [talk(ca(), crl(), csr(), issued(), catalog(), report())],
    bad=lambda: [talk(ca(), crl(complete=False))],
)
def crl_does_not_cover_chain(case: RunCase) -> Iterator[Statement]:
    """By default agents check the whole chain: for each CA in the bundle they need a CRL issued by that CA. If one is
    missing they refuse the master and send the alert unknown_ca, which looks like a wrong CA. An agent that continues
    anyway checks only the leaf certificate (certificate_revocation=leaf)."""
    run = case.run
    crl_bundle = next((crl_answer for crl_answer in reversed(run.crls) if crl_answer.items), None)
    if crl_bundle is None:
        return
    issuers = {item.issuer for item in crl_bundle.items or []}
    seq, certificates = _bundle(case, issuers)
    missing = [cert.subject for cert in certificates if cert.is_ca and cert.subject not in issuers]
    went_on = any(request.seq > crl_bundle.seq for request in run.anonymous) or run.authenticated
    then = "; the agent continued: it does not check the whole chain" if went_on else ""
    for subject in missing:
        yield Statement(
            f"the CRL issued by '{subject}' is missing from the bundle{then}",
            (seq, crl_bundle.seq),
            severity=Severity.NOTICE if went_on else None,
            at=(places.certificate(subject), places.crl("CRL of")),
        )


def _bundle(case: RunCase, issuers: set[str]) -> tuple[int, Sequence[d.Certificate]]:
    """Return the agent's CA bundle and the record that shows it. An agent that has its bundle already downloads only
    CRLs: then it is the last one that any agent downloaded with one of their issuers."""
    for answer in reversed(case.run.cas):
        if answer.items:
            return answer.seq, answer.items
    known = sorted(case.ledger.bundles.values(), key=lambda bundle: bundle.seq, reverse=True)
    for bundle in known:
        if issuers.intersection(certificate.subject for certificate in bundle.certificates):
            return bundle.seq, bundle.certificates
    return 0, ()
