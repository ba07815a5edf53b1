"""R16 and R17: runs that follow each other closely, or overlap."""

from itertools import pairwise

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
    good=lambda: [talk(*_runs(4, 1800)), together(*(_other(number, 3 * number) for number in range(1, 25)))],
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


@rule(
    "R17",
    Severity.ERROR,
    generations=("3", *SINCE_4),
    title="two runs of one node at the same time",
    fix=(
        advice("compare the addresses of the two runs"),
        on_node("give the copy its own certname", "puppet config set certname <name> --section main",
                only_if="two hosts run as {name}"),
        on_node("enrol the copy", "{reset}", only_if="two hosts run as {name}",
                destroys="its key and its certificate"),
        on_node("find both agents", "ps -ef | grep 'puppet agent'", only_if="it is one host"),
        on_node("see that both use one statedir", "puppet config print agent_catalog_run_lockfile --section agent",
                only_if="it is one host"),
    ),
    source="docs/protocol.md#transaction_uuid; docs/protocol.md#locks",
    explains=("R03", "R04", "P10"),
    good=lambda: [
        talk(plugins(), catalog(), metadata("modules/demo/a"), report(), plugins(), catalog(uuid="b-1"),
             report(uuid="b-1")),
        together(
            talk(plugins(), catalog(), wait(30), metadata("modules/demo/a"), report()),
            talk(plugins(), catalog(uuid="b-1"), report(uuid="b-1"), after=10, certname="node2.example"),
        ),
    ],
    bad=lambda: [
        together(
            talk(plugins(), catalog(), wait(11), metadata("modules/demo/a"), report()),
            talk(plugins(), catalog(uuid="b-1"), wait(8), metadata("modules/demo/a"), report(uuid="b-1"), after=9.5),
        ),
    ],
)  # fmt: skip
def runs_overlap(case: RunCase) -> Iterator[Statement]:
    """Requests of two runs with the same certificate are interleaved. Two hosts use the same key (a cloned machine), or
    two agents run on one host because their lock files are in different places. They revert and repeat each other's
    changes, and reports and PuppetDB alternate between the two."""
    run = case.run
    if run.tool or run.transaction_uuid is None:
        return
    previous = case.ledger.fleet.before(run)
    # When the other run reported, this one was closed; its later requests form a separate run.
    parts = [other for other in previous if other.transaction_uuid == run.transaction_uuid]
    times = [*(other.catalog_time for other in parts), *(other.time for other in run.catalogs[:1])]
    requested = min((time for time in times if time is not None), default=None)
    for other_run in previous:
        if (
            requested is None
            or other_run.catalog_time is None
            or other_run.transaction_uuid is None
            or other_run in parts
            or other_run.key != run.key
        ):
            continue
        if other_run.catalog_time < requested < other_run.latest or requested < other_run.catalog_time < run.latest:
            hosts = (
                f"both from {run.address}"
                if other_run.address == run.address
                else f"one from {other_run.address}, one from {run.address}"
            )
            yield Statement(
                f"two runs with the same certificate overlap, {hosts}",
                tuple(sorted({*other_run.seqs, run.seqs[0], run.seqs[-1]})),
                at=places.REQUEST_LINE,
            )
