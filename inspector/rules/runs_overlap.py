from inspector.rules.kit import *


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
