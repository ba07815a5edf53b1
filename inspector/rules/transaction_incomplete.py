"""P05."""

from collections.abc import Iterator

from inspector.model import Severity, Visible
from inspector.protocol import documents as d
from inspector.protocol.kinds import Kind
from inspector.rules import ExchangeCase, On, Statement, places, rule
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
        talk(plugins(), report(told="failed", transaction_completed=False)),
    ],
    bad=lambda: [
        talk(
            plugins(),
            catalog(),
            report(
                told="failed",
                transaction_completed=False,
                logs=[
                    {
                        "level": "err",
                        "source": "Puppet",
                        "message": "Failed to apply catalog: Found 1 dependency cycle",
                    },
                ],
            ),
        ),
    ],
)
def transaction_incomplete(case: ExchangeCase) -> Iterator[Statement]:
    """The agent received a catalog and started to apply it, but did not finish: some resources were not evaluated. The
    agent was stopped, exceeded runtimeout (an hour by default), or could not start because it cannot process the
    catalog."""
    told, run = case.step.request, case.run
    if not isinstance(told, d.Report) or told.transaction_completed is not False:
        return
    last = run.catalogs[-1] if run.catalogs else None
    refused = last is not None and last.environment not in (None, last.requested)  # R06, R07
    # Without a catalog there is no transaction to complete.
    if told.resource_statuses or (last is not None and last.usable and not refused):
        why = reason(told)
        yield Statement(
            "the agent did not apply its catalog completely" + (f": {why}" if why else ""),
            (last.seq, case.exchange.seq) if last else (),
            at=(places.meaning("transaction_completed", "about"), places.REQUEST_LINE),
        )
