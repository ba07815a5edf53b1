from inspector.rules.kit import *


@rule(
    "R10",
    Severity.NOTICE,
    at=(Kind.NODE,),
    generations=SINCE_6_4,
    title="node request sent again in a later run",
    fix=(
        on_node("see which directory must survive the run, and whether the last environment is to be used",
                "puppet config print publicdir use_last_environment --section agent"),
        on_node("make the directory writable, and a volume in a container"),
    ),
    source="docs/protocol.md#node-request; puppet 7.23.0 lib/puppet/configurer.rb",
    good=lambda: [
        talk(node(), plugins(), catalog(), report(), wait(1800), plugins(), catalog(uuid="a-2"), report(uuid="a-2")),
    ],
    bad=lambda: [
        talk(
            node(), plugins(), catalog(), report(), wait(1800), node(), plugins(), catalog(uuid="a-2"),
            report(uuid="a-2"),
        ),
    ],
)  # fmt: skip
def node_request_unexpected(case: ExchangeCase) -> Iterator[Statement]:
    """After a run the agent stores its environment in last_run_summary.yaml and no longer sends a node request. This
    one sends it in each run: the file is lost between runs (a container, a read-only disk, another user), or
    use_last_environment is false."""
    run = case.run
    previous = case.ledger.fleet.before(run)
    if run.tool or run.csrs or not previous or not ((6, 26) <= run.major < (7, 0) or run.major >= (7, 13)):
        return
    latest = previous[-1]
    if latest.key == run.key and {Phase.NODE, Phase.CATALOG, Phase.REPORT} <= latest.phases:
        yield Statement(
            "the agent requests its node in each run: it has no record of its last run",
            (latest.seqs[0], case.exchange.seq),
            at=places.REQUEST_LINE,
        )
