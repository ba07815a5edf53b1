"""P02 and P11: corrective changes, and changes in every run."""

from inspector.rules.kit import *
from inspector.runs.run_history import REPEATED


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
    notifies are left out, they have no value, and so are resources that failed in the run before: Puppet takes what it
    could not write then for set. What changes in every run is P11."""
    report = case.step.request
    if not isinstance(report, d.Report) or not report.corrective_change:
        return
    drifted = {
        ref: status
        for ref, status in report.resource_statuses.items()
        if status.corrective_change and not status.failed and not ref.startswith(("Exec[", "Notify["))
    }
    known = case.ledger.fleet.not_failed_before(case.run, drifted)
    drifted = {ref: status for ref, status in drifted.items() if ref in known}
    repeated = case.ledger.fleet.changed_in_a_row(case.run, drifted)
    repaired = [ref for ref, status in drifted.items() if status.changed and repeated[ref] < REPEATED]
    found = [ref for ref, status in drifted.items() if not status.changed]
    if repaired:
        yield Statement(f"drift was repaired: {some(repaired)}", at=places.meaning(repaired[0]))
    if found:
        yield Statement(f"drift was found and not repaired (noop): {some(found)}", at=places.meaning(found[0]))
    if not report.resource_statuses and not report.noop:
        yield Statement("drift was repaired", at=places.meaning("corrective_change"))


@rule(
    "P11",
    Severity.WARNING,
    at=(Kind.REPORT,),
    otherwise="notice below the threshold warning_runs, and for execs",
    title="the same resources change in every run",
    fix=(
        advice("compare the values before and after each change, in the events of the reports"),
        advice("stop whatever else reverts the change, or remove the second declaration of the same thing"),
        advice("give it `unless`, `onlyif` or `creates`", only_if="it is an exec"),
    ),
    source="docs/protocol.md#reports",
    explains=("F05",),
    good=lambda: [talk(*_runs("File[/etc/a]", "File[/etc/b]", "File[/etc/a]"), *_runs("Notify[hello]") * 3)],
    bad=lambda: [talk(*_runs("File[/etc/a]") * 3), talk(*_runs("File[/etc/a]") * 5)],
)
def same_resources_change(
    case: ExchangeCase, *, runs: float = REPEATED, warning_runs: float = 5
) -> Iterator[Statement]:
    """A resource that Puppet has set needs no change in the next run. These changed each time: something reverts them,
    two resources set the same thing to different values, or the value is never read back as it was written. Execs
    without a condition run each time by design: a notice."""
    changed = {ref for ref in case.run.changed if not ref.startswith("Notify[")}  # a notify always counts as a change
    if not changed:
        return
    previous = [earlier for earlier in case.ledger.fleet.before(case.run) if Phase.REPORT in earlier.phases]
    rows = case.ledger.fleet.changed_in_a_row(case.run, changed)
    for execs in (True, False):
        refs = sorted(ref for ref, row in rows.items() if row >= runs and ref.startswith("Exec[") is execs)
        if refs:
            longest = max(rows[ref] for ref in refs)
            seqs = (*(earlier.seqs[1] for earlier in previous[1 - longest :]), case.exchange.seq)
            severity = Severity.NOTICE if execs or longest < warning_runs else Severity.WARNING
            yield Statement(
                f"changed in each of the last {longest} runs: {some(refs)}",
                seqs,
                severity=severity,
                at=(places.meaning(refs[0], "resources"), places.REQUEST_LINE),
            )


def _runs(*refs: str) -> list[ExamplePart]:
    parts: list[ExamplePart] = []
    for number, ref in enumerate(refs):
        uuid = f"{ref}-{number}"
        changed_report = report(uuid=uuid, result="changed", resource_statuses={ref: {"changed": True}})
        parts += [plugins(), catalog(uuid=uuid), changed_report, wait(1800)]
    return parts
