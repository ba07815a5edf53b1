"""U10."""

from collections.abc import Iterator

from inspector.model import Severity
from inspector.protocol.kinds import Kind
from inspector.rules import On, rule
from inspector.rules.cases import ExchangeCase, Statement
from inspector.rules.fixes import on_node
from inspector.runs.examples import catalog, report, talk

ALLOWED = ("production", "staging")


@rule(
    "U10",
    Severity.ERROR,
    On.EXCHANGE,
    at=(Kind.CATALOG,),
    title="environment that this site does not use",
    fix=(on_node("take the setting away", "puppet config delete environment --section agent"),),
    good=lambda: [talk(catalog(), report())],
    bad=lambda: [talk(catalog(environment="feature_x"), report())],
)
def environment_not_allowed(case: ExchangeCase) -> Iterator[Statement]:
    """Nodes use the environments production and staging only; others are for tests on a workstation."""
    if case.run.environment not in ALLOWED:
        yield Statement(f"the node asked for the environment {case.run.environment}")
