from inspector.rules.kit import *


def incomplete(case: ExchangeCase, report: d.Report) -> bool:
    """Whether the agent had a catalog, and did not finish applying it."""
    if report.transaction_completed is not False:
        return False
    catalog = case.run.catalogs[-1] if case.run.catalogs else None
    refused = catalog is not None and catalog.environment not in (None, catalog.requested)  # R06, R07
    # Without a catalog there is no transaction to complete.
    return bool(report.resource_statuses) or (catalog is not None and catalog.usable and not refused)


def not_applied(report: d.Report) -> str:
    """Return the agent's own reason why it did not apply the catalog (P15); empty without one."""
    cause = reason(report)
    # 7 reports so an error whose text is not UTF-8: an answer that it could not unpack.
    own = cause.removeprefix('Received a Log attribute with invalid encoding:"')
    return cause if own.startswith(("Failed to apply catalog: ", "Could not retrieve catalog from ")) else ""


@rule(
    "P05",
    Severity.ERROR,
    at=(Kind.REPORT,),
    title="catalog not applied completely",
    fix=(
        on_node("look in the agent's log for what stopped it: a signal (a reboot, somebody, another tool), or "
                "its limit"),
        on_node("see that limit", "puppet config print runtimeout --section agent"),
    ),
    source="docs/protocol.md#report-status",
    good=lambda: [
        talk(plugins(), catalog(), report(transaction_completed=True)),
        talk(plugins(), report(result="failed", transaction_completed=False)),
    ],
    bad=lambda: [
        talk(
            plugins(), catalog(),
            report(result="failed", transaction_completed=False),
        ),
    ],
)  # fmt: skip
def transaction_incomplete(case: ExchangeCase) -> Iterator[Statement]:
    """The agent received a catalog and started to apply it, but did not finish: some resources were not evaluated. The
    agent was stopped, or exceeded runtimeout (an hour by default)."""
    report = case.step.request
    if isinstance(report, d.Report) and incomplete(case, report) and not not_applied(report):
        catalog = case.run.catalogs[-1] if case.run.catalogs else None
        cause = reason(report)
        yield Statement(
            "the agent did not apply its catalog completely" + (f": {cause}" if cause else ""),
            (catalog.seq, case.exchange.seq) if catalog else (),
            at=(places.meaning("transaction_completed", "about"), places.REQUEST_LINE),
        )
