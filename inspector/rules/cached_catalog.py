from inspector.rules.kit import *

CACHED = frozenset({"explicitly_requested", "on_failure"})


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
    also=("S01",),
)
def cached_catalog(case: ExchangeCase) -> Iterator[Statement]:
    """The agent applied a catalog that was cached in an earlier run. If it failed to get a new one, the run looks
    successful although no change made on the master since then reaches the node. With use_cached_catalog the site chose
    this, and it is only a notice."""
    report = case.step.request
    if not isinstance(report, d.Report) or report.cached_catalog_status not in CACHED:
        return
    if report.cached_catalog_status == "explicitly_requested":
        yield Statement(
            "the agent applied its cached catalog, as configured",
            severity=Severity.NOTICE,
            at=places.meaning("cached_catalog_status", "about"),
        )
        return
    catalog = case.run.catalogs[-1] if case.run.catalogs else None
    reasons = [cut(catalog.text) if catalog else "", reason(report)]
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
