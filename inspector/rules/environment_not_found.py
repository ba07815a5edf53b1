from inspector.rules.kit import *

# Up to 3 the URLs of requests to the CA begin with an environment too.
_AT = (*(kind for kind in RUN if kind is not Kind.BACKUP), *BOOTSTRAP)


@rule(
    "R09",
    Severity.ERROR,
    at=_AT,
    refused=True,
    otherwise="warning if only the agent's first request for the environment fails",
    title="environment does not exist",
    fix=(
        on_master("see where its environments are", "puppet config print environmentpath --section master"),
        on_master("deploy the environment there"),
        on_node("or set another one", "puppet config set environment <name> --section agent"),
        on_master("flush its cache of environments", only_if="the environment was deployed only just now"),
    ),
    source="docs/protocol.md#unknown-environments; docs/protocol.md#environment-check",
    without_catalog=(*NOT_COMPILED, "R01", *NO_CATALOG_NO_REPORT),
    event=True,
    good=lambda: [
        talk(plugins(), catalog(), report()),
    ],
    bad=lambda: [
        talk(
            _check(), catalog(asks="gone", status=404, text="Not Found: Could not find environment 'gone'"),
            report(result="failed", environment="gone"),
        ),
    ],
)  # fmt: skip
def environment_not_found(case: ExchangeCase) -> Iterator[Statement]:
    """The agent requests an environment that does not exist on the master: it was never deployed, its branch was
    deleted, or its name is misspelled. Without it there are no plugins and no catalog. If only the first request fails
    and the classifier then chooses another environment, the run continues without the plugins of that first step."""
    answer, match = case.step.response, case.step.match
    if not isinstance(answer, d.ErrorDocument) or answer.html or match is None or case.run.tool:
        return
    check = case.kind is Kind.ENVIRONMENT_CHECK
    if not answer.no_environment and not (
        check and case.status == 404 and answer.issue_kind in (None, "RESOURCE_NOT_FOUND", "ENVIRONMENT_NOT_FOUND")
    ):
        return
    name = cut(match.environment or "that was requested", 60)
    yield Statement(
        f"the environment {name} does not exist on the master{': the agent skips its plugins' if check else ''}",
        severity=Severity.WARNING if check else None,
    )


def _check() -> ExamplePart:
    return asked(
        "file_metadatas/plugins",
        status=404,
        text="Not Found: Could not find environment 'gone'",
        environment="gone",
        query="&recurse=false&links=manage",
    )
