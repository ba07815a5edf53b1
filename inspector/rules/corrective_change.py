from inspector.rules.kit import *
from inspector.rules.same_resources_change import REPEATED, in_each_run


@rule(
    "P02",
    Severity.NOTICE,
    at=(Kind.REPORT,),
    title="corrective change: a resource had been changed on the node",
    fix=(
        advice("compare the values before and after, in the report"),
        advice("find out what changes these resources other than Puppet: an update, another tool, a colleague"),
    ),
    source="docs/protocol.md#report-status",
    good=lambda: [talk(plugins(), catalog(), report(result="changed", corrective_change=False))],
    bad=lambda: [
        talk(
            plugins(), catalog(),
            report(result="changed", corrective_change=True, resource_statuses={
                "File[/etc/app.conf]": {"changed": True, "corrective_change": True},
            }),
        ),
    ],
)  # fmt: skip
def corrective_change(case: ExchangeCase) -> Iterator[Statement]:
    """The agent restored a value that an earlier run had already set: it was changed on the node in between. Puppet is
    meant to do this, but check it if you did not expect a change. With noop it only reports the difference. Execs and
    notifies are left out, they have no value; what changes in every run is P11."""
    report = case.step.request
    if not isinstance(report, d.Report) or not report.corrective_change:
        return
    drifted = {
        ref: status
        for ref, status in report.resource_statuses.items()
        if status.corrective_change and not status.failed and not ref.startswith(("Exec[", "Notify["))
    }
    repeated = in_each_run(case, drifted)
    repaired = [ref for ref, status in drifted.items() if status.changed and repeated[ref] < REPEATED]
    found = [ref for ref, status in drifted.items() if not status.changed]
    if repaired:
        yield Statement(f"drift was repaired: {some(repaired)}", at=places.meaning(repaired[0]))
    if found:
        yield Statement(f"drift was found and not repaired (noop): {some(found)}", at=places.meaning(found[0]))
    if not report.resource_statuses and not report.noop:
        yield Statement("drift was repaired", at=places.meaning("corrective_change"))
