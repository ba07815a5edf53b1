"""R20."""

from collections.abc import Iterator

from inspector.model import Severity, Visible
from inspector.protocol import documents as d
from inspector.protocol.kinds import Kind
from inspector.rules import ExchangeCase, On, Statement, places, rule
from inspector.rules.words import cut, reason
from inspector.runs.examples import catalog, plugins, report, talk, unanswered


@rule(
    "R20",
    Severity.ERROR,
    On.EXCHANGE,
    at=(Kind.REPORT,),
    visible=Visible.WIRE,
    title="no catalog, run skipped",
    remedy="Fix the cause that the message names. 500 or 400: the code in the master's answer, often with file and "
    "line. 403: the certname and the master's auth.conf. 503 or no answer: check whether the master is up (`systemctl "
    "status puppetserver`) or too busy. Then, on the node, `puppet agent -t`.",
    source="docs/protocol.md#failed-catalogs; puppet 7.23.0 lib/puppet/configurer.rb",
    good=lambda: [
        talk(plugins(), catalog(), report(told="failed", resource_statuses={"Notify[x]": {"skipped": True}})),
    ],
    bad=lambda: [
        talk(plugins(), catalog(status=500), report(told="failed")),
        talk(plugins(), unanswered(catalog()), report(told="failed")),
    ],
    also=("S01", "T14"),
)
def run_skipped(case: ExchangeCase) -> Iterator[Statement]:
    """The agent got no catalog and had no cached one to fall back on: nothing was applied on the node. Its report shows
    a failed run without resources."""
    told, run = case.step.request, case.run
    last = run.catalogs[-1] if run.catalogs else None
    if not isinstance(told, d.Report) or run.tool or last is None or last.usable:
        return
    if told.status != "failed" or told.resource_statuses or told.cached_catalog_status == "on_failure":
        return
    if last.status is None:
        why = f"the request got no answer ({cut(last.text)})" if last.text else "the request got no answer"
    elif last.status >= 300:
        why = f"{last.status} {cut(last.text)}".rstrip()
    else:
        why = reason(told) or cut(last.text)
    yield Statement(
        f"nothing was applied because there was no catalog: {why}",
        (last.seq, case.exchange.seq),
        at=(places.meaning("status: ", "about"), places.error(last.text), places.NO_ANSWER, places.STATUS),
    )
