from inspector.rules.kit import *

_FACTS = altered(report(), request={"target": "/puppet/v3/facts/node1.example?environment=production"})
_REFUSED = altered(_FACTS, response={"status": 500, "body": b'{"message": "Server Error: connect timed out"}'})


@rule(
    "P17",
    Severity.WARNING,
    at=(Kind.FACTS,),
    title="facts rejected",
    fix=(
        on_master("read its log of that time: PuppetDB, or where else it stores facts"),
        on_master("see where it stores them", "puppet config print facts_terminus --section master"),
    ),
    source="docs/protocol.md#endpoint-facts",
    good=lambda: [talk(plugins(), catalog(), _FACTS, report()), talk(_FACTS)],
    bad=lambda: [talk(plugins(), catalog(), _REFUSED, report()), talk(_REFUSED)],
)
def facts_rejected(case: ExchangeCase) -> Iterator[Statement]:
    """The master did not accept the facts that `puppet facts upload`, or an agent with resubmit_facts at the end of its
    run, sent. Queries for facts give the old ones."""
    status = case.status
    if status is None or status < 400 or status in (401, 403, 429, 503) or case.run.tool:  # S02, S05, S24
        return
    yield Statement(f"the master answered the facts with {status}" + (f": {brief(case.answer)}" if case.answer else ""))
