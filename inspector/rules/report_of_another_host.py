from inspector.rules.kit import *


@rule(
    "P09",
    Severity.ERROR,
    at=(Kind.REPORT,),
    title="report about another host",
    fix=(
        on_node(
            "see its names, which must result in one",
            "puppet config print certname node_name_value node_name_fact --section agent",
        ),
        advice("find out who sends reports with this certificate", only_if="they do"),
    ),
    source="docs/protocol.md#default-rules; docs/protocol.md#reports",
    good=lambda: [talk(plugins(), catalog(), report())],
    bad=lambda: [talk(plugins(), catalog(), report(host="other.example"))],
)
def report_of_another_host(case: ExchangeCase) -> Iterator[Statement]:
    """The report was sent under one name, but its body names another host. The master checks only the name in the URL,
    so report processors store it as the other host's report. The node's names are misconfigured, or someone forges
    reports."""
    report, match = case.step.request, case.step.match
    if not isinstance(report, d.Report) or not report.host or match is None or not match.certname:
        return
    if report.host.lower() != match.certname.lower():
        yield Statement(
            f"sent as {cut(match.certname, 100)}, but the report is for {cut(report.host, 100)}",
            at=places.meaning("host: ", "about"),
        )
