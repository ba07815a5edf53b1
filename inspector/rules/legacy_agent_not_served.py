from inspector.rules.kit import *

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
    good=lambda: [
        talk(plugins(), catalog(), asked("file_metadata/modules/demo/a", status=404, text="Not Found: a"), report(),
             version="3.8.7", master_version="3.8.7"),
    ],
    bad=lambda: [
        talk(asked("/production/certificate/ca?fail_on_404=true", b"", status=404, run=False), version="3.8.7"),
        talk(plugins(status=404, text=MESSAGE), version="3.8.7"),
    ],
    also=("B06",),
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
