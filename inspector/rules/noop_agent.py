from inspector.rules.kit import *
from inspector.text import plural


@rule(
    "R18",
    Severity.NOTICE,
    at=(Kind.REPORT,),
    title="agent changes nothing (noop mode)",
    fix=(
        on_node(
            "turn noop off",
            "puppet config set noop false --section agent",
            only_if="the agent should apply its catalog",
        ),
        on_node("leave out --noop where the agent is started", only_if="the agent should apply its catalog"),
    ),
    source="docs/protocol.md#report-status",
    good=lambda: [talk(plugins(), catalog(), report(noop=False))],
    bad=lambda: [talk(plugins(), catalog(), report(noop=True))],
)
def noop_agent(case: ExchangeCase) -> Iterator[Statement]:
    """The agent ran in noop mode: it compared and reported, but changed nothing. The run is successful, and the node
    stays as it is."""
    report = case.step.request
    if isinstance(report, d.Report) and report.noop:
        pending = whole(report.counts.get("out_of_sync"))
        several = plural(pending, "resource is out of sync", "resources are out of sync")
        suffix = f", {several}" if pending else ""
        yield Statement(f"the agent runs with noop: nothing is changed{suffix}", at=places.meaning("noop", "about"))
