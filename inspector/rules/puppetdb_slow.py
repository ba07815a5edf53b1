from inspector.rules.kit import *
from inspector.rules.puppetdb_refuses import named


@rule(
    "D04",
    Severity.WARNING,
    at=PUPPETDB,
    title="a master waited long for PuppetDB",
    fix=(
        on_master(
            "see which runs waited for it: those whose catalog was compiled then", "puppet-inspector puppetdb <capture>"
        ),
        on_master("ask for less: a query with fewer fields, or for fewer nodes", only_if="it is always this query"),
        on_puppetdb("see how long its database takes, and what holds locks: `pg_stat_activity`",
                    only_if="other queries are slow as well"),
    ),
    source="docs/protocol.md#endpoint-puppetdb_query",
    event=True,
    good=lambda: [talk(slow(querying(), 2), slow(stored(), 4))],
    bad=lambda: [talk(slow(querying(), 8)), talk(slow(stored(), 6))],
)  # fmt: skip
def waited_for_puppetdb(case: ExchangeCase, *, warning_s: float = 5) -> Iterator[Statement]:
    """PuppetDB took long for an answer. A master asks and stores while it compiles a catalog or takes a report: for so
    long the agent waited too, and one of the master's JRubies did nothing else."""
    seconds = waited(case.exchange)
    if case.status is not None and seconds >= warning_s:
        yield Statement(f"the master waited {seconds:.1f} s for {named(case)}", at=places.WAITING)
