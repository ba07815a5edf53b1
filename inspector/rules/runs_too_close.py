from itertools import pairwise

from inspector.model import Record
from inspector.rules.kit import *


@rule(
    "R16",
    Severity.NOTICE,
    title="runs follow each other closely, or many agents start at once",
    fix=(
        on_node(
            "see its interval, which must match what the masters can compile",
            "puppet config print runinterval --section agent",
        ),
        on_node("spread the starts", "puppet config set splay true --section agent"),
        advice("give each node a different minute", only_if="cron starts the agents"),
    ),
    source="docs/protocol.md#default-settings",
    good=lambda: [
        talk(*_runs(4, 1800)),
        together(*(_other(number, 3 * number) for number in range(1, 25))),
    ],
    bad=lambda: [talk(*_runs(4, 120)), together(*(_other(number, 0.1 * number) for number in range(1, 25)))],
)
def runs_too_close(
    case: RunCase, *, interval_s: float = 600, runs: float = 4, agents: float = 20, within_s: float = 10
) -> Iterator[Statement]:
    """Each run costs a compilation. An agent that runs much more often than every 30 minutes, or many agents that start
    within seconds of each other (cron at the same minute, no splay, an orchestration job), load the masters more than
    necessary. It may also have been a manual test."""
    run = case.run
    if run.tool or not run.catalogs:
        return
    previous = [earlier_run for earlier_run in case.ledger.fleet.before(run) if earlier_run.catalog_time is not None][
        1 - int(runs) :
    ]
    starts = [*(earlier_run.started for earlier_run in previous), run.started]
    if len(starts) >= runs and all(0 < later - earlier < interval_s for earlier, later in pairwise(starts)):
        span = lasting(starts[-1] - starts[0])
        yield Statement(
            f"{len(starts)} runs of one agent began within {span}",
            (*(earlier_run.seqs[0] for earlier_run in previous), run.seqs[0]),
            at=places.REQUEST_LINE,
        )
    herd = case.ledger.fleet.herd(run, int(agents), within_s) if run.authenticated else []
    if herd:
        yield Statement(
            f"{len(herd)} agents began their runs within {lasting(within_s)} on {utc(herd[0].time)}",
            tuple(sorted(start.seq for start in herd)),
            at=places.REQUEST_LINE,
        )


def _runs(count: int, interval: float) -> Iterator[ExamplePart]:
    for number in range(count):
        yield from (plugins(), catalog(uuid=f"a-{number}"), report(uuid=f"a-{number}"), wait(interval))


def _other(number: int, after: float) -> list[Record]:
    return talk(
        plugins(), catalog(), report(), certname=f"node{number}.example", address=f"192.0.2.{number}", after=after
    )
