"""S01."""

from collections.abc import Iterator

from inspector.model import Severity, Visible
from inspector.protocol import documents as d
from inspector.protocol.kinds import Kind
from inspector.rules import On, rule
from inspector.rules.cases import ExchangeCase, Statement
from inspector.rules.words import brief
from inspector.runs.examples import catalog, plugins, report, talk

BROKEN = "Server Error: Evaluation Error: Unknown variable: 'x'. (file: /etc/puppetlabs/code/site.pp, line: 3)"


@rule(
    "S01",
    Severity.ERROR,
    On.EXCHANGE,
    at=(Kind.CATALOG,),
    refused=True,
    visible=Visible.WIRE,
    title="the master could not compile the catalog",
    remedy="Correct the code that the message names (file and line), deploy it, and test it on the node: `puppet "
    "agent -t --noop`. If the message names no file, check the master's log (puppetserver.log) at that time.",
    source="docs/protocol.md#failed-catalogs; docs/protocol.md#endpoint-catalog",
    good=lambda: [talk(plugins(), catalog(), report())],
    bad=lambda: [
        talk(plugins(), catalog(status=500, text=BROKEN), report(result="failed")),
        talk(plugins(), catalog(status=400, text="Could not find class web"), report(result="failed"), version="3.8.7"),
    ],
    also=("R20", "P01"),
)
def catalog_failed(case: ExchangeCase) -> Iterator[Statement]:
    """The master answered the catalog request with an error: the Puppet code, its data or a function that it calls
    failed for this node. The agent skips the run, or applies its cached catalog if that is allowed, and reports the
    failure."""
    status, match = case.status, case.step.match
    legacy = match is not None and match.dialect == "legacy"
    if status is None or status == 503 or (status < 500 and not (legacy and status == 400)):
        return
    answer = case.step.response
    if isinstance(answer, d.ErrorDocument) and answer.html:  # not the master's answer: S15
        return
    yield Statement(f"no catalog for {case.name}: {brief(case.answer) or f'status {status} without a reason'}")
