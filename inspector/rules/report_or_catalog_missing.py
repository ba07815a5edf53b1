"""R03 and R04: a catalog without a report, and a report without a catalog."""

from inspector.rules.kit import *


@rule(
    "R03",
    Severity.ERROR,
    otherwise="notice while the run may still be in progress",
    visible=Visible.CONSEQUENCE,
    title="no report after the catalog",
    fix=(
        on_node("see whether and to whom it reports", "puppet config print report report_server --section agent"),
        on_node("turn reports on", "puppet config set report true --section agent", only_if="report is false"),
        on_node(
            "find out what ended the agent: its log, the kernel's (out of memory), systemd", only_if="report is true"
        ),
    ),
    source="docs/protocol.md#end-of-a-run",
    good=lambda: [talk(plugins(), catalog(), report()), talk(plugins(), catalog())],
    bad=lambda: [
        talk(plugins(), catalog(), wait(1800), plugins(), catalog(uuid="a-2"), report(uuid="a-2")),
        together(
            talk(plugins(), catalog()),
            talk(ca(refresh=True), plugins(), catalog(), report(), certname="node2.example", after=7200),
        ),
    ],
)
def report_missing(case: RunCase, *, silence_s: float = 3600) -> Iterator[Statement]:
    """The agent received its catalog, and no report followed, so it is unknown whether the catalog was applied. The
    agent was killed, the host went down during the run, the report went to another server (report_server), or the agent
    does not send reports (report=false). While the run may still be in progress, this is only a notice."""
    run = case.run
    catalog = run.catalogs[-1] if run.catalogs else None
    if run.tool or run.reports or catalog is None or not catalog.usable:
        return
    if run.transaction_uuid is None and run.major >= (3, 3):
        return  # `puppet catalog download`: only an agent's run has a transaction_uuid
    runs = case.ledger.fleet.before(run)
    if any(
        other.transaction_uuid == run.transaction_uuid and Phase.REPORT in other.phases
        for other in runs
        if other.transaction_uuid
    ):
        return
    seqs = tuple(dict.fromkeys((catalog.seq, run.seqs[-1])))
    next_run = next((other for other in runs if other.catalog_time is not None and other.started > run.ended), None)
    silent = case.ledger.now - run.ended
    severity = None
    if next_run:
        words, seqs = f": the agent's next run began on {utc(next_run.started)}", (*seqs, next_run.seqs[0])
    elif silent >= silence_s:
        words = f" within {lasting(silence_s)} after the last request of the run"
    else:
        words, severity = f" before the capture ends, {lasting(max(0.0, silent))} later", Severity.NOTICE
    yield Statement(f"no report followed{words}", seqs, severity=severity, at=places.REQUEST_LINE)


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
    if run.tool or run.catalogs or not isinstance(report, d.Report) or report.cached:
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
