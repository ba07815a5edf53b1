from inspector.rules import OLD
from inspector.rules.kit import *
from inspector.rules.waiting_for_certificate import BURST

_LOOK = "/puppet-ca/v1/certificate_request/node1.example?environment=production&"


@rule(
    "B40",
    Severity.ERROR,
    generations=OLD,
    otherwise="notice if the agent was already waiting when the capture began",
    visible=Visible.CONSEQUENCE,
    title="agent waits for a certificate without a signing request",
    fix=(
        on_ca("see whether it has a request from this node", "{list}"),
        on_ca("sign it", "{sign}", only_if="it has one"),
        on_node("make a new request: the node still keeps one that the CA lost", "{reset}", only_if="it has none",
                destroys="its key and its certificate"),
        on_ca("sign it, unless it autosigns", "{sign}", only_if="it has none"),
    ),
    source="docs/protocol.md#bootstrap-up-to-5; puppet 5.5.22 lib/puppet/ssl/host.rb",
    good=lambda: [
        talk(ca(), not_issued(), csr(), not_issued(), wait(120), not_issued(), wait(120), not_issued(),
             version="5.5.22"),
        talk(not_issued(), asked(_LOOK, status=200, body=b"", run=False, media="text/plain"), not_issued(),
             not_issued(), wait(120), not_issued(), version="5.5.22"),
    ],
    bad=lambda: [
        talk(ca(), not_issued(), not_issued(), not_issued(), wait(120), not_issued(), wait(120), not_issued(),
             version="5.5.22"),
    ],
    also=("B01", "B03", "B39"),
)  # fmt: skip
def polls_without_csr(case: RunCase) -> Iterator[Statement]:
    """The agent requests its certificate, gets 404, and never sends a signing request: it still has one that it sent
    earlier. If the CA still has that request, it only has to be signed. If the request was cleaned there, agent and CA
    wait for each other forever."""
    run = case.run
    polls = [certificate for certificate in run.certificates if certificate.status == 404]
    if run.tool or run.csrs or run.authenticated or len(polls) < 2 or len(polls) < len(run.certificates):
        return
    if case.ledger.known(run.certname).csrs:
        return  # the request was sent, and may be waiting on the CA
    if any(request.endpoint.kind is Kind.CSR_LOOKUP and request.status == 200 for request in run.anonymous):
        return  # the CA has the request
    complete = run.cas or polls[1].time - polls[0].time <= 2 * BURST
    yield Statement(
        f"requested its certificate {run.certificates.total} times without sending a signing request",
        (polls[0].seq, polls[-1].seq),
        # An agent that was already waiting when the capture began may have sent its request before.
        severity=None if complete else Severity.NOTICE,
        at=places.REQUEST_LINE,
    )
