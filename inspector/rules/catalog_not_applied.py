from inspector.rules.kit import *
from inspector.rules.transaction_incomplete import incomplete, not_applied


def _log(message: str) -> list[dict[str, str]]:
    return [{"level": "err", "source": "Puppet", "message": message}]


@rule(
    "P15",
    Severity.ERROR,
    at=(Kind.REPORT,),
    title="the agent could not apply its catalog",
    fix=(
        advice(
            "correct what the message names: a parameter or provider of a resource, a dependency cycle, or a type in a "
            "module"
        ),
        on_node(
            "see that what the function calls works there (a server of secrets)", only_if="a deferred function failed"
        ),
        on_node("run the agent again", "puppet agent -t"),
    ),
    source="docs/protocol.md#report-status",
    good=lambda: [talk(plugins(), catalog(), report(transaction_completed=True))],
    bad=lambda: [
        talk(plugins(), catalog(), report(result="failed", transaction_completed=False, logs=_log(text)))
        for text in ("Failed to apply catalog: Found 1 dependency cycle", "Failed to apply catalog: vault is sealed")
    ],
)
def catalog_not_applied(case: ExchangeCase) -> Iterator[Statement]:
    """The agent received a catalog and applied nothing of it, for the reason that its report gives: a resource that is
    not valid, a dependency cycle, a type or a deferred function that failed, or a catalog that it could not read."""
    report = case.step.request
    if isinstance(report, d.Report) and incomplete(case, report) and (cause := not_applied(report)):
        catalog = case.run.catalogs[-1] if case.run.catalogs else None
        yield Statement(
            cause,
            (catalog.seq, case.exchange.seq) if catalog else (),
            at=(places.meaning("transaction_completed", "about"), places.REQUEST_LINE),
        )
