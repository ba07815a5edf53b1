from inspector.rules.kit import *


@rule(
    "P10",
    Severity.WARNING,
    at=(Kind.REPORT,),
    title="run longer than the interval between runs",
    fix=(
        on_node("see how long each resource takes", "puppet agent -t --evaltrace"),
        advice("correct what takes so long; the message names it"),
        on_node("or make the interval longer", "puppet config set runinterval 2h --section agent"),
    ),
    source="docs/protocol.md#report-metrics; docs/protocol.md#default-settings",
    good=lambda: [talk(plugins(), catalog(), report(metrics=_times(1790)))],
    bad=lambda: [talk(plugins(), catalog(), report(metrics=_times(2000)))],
)
def run_too_long(case: ExchangeCase, *, runinterval_s: float = 1800) -> Iterator[Statement]:
    """The agent was busy for longer than the interval after which the next run is due. Runs are skipped, changes reach
    the node late, and after an hour (runtimeout) the agent gives up."""
    report = case.step.request
    if not isinstance(report, d.Report):
        return
    times = report.times
    # Newer agents count the wait for their certificate as start-up.
    busy = whole(times.get("total")) - case.run.waits.get("certificate", 0.0)
    if busy <= runinterval_s:
        return
    parts = {name: seconds for name, seconds in times.items() if name not in _SUMS and seconds <= busy}
    longest = max(parts, key=lambda name: parts[name], default=None)
    share = f", most of it {cut(longest, 60)} ({lasting(parts[longest])})" if longest else ""
    yield Statement(f"the run took {lasting(busy)}{share}", at=places.meaning("total: ", "metrics"))


_SUMS = frozenset({"total", "catalog_application", "transaction_evaluation", "startup_time"})
"""Durations that are sums of others."""


def _times(total: float) -> dict[str, object]:
    values = [["exec", "Exec", total - 100], ["total", "Total", total]]
    return {"time": {"name": "time", "label": "Time", "values": values}}
