"""S08 and S29: slow compilation."""

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
    without_catalog=NO_CATALOG,
    event=True,
    good=lambda: [talk(plugins(), slow(catalog(), 9), report())],
    bad=lambda: [talk(plugins(), slow(catalog(), 15), report()), talk(plugins(), slow(catalog(), 75), report())],
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
    words = f"the master took {seconds:.0f} s to compile the catalog"
    if exchange.response is None:
        agent = "disconnected" in (exchange.error or "").lower()
        who = "the agent gave up" if agent else "the master, or a device in between, closed the connection"
        words = f"no catalog after {seconds:.0f} s, then {who}"
    yield Statement(words, severity=severity, at=places.WAITING)


def _runs(*seconds: float) -> list[ExamplePart]:
    """Runs of an agent, by how long their catalogs took."""
    parts: list[ExamplePart] = []
    for number, each in enumerate(seconds):
        parts += [slow(catalog(uuid=f"a-{number}"), each), report(uuid=f"a-{number}"), wait(1800)]
    return parts


@rule(
    "S29",
    Severity.NOTICE,
    at=(Kind.CATALOG,),
    title="compilation slower than this node's usual",
    fix=(
        on_proxy("compare this run with earlier ones", "puppet-inspector runs <capture>"),
        on_master("see its log and the metrics of its JRubies", only_if="other nodes are slower since then, too"),
        on_node("run it once more, and read the PROFILE lines in the master's log", "puppet agent -t --profile",
                only_if="only this node is slower"),
    ),
    source="docs/protocol.md#timeouts",
    good=lambda: [talk(*_runs(2, 2.5, 2, 2, 2, 3)), talk(*_runs(2, 2, 2, 2, 5)), talk(*_runs(*(5 * [0.1]), 0.5))],
    bad=lambda: [talk(*_runs(2, 2.5, 2, 2, 2, 5))],
)  # fmt: skip
def compile_slower_than_usual(
    case: ExchangeCase, *, times: float = 2, runs: float = 5, least_s: float = 1
) -> Iterator[Statement]:
    """The master took twice as long for this node's catalog as it usually does, by the median of the node's latest
    runs in this capture. Nothing fails yet: the code, its data or the load of the server changed."""
    if case.status != 200 or case.run.tool:
        return
    before = [past.compile_time for past in case.ledger.fleet.before(case.run) if past.compile_time is not None]
    if len(before) < max(1, runs):
        return
    from statistics import median

    usual, seconds = median(before), waited(case.exchange)
    if seconds >= times * usual and seconds - usual >= least_s:
        yield Statement(
            f"the catalog took {seconds:.1f} s; in this node's last {len(before)} runs the median was {usual:.1f} s",
            at=places.timing("waiting for the master"),
        )
