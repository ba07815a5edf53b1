from inspector.rules.kit import *


@rule(
    "S08",
    Severity.WARNING,
    at=(Kind.CATALOG,),
    otherwise="error from the threshold error_s on",
    title="slow compilation of the catalog",
    fix=(
        on_node("profile one run", "puppet agent -t --profile"),
        on_master("read the PROFILE lines in its log: a slow function, Hiera backend or PuppetDB query"),
        on_master("look at the metrics of its JRubies, which are busy", only_if="all nodes are slow"),
        advice(
            "raise the time limit of the load balancer or the devices in between",
            only_if="the connection was closed, after the same time each time",
        ),
    ),
    source="docs/protocol.md#timeouts",
    good=lambda: [talk(plugins(), slow(catalog(), 9), report())],
    bad=lambda: [
        talk(plugins(), slow(catalog(), 15), report()),
        talk(plugins(), slow(catalog(), 75), report()),
    ],
)
def slow_compile(case: ExchangeCase, *, warning_s: float = 10, error_s: float = 60) -> Iterator[Statement]:
    """The master needed a long time from the complete catalog request to the first byte of its answer. Compilation is
    slow, or the request waited for a free JRuby. Agents up to version 3 give up after two minutes, from version 6 on
    after ten."""
    exchange = case.exchange
    seconds = waited(exchange)
    if seconds < warning_s:
        return
    severity = Severity.ERROR if seconds >= error_s else Severity.WARNING
    if exchange.response is None:
        agent = "disconnected" in (exchange.error or "").lower()
        who = "the agent gave up" if agent else "the master, or a device in between, closed the connection"
        yield Statement(
            f"no catalog after {seconds:.0f} s, then {who}",
            severity=severity,
            at=(places.timing("waiting for the master"), places.timing("waiting (no answer)"), places.timing("total")),
        )
    else:
        yield Statement(
            f"the master took {seconds:.0f} s to compile the catalog",
            severity=severity,
            at=(places.timing("waiting for the master"), places.timing("waiting (no answer)"), places.timing("total")),
        )
