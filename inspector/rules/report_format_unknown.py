from inspector.rules.kit import *


@rule(
    "P07",
    Severity.NOTICE,
    at=(Kind.REPORT,),
    title="unknown report format",
    fix=(advice("upgrade puppet-inspector"), advice("see whether your report processors support the format")),
    source="docs/protocol.md#generations-of-agents",
    good=lambda: [talk(plugins(), catalog(), report(report_format=2))],
    bad=lambda: [talk(plugins(), catalog(), report(report_format=13))],
)
def report_format_unknown(case: ExchangeCase) -> Iterator[Statement]:
    """The report declares a format version that no known agent writes. It may be displayed incompletely. The agent is
    newer than this tool, or the client is not an agent."""
    report = case.step.request
    if isinstance(report, d.Report) and not report.known_format:
        yield Statement(f"the report has format {report.report_format}", at=places.meaning("report_format", "about"))
