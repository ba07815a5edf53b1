"""P05."""

from collections.abc import Iterator

from inspector.model import Severity, Visible
from inspector.protocol import documents as d
from inspector.protocol.kinds import Kind
from inspector.rules import On, places, rule
from inspector.rules.cases import ExchangeCase, Statement
from inspector.rules.words import reason
from inspector.runs.examples import catalog, plugins, report, talk


@rule(
    "P05",
    Severity.ERROR,
    On.EXCHANGE,
    at=(Kind.REPORT,),
    visible=Visible.WIRE,
    title="catalog not applied completely",
    remedy="The report's log says what stopped it: a dependency cycle or an unknown provider (fix the manifest), a "
    "run longer than `puppet config print runtimeout --section agent`, or a signal.",
    source="docs/protocol.md#report-status",
    good=lambda: [
        talk(plugins(), catalog(), report(transaction_completed=True)),
        talk(plugins(), report(result="failed", transaction_completed=False)),
    ],
    bad=lambda: [
        talk(
            plugins(), catalog(),
            report(result="failed", transaction_completed=False, logs=[
                {"level": "err", "source": "Puppet", "message": "Failed to apply catalog: Found 1 dependency cycle"},
            ]),
        ),
    ],
)  # fmt: skip
def transaction_incomplete(case: ExchangeCase) -> Iterator[Statement]:
    """The agent received a catalog and started to apply it, but did not finish: some resources were not evaluated. The
    agent was stopped, exceeded runtimeout (an hour by default), or could not start because it cannot process the
    catalog."""
    report, run = case.step.request, case.run
    if not isinstance(report, d.Report) or report.transaction_completed is not False:
        return
    catalog = run.catalogs[-1] if run.catalogs else None
    refused = catalog is not None and catalog.environment not in (None, catalog.requested)  # R06, R07
    # Without a catalog there is no transaction to complete.
    if report.resource_statuses or (catalog is not None and catalog.usable and not refused):
        cause = reason(report)
        yield Statement(
            "the agent did not apply its catalog completely" + (f": {cause}" if cause else ""),
            (catalog.seq, case.exchange.seq) if catalog else (),
            at=(places.meaning("transaction_completed", "about"), places.REQUEST_LINE),
        )
