from inspector.rules.csr_repeated import WAITS
from inspector.rules.kit import *
from inspector.rules.waiting_for_certificate import polling


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
        talk(ca(), crl(), csr(), not_issued(), *[wait(119), csr(status=400, text=WAITS), not_issued()] * 3),
    ],
    bad=lambda: [
        talk(ca(), crl(), csr(), not_issued(), *[wait(9), csr(status=400, text=WAITS), not_issued()] * 3),
        talk(ca(), csr(), not_issued(), *[wait(600), not_issued()] * 3, version="5.5.22"),
    ],
    also=("B01", "B03", "B17", "B39"),
)
def polling_interval(case: RunCase, *, expected_s: float = 120, tolerance: float = 0.1) -> Iterator[Statement]:
    """An agent that is waiting for its certificate requests it again after waitforcert. A much shorter interval keeps
    the CA busy; a much longer one leaves a signed node idle. If the site chose another interval on purpose, set the
    rule's threshold to it."""
    waits = polling(case.run)
    if waits and abs(waits.interval - expected_s) > tolerance * expected_s:
        yield Statement(
            f"the agent requests its certificate every {lasting(waits.interval)}, not every {lasting(expected_s)}",
            waits.seqs,
            at=places.REQUEST_LINE,
        )
