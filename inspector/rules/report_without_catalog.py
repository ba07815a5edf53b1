from inspector.rules.cached_catalog import CACHED
from inspector.rules.kit import *


@rule(
    "R04",
    Severity.NOTICE,
    at=(Kind.REPORT,),
    title="report without a catalog request",
    fix=(
        advice("read the report's log"),
        on_node(
            "see whether it uses its cache",
            "puppet config print use_cached_catalog --section agent",
            only_if="the log contains no error",
        ),
    ),
    source="docs/protocol.md#cached-catalogs; docs/protocol.md#end-of-a-run",
    good=lambda: [talk(plugins(), catalog(), report())],
    bad=lambda: [talk(plugins(status=500), report(result="failed"))],
)
def report_without_catalog(case: ExchangeCase) -> Iterator[Statement]:
    """A report arrived, but its run did not request a catalog. The run failed earlier (no server of server_list
    answered, plugins could not be downloaded, the connection broke), or the agent applied a catalog from its cache (up
    to 4.3 the report does not say so)."""
    run, report = case.run, case.step.request
    if run.tool or run.catalogs or not isinstance(report, d.Report) or report.cached_catalog_status in CACHED:
        return
    previous = case.ledger.fleet.before(run)
    if run.transaction_uuid and any(
        other.transaction_uuid == run.transaction_uuid and other.catalog_time for other in previous
    ):
        return  # R02, R17: the run is split in two here
    # Otherwise the run may have started before the capture.
    complete = Phase.NODE in run.spans or Phase.PLUGINS in run.spans
    cause = reason(report)
    if complete or (report.status == "failed" and cause):
        words = "a report was sent without a catalog request"
        yield Statement(
            f"{words}; the agent says: {cause}" if cause else words,
            (run.seqs[0], case.exchange.seq),
            at=places.REQUEST_LINE,
        )
