from inspector.rules.kit import *


@rule(
    "R20",
    Severity.ERROR,
    at=(Kind.REPORT,),
    title="no catalog, run skipped",
    fix=(
        advice(
            "correct the code in the master's answer, often with file and line", only_if="the message names 500 or 400"
        ),
        on_master("compare the certname with its auth.conf", only_if="it names 403"),
        on_master(
            "see whether it is up or too busy", "systemctl status puppetserver", only_if="it names 503, or no answer"
        ),
        on_node("run the agent again", "puppet agent -t"),
    ),
    source="docs/protocol.md#failed-catalogs; puppet 7.23.0 lib/puppet/configurer.rb",
    good=lambda: [
        talk(plugins(), catalog(), report(result="failed", resource_statuses={"Notify[x]": {"skipped": True}})),
    ],
    bad=lambda: [
        talk(plugins(), catalog(status=500), report(result="failed")),
        talk(plugins(), unanswered(catalog()), report(result="failed")),
    ],
    also=("S01", "T14"),
)
def run_skipped(case: ExchangeCase) -> Iterator[Statement]:
    """The agent got no catalog and had no cached one to fall back on: nothing was applied on the node. Its report shows
    a failed run without resources."""
    report, run = case.step.request, case.run
    catalog = run.catalogs[-1] if run.catalogs else None
    if not isinstance(report, d.Report) or run.tool or catalog is None or catalog.usable:
        return
    if report.status != "failed" or report.resource_statuses or report.cached_catalog_status == "on_failure":
        return
    if catalog.status is None:
        cause = f"the request got no answer ({cut(catalog.text)})" if catalog.text else "the request got no answer"
    elif catalog.status >= 300:
        cause = f"{catalog.status} {cut(catalog.text)}".rstrip()
    else:
        cause = reason(report) or cut(catalog.text)
    yield Statement(
        f"nothing was applied because there was no catalog: {cause}",
        (catalog.seq, case.exchange.seq),
        at=(places.meaning("status: ", "about"), places.error(catalog.text), places.NO_ANSWER, places.STATUS),
    )
