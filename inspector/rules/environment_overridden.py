from inspector.rules.kit import *


@rule(
    "R08",
    Severity.NOTICE,
    at=(Kind.NODE, Kind.CATALOG),
    otherwise="warning for agents of 2.7",
    title="master overrides the environment",
    fix=(
        on_master("remove {name}'s environment from the ENC; the one in puppet.conf is only a request by the agent",
                  only_if="the classifier is not meant to decide (otherwise nothing is wrong)"),
    ),
    source="docs/protocol.md#change-of-environment; docs/protocol.md#node-request",
    good=lambda: [talk(node(), plugins(), catalog(), report())],
    bad=lambda: [
        talk(
            node(environment="staging"), plugins(environment="staging"),
            catalog(environment="staging", asks="staging"), report(environment="staging"),
        ),
        talk(plugins(), catalog(environment="staging"), report(), version="2.7.26"),
    ],
)  # fmt: skip
def environment_overridden(case: ExchangeCase) -> Iterator[Statement]:
    """The agent requested one environment, and the master assigned another: the classifier decides. The agent follows,
    so the environment in puppet.conf on the node has no effect. An agent of 2.7 applies the catalog with files of the
    environment that it requested, and so mixes two versions of the code."""
    answer, match = case.step.response, case.step.match
    if not isinstance(answer, d.Node | d.Catalog) or not answer.environment or match is None or case.run.tool:
        return
    requested = match.environment
    if isinstance(case.step.request, d.CatalogRequest):
        requested = case.step.request.environment or requested
    if requested and answer.environment != requested:
        old = case.run.generation == "2.7"
        files = "; an agent of 2.7 requests its files from the former all the same" if old else ""
        yield Statement(
            f"the agent requested {cut(requested, 60)}, the master assigns {cut(answer.environment, 60)}{files}",
            severity=Severity.WARNING if old else None,
            at=(places.meaning(f"environment: {answer.environment}"), places.REQUEST_LINE),
        )
