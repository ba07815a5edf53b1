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
    good=lambda: [
        talk(plugins(), catalog(), report()),
        talk(plugins(), catalog()),
    ],
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
    if next_run:
        yield Statement(
            f"no report followed: the agent's next run began on {utc(next_run.started)}",
            (*seqs, next_run.seqs[0]),
            at=places.REQUEST_LINE,
        )
    elif silent >= silence_s:
        yield Statement(
            f"no report followed within {lasting(silence_s)} after the last request of the run",
            seqs,
            at=places.REQUEST_LINE,
        )
    else:
        yield Statement(
            f"no report followed before the capture ends, {lasting(max(0.0, silent))} later",
            seqs,
            severity=Severity.NOTICE,
            at=places.REQUEST_LINE,
        )
