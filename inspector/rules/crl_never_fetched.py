from inspector.rules.kit import *


@rule(
    "B07",
    Severity.WARNING,
    visible=Visible.CONSEQUENCE,
    title="CRL never fetched",
    fix=(on_node("let the agent check revocation", "puppet config set certificate_revocation chain --section agent"),),
    source="docs/protocol.md#crl-download; puppet 7.23.0 lib/puppet/ssl/state_machine.rb",
    good=lambda: [talk(ca(), crl(), csr(), issued(), catalog(), report()), talk(catalog(), report())],
    bad=lambda: [talk(ca(), csr(), issued(), catalog(), report())],
    also=("B45",),
)
def crl_never_fetched(case: RunCase) -> Iterator[Statement]:
    """An agent of 6.4 or later downloads the CRLs directly after the CA. This one got its CA and its certificate and
    started its run without them, so it runs with certificate_revocation=false: it would trust a master whose
    certificate was revoked."""
    run = case.run
    if run.old_engine or run.crls or not run.authenticated or run.major < (6, 4):
        return
    first = next((ca_answer for ca_answer in run.cas if ca_answer.status == 200 and not ca_answer.refresh), None)
    if first and run.csrs and run.certificate:
        yield Statement(
            "the agent bootstrapped and ran without ever requesting the CRL",
            (first.seq, run.authenticated),
            at=(places.certificate("signed by"), places.tls("presented by the agent")),
        )
