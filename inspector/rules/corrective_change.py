"""P02."""

from collections.abc import Iterator

from inspector.model import Severity, Visible
from inspector.protocol import documents as d
from inspector.rules import Case, On, rule
from inspector.rules.told import some
from inspector.runs.examples import catalog, plugins, report, talk


@rule(
    "P02",
    Severity.NOTICE,
    On.EXCHANGE,
    at=("report",),
    visible=Visible.WIRE,
    title="corrective change: something had been altered on the node",
    remedy="Find out who changes these resources besides Puppet: an update, another tool, a colleague. The report has "
    "the values before and after.",
    source="docs/protocol.md#report-status",
    good=lambda: [talk(plugins(), catalog(), report(told="changed", corrective_change=False))],
    bad=lambda: [
        talk(
            plugins(), catalog(),
            report(told="changed", corrective_change=True, resource_statuses={
                "File[/etc/app.conf]": {"changed": True, "corrective_change": True},
            }),
        ),
    ],
)  # fmt: skip
def corrective_change(case: Case) -> Iterator[str]:
    """The agent put something back that an earlier run had already set: it was changed on the node in between. That
    is what Puppet is for, but worth a look if it is not expected. An exec that runs each time counts as well."""
    told = case.step.request
    if not isinstance(told, d.Report) or not told.corrective_change:
        return
    named = [ref for ref, each in told.resource_statuses.items() if each.corrective_change]
    yield f"drift was repaired: {some(named)}" if named else "drift was repaired"
