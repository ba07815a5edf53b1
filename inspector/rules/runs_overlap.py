"""R17."""

from collections.abc import Iterator

from inspector.model import Severity, Visible
from inspector.rules import SINCE_4, On, RunCase, Statement, places, rule
from inspector.runs.examples import catalog, metadata, plugins, report, talk, together, wait


@rule(
    "R17",
    Severity.ERROR,
    On.RUN_END,
    generations=("3", *SINCE_4),
    visible=Visible.WIRE,
    title="two runs of one node at the same time",
    remedy="Find both: if the addresses differ, two hosts run as {name}: give the copy its own certname, then on it "
    "run {reset}. If it is one host: `ps -ef | grep 'puppet agent'`, and check that both use one statedir (`puppet "
    "config print agent_catalog_run_lockfile --section agent`).",
    source="docs/protocol.md#transaction_uuid; docs/protocol.md#locks",
    good=lambda: [
        talk(
            plugins(),
            catalog(),
            metadata("modules/demo/a"),
            report(),
            plugins(),
            catalog(uuid="b-1"),
            report(uuid="b-1"),
        ),
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
)
def runs_overlap(case: RunCase) -> Iterator[Statement]:
    """Requests of two runs with the same certificate are interleaved. Two hosts use the same key (a cloned machine), or
    two agents run on one host because their lock files are in different places. They revert and repeat each other's
    changes, and reports and PuppetDB alternate between the two."""
    run = case.run
    if run.tool or run.transaction_uuid is None:
        return
    before = case.ledger.fleet.before(run)
    # When the other run reported, this one was closed; its later requests form a separate run.
    own = [each for each in before if each.transaction_uuid == run.transaction_uuid]
    times = [*(each.catalog_time for each in own), *(each.time for each in run.catalogs[:1])]
    asked = min((time for time in times if time is not None), default=None)
    for past in before:
        if (
            asked is None
            or past.catalog_time is None
            or past.transaction_uuid is None
            or past in own
            or past.key != run.key
        ):
            continue
        if past.catalog_time < asked < past.latest or asked < past.catalog_time < run.latest:
            where = (
                f"both from {run.address}"
                if past.address == run.address
                else f"one from {past.address}, one from {run.address}"
            )
            yield Statement(
                f"two runs with the same certificate overlap, {where}",
                tuple(sorted({*past.seqs, run.seqs[0], run.seqs[-1]})),
                at=places.REQUEST_LINE,
            )
