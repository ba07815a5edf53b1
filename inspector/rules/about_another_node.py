"""R13 and P09: facts and reports that are about another node."""

from inspector.rules.kit import *


@rule(
    "R13",
    Severity.ERROR,
    at=(Kind.CATALOG,),
    title="facts of another node",
    fix=(
        on_node("see its names, which must result in one",
                "puppet config print certname node_name_value node_name_fact --section agent"),
        on_node("remove node_name_value and node_name_fact from puppet.conf, unless they are needed"),
    ),
    source="docs/protocol.md#facts; puppet 7.34.0 lib/puppet/indirector/catalog/compiler.rb",
    explains=NOT_COMPILED,
    without_catalog=NO_CATALOG,
    good=lambda: [talk(plugins(), catalog(), report())],
    bad=lambda: [
        talk(
            plugins(),
            catalog(facts={"name": "other.example"}, status=500, text="Server Error: fact definition for the wrong "
                    "node (other.example)"),
            report(result="failed"),
        ),
    ],
)  # fmt: skip
def facts_of_another_node(case: ExchangeCase) -> Iterator[Statement]:
    """The catalog is requested for one name, but the facts in the request are of another node. The master refuses to
    compile. certname and node_name_value (or node_name_fact) disagree, or a tool mixes up two nodes."""
    request, match = case.step.request, case.step.match
    if not isinstance(request, d.CatalogRequest) or not isinstance(request.facts, d.Facts) or match is None:
        return
    if match.certname and request.facts.name != match.certname:
        facts = cut(request.facts.name or "no node", 100)
        yield Statement(
            f"the catalog is requested for {cut(match.certname, 100)}, but the facts are those of {facts}",
            at=(places.meaning(f"name: {request.facts.name}", "facts"), places.REQUEST_LINE),
        )


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
