"""S03 and S18: masters that do not have the agent's URLs."""

from inspector.rules.kit import *

NO_ROUTE = "Not Found: No route for GET /puppet/v3/node/node1.example"
OLD_MASTER = ("Could not find environment 'puppet'", "must be purely alphanumeric, not 'puppet-ca'")
"""Error messages of a 2.7 or 3 master for newer URLs, whose first segment it reads as an environment."""


@rule(
    "S03",
    Severity.ERROR,
    at=(*RUN, *BOOTSTRAP),
    refused=True,
    title="the master does not support the agent's URLs",
    fix=(
        on_node("see its version", "puppet --version"),
        on_master("see its version", "puppet --version"),
        advice(
            "upgrade the older side: agents of version 4 and later need a master of version 4 or later (Puppet "
            "Server 2.1 or later)",
            only_if="their generations differ",
        ),
        advice("let what rewrites paths in between pass them unchanged", only_if="they do not"),
    ),
    source="docs/protocol.md#old-agents-and-new-masters; docs/protocol.md#error-documents; "
    "puppet 3.8.7 lib/puppet/network/http/api/v1.rb",
    explains=("S04", "R01", "R09"),
    without_catalog=NO_CATALOG_NO_REPORT,
    good=lambda: [
        talk(plugins(), catalog(), asked("file_metadata/modules/demo/a", status=404, text="Not Found: x"), report())
    ],
    bad=lambda: [
        talk(
            plugins(),
            asked("node/node1.example", status=404, kind="HANDLER_NOT_FOUND", text=NO_ROUTE),
            catalog(),
            report(),
        ),
        talk(
            plugins(status=404, text=f"Not Found: {OLD_MASTER[0]}"),
            catalog(status=404, text=f"Not Found: {OLD_MASTER[0]}"),
            report(status=404, result="failed"),
        ),
    ],
    also=("P01",),
)
def dialect_mismatch(case: ExchangeCase) -> Iterator[Statement]:
    """Agent and master use different generations of the protocol: up to version 3 URLs begin with the environment, from
    version 4 on with /puppet/v3 and /puppet-ca/v1. A master of the other generation answers 404 or 400 to every
    request."""
    if case.status not in (400, 404):
        return
    answer, match = case.step.response, case.step.match
    if match is None or match.dialect == "legacy" or not isinstance(answer, d.ErrorDocument):
        return
    unrouted = answer.issue_kind == "HANDLER_NOT_FOUND" or "No route for" in answer.message
    older = any(text in answer.message for text in OLD_MASTER) and match.environment not in ("puppet", "puppet-ca")
    if unrouted:
        yield Statement(f"the master has no {case.endpoint}: {brief(answer.message)}")
    elif older:
        yield Statement(f"the master interprets the agent's URLs as those of agents up to 3: {brief(answer.message)}")


MESSAGE = "Invalid URL. Note that Puppet 3 agents aren't compatible with this version."


@rule(
    "S18",
    Severity.ERROR,
    at=(*RUN, *BOOTSTRAP),
    refused=True,
    title="an agent of 2.7 or 3 at a master that no longer supports it",
    fix=(
        on_node("upgrade the agent to version 4 or later"),
        on_master("until then serve it: the service `legacy-routes-service` in bootstrap.cfg and web-routes.conf",
                  only_if="the master is a Puppet Server 2.1 to 7"),
    ),
    source="docs/protocol.md#old-agents-and-new-masters",
    explains=("S03", "B06", "R09"),
    without_catalog=NO_CATALOG_NO_REPORT,
    good=lambda: [
        talk(plugins(), catalog(), asked("file_metadata/modules/demo/a", status=404, text="Not Found: a"), report(),
             version="3.8.7", master_version="3.8.7"),
    ],
    bad=lambda: [
        talk(asked("/production/certificate/ca?fail_on_404=true", b"", status=404, run=False), version="3.8.7"),
        talk(plugins(status=404, text=MESSAGE), version="3.8.7"),
    ],
)  # fmt: skip
def legacy_agent_not_served(case: ExchangeCase) -> Iterator[Statement]:
    """The URL begins with an environment, as in agents up to version 3, and the master does not have such URLs: it says
    so, or its web server answers 404 with an empty body or a web page. None of this agent's requests will succeed."""
    if case.status != 404:
        return
    match, answer = case.step.match, case.step.response
    if match is None or match.dialect != "legacy" or case.run.tool:
        return
    if case.exchange.request.method == "HEAD":
        return
    message = isinstance(answer, d.ErrorDocument) and (answer.html or "aren't compatible" in answer.message)
    if message or isinstance(answer, d.Nothing):
        yield Statement("the master does not support the URLs of agents up to 3")
