from collections.abc import Iterable

from inspector.rules.cases import Case
from inspector.rules.kit import *

REPEATED = 3
"""From how many runs in a row on a resource counts as one that changes in every run."""


def in_each_run(case: Case, refs: Iterable[str]) -> dict[str, int]:
    """Return for each resource in how many runs in a row, up to this one, it was changed."""
    previous = [earlier for earlier in case.ledger.fleet.before(case.run) if Phase.REPORT in earlier.phases]
    return {ref: 1 + in_a_row(ref in earlier.changed for earlier in reversed(previous)) for ref in refs}


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
    good=lambda: [
        talk(*_runs("File[/etc/a]", "File[/etc/b]", "File[/etc/a]"), *_runs("Notify[hello]") * 3),
    ],
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
    rows = in_each_run(case, changed)
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
