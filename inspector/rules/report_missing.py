"""R03."""

from collections.abc import Iterator

from inspector.model import Phase, Severity, Visible
from inspector.rules import Case, On, Said, rule
from inspector.rules.told import lasting, utc
from inspector.runs.examples import ca, catalog, plugins, report, talk, together, wait


@rule(
    "R03",
    Severity.ERROR,
    On.RUN_END,
    otherwise="notice while the run may still be going on",
    visible=Visible.CONSEQUENCE,
    title="no report after the catalog",
    remedy="On the node: `puppet config print report report_server --section agent`. If report is false: "
    "`puppet config set report true --section agent`. Else look for what ended the agent: its log, "
    "the kernel's (out of memory), systemd.",
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
def report_missing(case: Case, *, silence_s: float = 3600) -> Iterator[Said]:
    """The agent got its catalog, and no report followed: whether it was applied nobody knows. The agent was killed,
    the host went down in the middle, the report went to another server (report_server), or the agent sends none
    (report=false). While a run can still be going on, this is a notice only."""
    run = case.run
    catalog = run.catalogs[-1] if run.catalogs else None
    if run.tool or run.reports or catalog is None or not catalog.usable:
        return
    if run.transaction_uuid is None and run.major >= (3, 3):
        return  # `puppet catalog download`: only a run has a transaction_uuid
    past = case.ledger.fleet.before(run)
    if any(each.transaction_uuid == run.transaction_uuid and Phase.REPORT in each.phases
           for each in past if each.transaction_uuid):  # fmt: skip
        return
    proof = tuple(dict.fromkeys((catalog.seq, run.seqs[-1])))
    later = next((each for each in past if each.asked is not None and each.started > run.ended), None)
    silent = case.ledger.now - run.ended
    if later:
        yield Said(f"no report followed: the agent's next run began on {utc(later.started)}", (*proof, later.seqs[0]))
    elif silent >= silence_s:
        yield Said(f"no report followed within {lasting(silence_s)} after the last request of the run", proof)
    else:
        yield Said(f"no report followed until the capture ends, {lasting(max(0.0, silent))} later", proof,
                   Severity.NOTICE)  # fmt: skip
