"""P03 and P17: reports and facts that the master did not accept."""

from inspector.rules.kit import *


@rule(
    "P03",
    Severity.ERROR,
    at=(Kind.REPORT,),
    title="report rejected",
    fix=(
        on_master("read its log of that time: a report processor, a full disk, PuppetDB"),
        on_master("see which report processors there are", "puppet config print reports --section master"),
    ),
    source="docs/protocol.md#end-of-a-run",
    good=lambda: [talk(plugins(), catalog(), report(status=204))],
    bad=lambda: [talk(plugins(), catalog(), report(status=500))],
)
def report_rejected(case: ExchangeCase) -> Iterator[Statement]:
    """The master did not accept the report. The node has applied its catalog, but dashboards and PuppetDB do not show
    the run, and the agent's exit code does not show the failure."""
    status, run = case.status, case.run
    if status is None or 200 <= status < 300 or status in (401, 403) or run.tool:  # not authorised: S02
        return
    response = case.exchange.response
    header = "location" if status in (301, 302, 307) else "retry-after" if status in (429, 503) else ""
    if header and response and response.header(header):
        return  # sent again, later or to another master
    answer = case.step.response
    gone = isinstance(answer, d.ErrorDocument) and answer.no_environment
    text = brief(case.answer)
    yield Statement(
        f"the master answered the report with {status}{f': {text}' if text else ''}",
        printed=as_printed(case, case.answer),
        follows=(case.exchange.seq,) if gone else (),  # R09
    )


_FACTS = altered(report(), request={"target": "/puppet/v3/facts/node1.example?environment=production"})
_REFUSED = altered(_FACTS, response={"status": 500, "body": b'{"message": "Server Error: connect timed out"}'})


@rule(
    "P17",
    Severity.WARNING,
    at=(Kind.FACTS,),
    title="facts rejected",
    fix=(
        on_master("read its log of that time: PuppetDB, or where else it stores facts"),
        on_master("see where it stores them", "puppet config print facts_terminus --section master"),
    ),
    source="docs/protocol.md#endpoint-facts",
    good=lambda: [talk(plugins(), catalog(), _FACTS, report()), talk(_FACTS)],
    bad=lambda: [talk(plugins(), catalog(), _REFUSED, report()), talk(_REFUSED)],
)
def facts_rejected(case: ExchangeCase) -> Iterator[Statement]:
    """The master did not accept the facts that `puppet facts upload`, or an agent with resubmit_facts at the end of its
    run, sent. Queries for facts give the old ones."""
    status = case.status
    if status is None or status < 400 or status in (401, 403, 429, 503) or case.run.tool:  # S02, S05, S24
        return
    text = brief(case.answer)
    yield Statement(
        f"the master answered the facts with {status}{f': {text}' if text else ''}",
        printed=as_printed(case, case.answer),
    )
