from inspector.protocol import bodies
from inspector.rules.kit import *


@rule(
    "P04",
    Severity.WARNING,
    at=(Kind.REPORT,),
    otherwise="error from the threshold error_bytes on",
    title="very large report",
    fix=(
        on_node(
            "leave out unchanged resources",
            "puppet config set exclude_unchanged_resources true --section agent",
            only_if="the agent is of version 6.24 to 7 (8 does so by default)",
        ),
        advice(
            "log less: no --debug in production, `logoutput => on_failure`, `show_diff => false`",
            only_if="the log is the large part",
        ),
    ),
    source="docs/protocol.md#report-size",
    explains=("P03",),
    good=lambda: [talk(plugins(), catalog(), report(logs=[_line(900_000)]))],
    bad=lambda: [talk(plugins(), catalog(), report(logs=[_line(1_100_000)]))],
)
def report_too_big(
    case: ExchangeCase, *, warning_bytes: float = 1_000_000, error_bytes: float = 5_000_000
) -> Iterator[Statement]:
    """Report processors and PuppetDB need a long time for a report of this size, and a size limit on the way may drop
    it. Usually it contains thousands of unchanged resources, or the output of a command."""
    request = case.exchange.request
    if request.size < warning_bytes and request.header("content-encoding") is None:
        return
    try:
        # A body that was not recorded whole cannot be unpacked: it has at least its size on the network.
        size = request.size if request.lost else len(bodies.plain(request))
    except bodies.Unreadable:
        return
    if size >= warning_bytes:
        severity = Severity.ERROR if size >= error_bytes else Severity.WARNING
        yield Statement(
            f"the report is {size / 1_000_000:.1f} MB large",
            severity=severity,
            at=(places.timing("request's body"), places.request_header(case, "content-length")),
        )


def _line(size: int) -> dict[str, str]:
    return {"level": "notice", "source": "Exec[report]", "message": "x" * size}
