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
