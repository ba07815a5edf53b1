from inspector.rules.kit import *


@rule(
    "R05",
    Severity.ERROR,
    at=(Kind.CATALOG,),
    generations=("3", *SINCE_4),
    title="two catalogs for one environment in one run",
    fix=(
        advice("compare the two requests: connection, time, body"),
        advice("turn that off for POST (nginx: `proxy_next_upstream` without `non_idempotent`)",
               only_if="a load balancer or proxy in front of the master repeats requests"),
    ),
    source="docs/protocol.md#catalog-request",
    good=lambda: [
        talk(
            plugins(), catalog(environment="staging"), plugins(environment="staging"),
            catalog(environment="staging", asks="staging"), report(environment="staging"),
        ),
        talk(plugins(), catalog(), report(), plugins(), catalog(uuid="a-2"), report(uuid="a-2")),
    ],
    bad=lambda: [talk(plugins(), catalog(), catalog(), report())],
)  # fmt: skip
def catalog_asked_twice(case: ExchangeCase) -> Iterator[Statement]:
    """The agent received its catalog for the requested environment, and the same run requested it again. The master
    compiled twice, once for nothing. An agent does not do this: something in between repeated the request, or the first
    answer never reached the agent."""
    if len(case.run.catalogs) < 2:
        return
    first, second = case.run.catalogs[-2:]
    if (
        first.usable
        and first.environment in (None, first.requested)
        and first.requested == second.requested
        and first.transaction_uuid is not None
        and first.transaction_uuid == second.transaction_uuid
    ):
        yield Statement(
            f"the run requested the catalog of {second.requested or 'its environment'} again after it had received it",
            (first.seq, second.seq),
            at=places.REQUEST_LINE,
        )
