"""B02."""

from collections.abc import Iterator

from inspector.model import Severity, Visible
from inspector.rules import On, RunCase, Statement, places, rule
from inspector.rules.words import utc
from inspector.runs.examples import ca, catalog, crl, csr, issued, report, talk, wait


@rule(
    "B02",
    Severity.WARNING,
    On.RUN_END,
    visible=Visible.CONSEQUENCE,
    title="CA downloaded again by a node that already had it",
    remedy="On the node check which ssldir is used: `puppet config print ssldir --section agent`, as the user that "
    "runs the agent. If the disk was reset: {enrol}.",
    source="docs/protocol.md#ca-download",
    good=lambda: [
        talk(
            ca(),
            crl(),
            csr(),
            issued(),
            catalog(),
            report(),
            wait(1800),
            ca(refresh=True),
            catalog(uuid="a-2"),
            report(uuid="a-2"),
        ),
    ],
    bad=lambda: [talk(catalog(), report(), wait(1800), ca(), crl(), catalog(uuid="a-2"), report(uuid="a-2"))],
    also=("B01",),
)
def ca_fetched_again(case: RunCase) -> Iterator[Statement]:
    """This node presented its certificate in an earlier run, so it had the CA. Now it downloads the CA like a new node:
    its ssldir was lost, emptied or restored, or the agent runs as another user, with a separate ssldir. The download is
    not verified: the node trusts any CA it receives."""
    run = case.run
    before = case.ledger.known(run.certname).first_presented
    if run.tool or before is None or not run.seqs or before[0] >= run.seqs[0]:
        return
    fresh = next((each for each in run.cas if each.status == 200 and not each.refresh), None)
    if fresh:
        yield Statement(
            f"{run.certname} downloads the CA like a new node, but presented its certificate on {utc(before[1])}",
            (before[0], fresh.seq),
            at=(places.certificate("signed by"), places.tls("presented by the agent")),
        )
