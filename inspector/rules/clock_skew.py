from inspector.rules.kit import *
from inspector.runs.examples import skewed

_FIX = (
    on_proxy(
        "check its clock, with which the others are compared",
        "timedatectl",
        only_if="agent and master differ by the same amount",
    ),
    on_node("see whether its clock is set by NTP", "timedatectl", only_if="the message names the agent"),
    on_master("see whether its clock is set by NTP", "timedatectl", only_if="the message names the master"),
    advice("set the clock that is wrong by NTP"),
)
_ON_THE_NODE = (group("clocks"),)
"""Where the proxy is on the node, both have one clock."""


def clocks_first(run: Run) -> Fix | None:
    """Return the fix of a wrong clock for what depends on it; None if the clocks agree, or are not known."""
    if all(found.rule != "T10" for found in run.findings):
        return None
    return _ON_THE_NODE if run.own_proxy else _FIX


@rule(
    "T10",
    Severity.ERROR,
    otherwise="warning up to the threshold error_s",
    title="clocks differ",
    fix=(
        *_FIX,
        on_ca(
            "sign its CRL anew, once its clock is right",
            "{new_crl}",
            only_if="the message names it, and its CRL is not valid yet",
        ),
        advice(
            "revoke again what had been revoked: it took off the list what had expired by its clock",
            only_if="the CA's CRL was not valid yet",
        ),
    ),
    instead=lambda run: _ON_THE_NODE if run.own_proxy else None,
    source="docs/protocol.md#clocks",
    explains=("B10", "B12", "B33", "B35", *NO_TRUST),
    good=lambda: [
        talk(*(skewed(part, 200) for part in (catalog(), report()))),
        talk(*(skewed(part, -200) for part in (catalog(), report()))),
    ],
    bad=lambda: [
        talk(*(skewed(part, 400) for part in (catalog(), report()))),
        talk(*(skewed(part, -3600) for part in (catalog(), report()))),
    ],
)
def clock_skew(case: RunCase, *, warning_s: float = 300, error_s: float = 900) -> Iterator[Statement]:
    """The clock of the agent or the master differs from this proxy's by more than the network can explain. Certificates
    and CRLs then look expired or not yet valid, and reports have wrong times. A CA from version 8.4 on whose clock is
    years ahead signs its CRL anew, with a time in the future. A difference of only minutes is a warning."""
    run = case.run
    for side, offset in run.clocks.items():
        # The smallest possible difference: the end of the interval that is nearer to zero.
        certain = max(offset.low, -offset.high)
        if certain <= warning_s:
            continue
        # What the proxy did not accept by its own clock, and so passed on without an identity.
        refused = [found.follows[0] for found in run.findings if found.rule == "T23" and found.follows]
        direction = "ahead of" if offset.low > 0 else "behind"
        severity = Severity.ERROR if certain > error_s else Severity.WARNING
        whose = "node" if run.own_proxy else "proxy"
        # Of an hour only 59 min 59 s are certain.
        yield Statement(
            f"the {side}'s clock is {lasting(round(certain / 60) * 60)} {direction} the {whose}'s",
            tuple(sorted({*refused, *run.seqs[-1:]})),
            severity=severity,
            at=(places.timing("total"), places.REQUEST_LINE),
        )
