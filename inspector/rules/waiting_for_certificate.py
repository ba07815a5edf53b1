from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from inspector.rules.csr_repeated import WAITS
from inspector.rules.kit import *
from inspector.runs.run import Run

BURST = 1.0
"""Agents up to 6.3 request their certificate several times within this many seconds when they start."""
STEADY = 0.1
"""Relative difference from the usual interval up to which an interval counts as the same setting."""


@dataclass(frozen=True, slots=True)
class Polling:
    """Repeated requests for a certificate at a fixed interval, all answered with 404."""

    interval: float
    """The usual interval in seconds."""
    times: int
    first: float
    last: float
    seqs: tuple[int, int]


def polling(run: Run) -> Polling | None:
    """How an agent waits for its certificate; None if it does not wait, or is only started from time to time."""
    polls = [certificate for certificate in run.certificates if certificate.status == 404]
    if run.tool or not polls:
        return None
    bursts = [polls[0].time, *(b.time for a, b in pairwise(polls) if b.time - a.time > BURST)]
    gaps = [later - earlier for earlier, later in pairwise(bursts)]
    if len(gaps) < 2:
        return None
    usual = median(gaps)
    if sum(abs(gap - usual) <= STEADY * usual for gap in gaps) < 0.75 * len(gaps):
        return None
    omitted = run.certificates.total - len(run.certificates)  # only the first and the last requests are stored
    return Polling(usual, len(bursts) + omitted, bursts[0], polls[-1].time, (polls[0].seq, polls[-1].seq))


@rule(
    "B39",
    Severity.NOTICE,
    title="agent waits for its certificate",
    fix=(group("signing"),),
    source="docs/protocol.md#waiting-for-the-certificate; docs/protocol.md#submitting-the-signing-request",
    good=lambda: [
        talk(ca(), crl(), csr(), issued(), catalog(), report()),
        talk(ca(), not_issued(), csr(), not_issued(), not_issued(), not_issued(), version="5.5.22"),
    ],
    bad=lambda: [
        talk(ca(), crl(), csr(), not_issued(), *[wait(119), csr(status=400, text=WAITS), not_issued()] * 3),
        talk(ca(), csr(), not_issued(), *[wait(120), not_issued()] * 3, version="5.5.22"),
    ],
    also=("B01", "B03", "B17"),
)
def waiting_for_certificate(case: RunCase) -> Iterator[Statement]:
    """The CA has the node's request and it is not signed yet, so the agent requests its certificate again and again.
    The agent behaves correctly; the request has to be signed, unless there is a reason not to."""
    run, waits = case.run, polling(case.run)
    if waits is None:
        return
    text = f"requested its certificate {waits.times} times over {lasting(waits.last - waits.first)}, every "
    text += lasting(waits.interval)
    if run.csrs:
        text += f"; its request was first sent on {utc(run.csrs[0].time)}"
    text += ", then it was signed" if run.certificate else ", it is not signed yet" if run.csrs else ""
    yield Statement(text, waits.seqs, at=places.REQUEST_LINE)
