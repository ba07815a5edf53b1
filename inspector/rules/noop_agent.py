"""R18."""

from collections.abc import Iterator

from inspector.model import Severity, Visible
from inspector.protocol import documents as d
from inspector.rules import Case, On, rule
from inspector.rules.told import whole
from inspector.runs.examples import catalog, plugins, report, talk


@rule(
    "R18",
    Severity.NOTICE,
    On.EXCHANGE,
    at=("report",),
    visible=Visible.WIRE,
    title="agent changes nothing: noop",
    remedy="If it is to apply its catalog: `puppet config set noop false --section agent` on the node, and no --noop "
    "where it is started.",
    source="docs/protocol.md#report-status",
    good=lambda: [talk(plugins(), catalog(), report(noop=False))],
    bad=lambda: [talk(plugins(), catalog(), report(noop=True))],
)
def noop_agent(case: Case) -> Iterator[str]:
    """The agent ran with noop: it compared and reported, but changed nothing. The run is well, the node stays as it
    is."""
    told = case.step.request
    if isinstance(told, d.Report) and told.noop:
        pending = whole(told.counts.get("out_of_sync"))
        rest = f", {pending} resources are out of sync" if pending else ""
        yield f"the agent runs with noop: nothing is changed{rest}"
