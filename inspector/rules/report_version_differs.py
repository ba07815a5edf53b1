from inspector.rules.kit import *


@rule(
    "P12",
    Severity.NOTICE,
    at=(Kind.REPORT,),
    title="report and request name different agent versions",
    fix=(
        on_node("see which installations there are", "type -a puppet; puppet --version; gem list puppet"),
        on_node("remove the unwanted one", only_if="there is more than one"),
        on_node("restart its service", only_if="the agent was only upgraded"),
    ),
    source="docs/protocol.md#reports; docs/protocol.md#request-headers",
    good=lambda: [talk(plugins(), catalog(), report())],
    bad=lambda: [talk(plugins(), catalog(), report(puppet_version="6.29.0"))],
)
def report_version_differs(case: ExchangeCase) -> Iterator[Statement]:
    """The request comes from one version of Puppet, but the report in it was written by another. Two installations are
    mixed (package and gem), or the agent was upgraded while it ran."""
    report, version = case.step.request, case.exchange.request.header("x-puppet-version")
    if isinstance(report, d.Report) and version and report.puppet_version and report.puppet_version != version:
        yield Statement(
            f"the request is from {cut(version, 40)}, the report from {cut(report.puppet_version, 40)}",
            at=(places.request_header(case, "x-puppet-version"), places.meaning("puppet_version", "about")),
        )
