from inspector.rules.data_lookup_failed import DATA
from inspector.rules.environment_of_classifier_missing import ABSENT
from inspector.rules.fixes import Fix
from inspector.rules.kit import *
from inspector.rules.node_not_classified import UNCLASSIFIED
from inspector.rules.puppetdb_failed import PUPPETDB
from inspector.runs.run import Run

BROKEN = "Server Error: Evaluation Error: Unknown variable: 'x'. (file: /etc/puppetlabs/code/site.pp, line: 3)"
ELSEWHERE = (UNCLASSIFIED, ABSENT, DATA, PUPPETDB)
"""Error messages of other causes than the code: S25 to S28."""
_NO_FACTS: Fix = (
    advice("correct nothing on the node or in its code: this version of the command sends no facts, which is its own "
           "mistake"),
    on_node("compile with its facts instead", "puppet agent -t --noop"),
)  # fmt: skip


def _fix(run: Run) -> Fix | None:
    return _NO_FACTS if _sent_no_facts(run) else None


def _sent_no_facts(run: Run) -> bool:
    """Whether the run is a command that asked for a catalog without facts; masters up to 3 use the last ones."""
    command = run.command
    return bool(command and command.certain and run.dialect == "v3" and run.catalogs and run.catalogs[-1].without_facts)


@rule(
    "S01",
    Severity.ERROR,
    at=(Kind.CATALOG,),
    refused=True,
    otherwise="warning for a command such as `puppet catalog download`",
    title="the master could not compile the catalog",
    fix=(
        advice("correct the code that the message names (file and line), and deploy it"),
        on_master("read its log (puppetserver.log) of that time", only_if="the message names no file"),
        on_node("test it", "puppet agent -t --noop"),
    ),
    instead=_fix,
    source="docs/protocol.md#failed-catalogs; docs/protocol.md#endpoint-catalog",
    good=lambda: [talk(plugins(), catalog(), report())],
    bad=lambda: [
        talk(plugins(), catalog(status=500, text=BROKEN), report(result="failed")),
        talk(plugins(), catalog(status=400, text="Could not find class web"), report(result="failed"), version="3.8.7"),
    ],
    also=("R20", "P01"),
)
def catalog_failed(case: ExchangeCase) -> Iterator[Statement]:
    """The master answered the catalog request with an error: the Puppet code or a function that it calls failed for
    this node. The agent skips the run, or applies its cached catalog if that is allowed, and reports the
    failure."""
    text = compile_error(case)
    if text is None or any(cause.search(text) for cause in ELSEWHERE):
        return
    command = case.run.command
    without = f"`{command.name}` sent no facts: " if command and _sent_no_facts(case.run) else ""
    yield Statement(
        f"no catalog for {case.name}: {without}{brief(text) or f'status {case.status} without a reason'}",
        severity=Severity.WARNING if command and command.certain else None,
    )
