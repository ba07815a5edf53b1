from inspector.rules.kit import *


@rule(
    "B02",
    Severity.WARNING,
    visible=Visible.CONSEQUENCE,
    title="CA downloaded again by a node that already had it",
    fix=(
        on_node("see which ssldir is used, as the user that runs the agent",
                "puppet config print ssldir --section agent"),
        group("enrol", only_if="the disk was reset"),
    ),
    source="docs/protocol.md#ca-download",
    good=lambda: [
        talk(ca(), crl(), csr(), issued(), catalog(), report(),
             wait(1800), ca(refresh=True), catalog(uuid="a-2"), report(uuid="a-2")),
    ],
    bad=lambda: [talk(catalog(), report(), wait(1800), ca(), crl(), catalog(uuid="a-2"), report(uuid="a-2"))],
    also=("B01",),
)  # fmt: skip
def ca_fetched_again(case: RunCase) -> Iterator[Statement]:
    """This node presented its certificate in an earlier run, so it had the CA. Now it downloads the CA like a new node:
    its ssldir was lost, emptied or restored, or the agent runs as another user, with a separate ssldir. The download is
    not verified: the node trusts any CA it receives."""
    run = case.run
    presented = case.ledger.known(run.certname).first_presented
    if run.tool or presented is None or not run.seqs or presented[0] >= run.seqs[0]:
        return
    download = next((ca_answer for ca_answer in run.cas if ca_answer.status == 200 and not ca_answer.refresh), None)
    if download:
        yield Statement(
            f"{run.certname} downloads the CA like a new node, but presented its certificate on {utc(presented[1])}",
            (presented[0], download.seq),
            at=(places.certificate("signed by"), places.tls("presented by the agent")),
        )
