"""R19 and R20: what an agent without a new catalog does."""

from inspector.rules.kit import *


@rule(
    "R19",
    Severity.ERROR,
    at=(Kind.REPORT,),
    otherwise="notice with use_cached_catalog=true",
    title="cached catalog in use",
    fix=(
        advice(
            "find out what kept the master from sending a catalog: see its answer to the request, and the report's log"
        ),
        on_node(
            "turn the cache off",
            "puppet config set use_cached_catalog false --section agent",
            only_if="the cache is used on purpose, and should not be",
        ),
    ),
    source="docs/protocol.md#cached-catalogs; puppet 7.23.0 lib/puppet/configurer.rb",
    good=lambda: [talk(plugins(), catalog(), report(cached_catalog_status="not_used"))],
    bad=lambda: [talk(plugins(), catalog(status=500), report(cached_catalog_status="on_failure"))],
)
def cached_catalog(case: ExchangeCase) -> Iterator[Statement]:
    """The agent applied a catalog that was cached in an earlier run. If it failed to get a new one, the run looks
    successful although no change made on the master since then reaches the node. With use_cached_catalog the site chose
    this, and it is only a notice."""
    report = case.step.request
    if not isinstance(report, d.Report) or not report.cached:
        return
    if report.cached_catalog_status == "explicitly_requested":
        yield Statement(
            "the agent applied its cached catalog, as configured",
            severity=Severity.NOTICE,
            at=places.meaning("cached_catalog_status", "about"),
        )
        return
    catalog = case.run.catalogs[-1] if case.run.catalogs else None
    reasons = [brief(catalog.text) if catalog else "", reason(report)]
    cause = next((f": {text}" for text in reasons if text), "")
    seqs = (catalog.seq, case.exchange.seq) if catalog else (case.exchange.seq,)
    yield Statement(
        f"the agent got no catalog and applied its cached catalog{cause}",
        seqs,
        at=(
            places.meaning("cached_catalog_status", "about"),
            places.error(catalog.text if catalog else ""),
            places.STATUS,
            places.NO_ANSWER,
        ),
    )


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
    explains=("R19", "R03", "P13"),
    event=True,
    good=lambda: [
        talk(plugins(), catalog(), report(result="failed", resource_statuses={"Notify[x]": {"skipped": True}}))
    ],
    bad=lambda: [
        talk(plugins(), catalog(status=500), report(result="failed")),
        talk(plugins(), unanswered(catalog()), report(result="failed")),
    ],
    also=("T14",),
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
        cause = f"the request got no answer ({brief(catalog.text)})" if catalog.text else "the request got no answer"
    elif catalog.status >= 300:
        cause = f"{catalog.status} {brief(catalog.text)}".rstrip()
    else:
        cause = reason(report) or brief(catalog.text)
    yield Statement(
        f"nothing was applied because there was no catalog: {cause}",
        (catalog.seq, case.exchange.seq),
        at=(places.meaning("status: ", "about"), places.error(catalog.text), places.NO_ANSWER, places.STATUS),
    )
