"""R01 and R02: requests in another order than that of agents."""

from inspector.rules.kit import *


@rule(
    "R01",
    Severity.WARNING,
    at=(Kind.CATALOG,),
    generations=("3", *SINCE_4),
    title="catalog requested without pluginsync",
    fix=(
        on_node(
            "turn pluginsync on",
            "puppet config set pluginsync true --section agent",
            only_if="the agent is of version 5 or earlier",
        ),
        on_node("run it again", "puppet agent -t", only_if="the agent is of version 5 or earlier"),
        advice(
            "find out which other client uses this certificate",
            only_if="it is later (such agents have no such setting)",
        ),
    ),
    source="docs/protocol.md#pluginsync; docs/protocol.md#order-of-requests",
    good=lambda: [
        talk(node(), plugins(), catalog(), report(), version="5.5.22", master_version="5.5.22"),
        talk(catalog(), report()),
    ],
    bad=lambda: [talk(node(), catalog(), report(), version="5.5.22", master_version="5.5.22")],
)
def catalog_before_plugins(case: ExchangeCase) -> Iterator[Statement]:
    """The agent sent the node request and then requested its catalog directly, without checking for plugins. Its custom
    facts, types and providers become outdated, and a catalog that needs newer ones fails. Pluginsync is off
    (pluginsync=false), or the client is not an agent."""
    run = case.run
    # Without a node request the run may have started before the capture.
    if run.tool or len(run.catalogs) != 1 or Phase.NODE not in run.spans or Phase.PLUGINS in run.spans:
        return
    yield Statement(
        "the agent requested the catalog without requesting plugins",
        (run.seqs[0], case.exchange.seq),
        at=places.REQUEST_LINE,
    )


@rule(
    "R02",
    Severity.WARNING,
    generations=("3", *SINCE_4),
    title="node request after the catalog",
    fix=(
        advice("see the client's version and User-Agent in the first record"),
        on_node("find out what runs there: an agent sends its node request first or not at all"),
    ),
    source="docs/protocol.md#order-of-requests; docs/protocol.md#transaction_uuid",
    explains=("R04",),
    good=lambda: [
        talk(_node("a-1"), plugins(), catalog(), report()),
        talk(plugins(), catalog(), report(), _node("a-2"), plugins(), catalog(uuid="a-2"), report(uuid="a-2")),
    ],
    bad=lambda: [talk(plugins(), catalog(), _node("a-1"), report())],
)
def node_after_catalog(case: RunCase) -> Iterator[Statement]:
    """The transaction_uuid shows that one run requested its catalog first and sent its node request afterwards. An
    agent sends the node request to learn its environment, which is fixed by then. Another client imitates the agent, or
    something in between repeated a request."""
    run = case.run
    if run.transaction_uuid is None:
        return
    # The requests after the catalog form a separate run.
    current = ((run.seqs[0], run.seqs[-1]), frozenset(run.spans))
    for previous in case.ledger.fleet.before(run):
        if previous.transaction_uuid != run.transaction_uuid:
            continue
        (first, earlier), (second, later) = sorted(
            [current, (previous.seqs, previous.phases)], key=lambda part: part[0]
        )
        if Phase.CATALOG in earlier and Phase.NODE in later:
            yield Statement(
                f"transaction {run.transaction_uuid[:40]} requested its node after its catalog",
                (first[1], second[0]),
                at=places.REQUEST_LINE,
            )


def _node(uuid: str) -> ExamplePart:
    return asked(
        "node/node1.example", {"name": "node1.example", "environment": "production"}, query=f"&transaction_uuid={uuid}"
    )
