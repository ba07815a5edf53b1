"""B39 to B42: agents that wait for their certificate."""

from inspector.clocks import HOUR
from inspector.rules.kit import *
from inspector.runs.observations import START_BURST


@rule(
    "B39",
    Severity.NOTICE,
    title="agent waits for its certificate",
    fix=(group("signing"),),
    source="docs/protocol.md#waiting-for-the-certificate; docs/protocol.md#submitting-the-signing-request",
    explains=("B41",),
    good=lambda: [
        talk(ca(), crl(), csr(), issued(), catalog(), report()),
        talk(ca(), not_issued(), csr(), not_issued(), not_issued(), not_issued(), version="5.5.22"),
    ],
    bad=lambda: [
        talk(ca(), crl(), csr(), not_issued(), *[wait(119), csr(status=400, text=REQUESTED), not_issued()] * 3),
        talk(ca(), csr(), not_issued(), *[wait(120), not_issued()] * 3, version="5.5.22"),
    ],
)
def waiting_for_certificate(case: RunCase) -> Iterator[Statement]:
    """The CA has the node's request and it is not signed yet, so the agent requests its certificate again and again.
    The agent behaves correctly; the request has to be signed, unless there is a reason not to."""
    run, waits = case.run, case.run.polling
    if waits is None:
        return
    text = f"requested its certificate {waits.times} times over {lasting(waits.last - waits.first)}, every "
    text += lasting(waits.interval)
    if run.csrs:
        text += f"; its request was first sent on {utc(run.csrs[0].time)}"
    text += ", then it was signed" if run.certificate else ", it is not signed yet" if run.csrs else ""
    yield Statement(text, waits.seqs, at=places.REQUEST_LINE)


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
    explains=("B39", "B41", "B42"),
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
    complete = run.cas or polls[1].time - polls[0].time <= 2 * START_BURST
    yield Statement(
        f"requested its certificate {run.certificates.total} times without sending a signing request",
        (polls[0].seq, polls[-1].seq),
        # An agent that was already waiting when the capture began may have sent its request before.
        severity=None if complete else Severity.NOTICE,
        at=places.REQUEST_LINE,
    )


@rule(
    "B41",
    Severity.NOTICE,
    title="waitforcert interval differs from Puppet's default",
    fix=(
        on_node(
            "set the default",
            "puppet config set waitforcert 2m --section agent",
            only_if="the interval was not chosen on purpose",
        ),
    ),
    source="docs/protocol.md#waiting-for-the-certificate; docs/protocol.md#default-settings",
    good=lambda: [
        talk(ca(), crl(), csr(), not_issued(), *[wait(119), csr(status=400, text=REQUESTED), not_issued()] * 3)
    ],
    bad=lambda: [
        talk(ca(), crl(), csr(), not_issued(), *[wait(9), csr(status=400, text=REQUESTED), not_issued()] * 3),
        talk(ca(), csr(), not_issued(), *[wait(600), not_issued()] * 3, version="5.5.22"),
    ],
)
def polling_interval(case: RunCase, *, expected_s: float = 120, tolerance: float = 0.1) -> Iterator[Statement]:
    """An agent that is waiting for its certificate requests it again after waitforcert. A much shorter interval keeps
    the CA busy; a much longer one leaves a signed node idle. If the site chose another interval on purpose, set the
    rule's threshold to it."""
    waits = case.run.polling
    if waits and abs(waits.interval - expected_s) > tolerance * expected_s:
        yield Statement(
            f"the agent requests its certificate every {lasting(waits.interval)}, not every {lasting(expected_s)}",
            waits.seqs,
            at=places.REQUEST_LINE,
        )


@rule(
    "B42",
    Severity.WARNING,
    at=(Kind.CERTIFICATE,),
    refused=True,
    title="signing request unsigned for a long time",
    fix=(
        on_node("stop its agent", only_if="the node should get no certificate"),
        group("signing", only_if="it should get one"),
        on_node(
            "let agents give up by themselves",
            "puppet config set maxwaitforcert 1h --section agent",
            only_if="the agents are of version 6 or later",
        ),
    ),
    source="docs/protocol.md#waiting-for-the-certificate; docs/protocol.md#default-settings",
    explains=("B17", "B39", "B41"),
    good=lambda: [
        talk(ca(), crl(), csr(), not_issued(), *[wait(36_000), csr(status=400, text=REQUESTED), not_issued()] * 2)
    ],
    bad=lambda: [
        talk(ca(), crl(), csr(), not_issued(), *[wait(36_000), csr(status=400, text=REQUESTED), not_issued()] * 3)
    ],
)
def polling_for_ever(case: ExchangeCase, *, hours: float = 24) -> Iterator[Statement]:
    """The agent has been requesting its certificate for a day, and will continue: its signing request was forgotten, or
    the node is not meant to be managed."""
    run = case.run
    if case.status != 404 or run.tool:
        return
    first = min((answers[0] for answers in (run.csrs, run.certificates) if answers), key=lambda answer: answer.time)
    if case.exchange.time - first.time > hours * HOUR:
        yield Statement(
            f"{case.name} has waited for its certificate since {utc(first.time)}, more than {hours:g} hours",
            (first.seq, case.exchange.seq),
            at=places.REQUEST_LINE,
        )
