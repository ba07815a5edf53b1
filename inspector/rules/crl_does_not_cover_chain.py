"""B13."""

from collections.abc import Iterator

from inspector.model import Severity, Visible
from inspector.rules import On, places, rule
from inspector.rules.cases import RunCase, Statement
from inspector.runs.examples import ca, catalog, crl, csr, issued, report, talk


@rule(
    "B13",
    Severity.ERROR,
    On.RUN_END,
    otherwise="notice if the agent continued (certificate_revocation=leaf)",
    visible=Visible.WIRE,
    title="CRL bundle does not cover the CA chain",
    remedy="Add the missing CA's CRL to the bundle that the CA serves (ca_crl.pem), then restart the server. As a "
    "workaround on the agent: `puppet config set certificate_revocation leaf --section agent` (5.3 and later).",
    source="docs/protocol.md#revocation-modes; puppet 7.23.0 lib/puppet/ssl/ssl_provider.rb",
    good=lambda: [talk(ca(), crl(), csr(), issued(), catalog(), report())],
    bad=lambda: [talk(ca(), crl(complete=False))],
    also=("B01",),
)
def crl_does_not_cover_chain(case: RunCase) -> Iterator[Statement]:
    """By default agents check the whole chain: for each CA in the bundle they need a CRL issued by that CA. If one is
    missing they refuse the master and send the alert unknown_ca, which looks like a wrong CA. An agent that continues
    anyway checks only the leaf certificate (certificate_revocation=leaf)."""
    run = case.run
    crl_bundle = next((crl_answer for crl_answer in reversed(run.crls) if crl_answer.items), None)
    bundle = next((ca_answer for ca_answer in reversed(run.cas) if ca_answer.items), None)
    if crl_bundle is None or bundle is None:
        return
    issuers = {item.issuer for item in crl_bundle.items or []}
    missing = [cert.subject for cert in bundle.items or [] if cert.is_ca and cert.subject not in issuers]
    went_on = any(request.seq > crl_bundle.seq for request in run.anonymous) or run.authenticated
    for subject in missing:
        message = f"the CRL issued by '{subject}' is missing from the bundle"
        if went_on:
            yield Statement(
                f"{message}; the agent continued: it does not check the whole chain",
                (bundle.seq, crl_bundle.seq),
                severity=Severity.NOTICE,
                at=(places.certificate(subject), places.crl("CRL of")),
            )
        else:
            yield Statement(
                message, (bundle.seq, crl_bundle.seq), at=(places.certificate(subject), places.crl("CRL of"))
            )
