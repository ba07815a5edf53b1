from inspector.clocks import HOUR
from inspector.rules.csr_repeated import WAITS
from inspector.rules.kit import *


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
    good=lambda: [
        talk(ca(), crl(), csr(), not_issued(), *[wait(36_000), csr(status=400, text=WAITS), not_issued()] * 2),
    ],
    bad=lambda: [
        talk(ca(), crl(), csr(), not_issued(), *[wait(36_000), csr(status=400, text=WAITS), not_issued()] * 3),
    ],
    also=("B01", "B17", "B39", "B41"),
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
