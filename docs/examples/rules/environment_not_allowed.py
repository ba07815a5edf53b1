from inspector.rules.kit import *

ALLOWED = ("production", "staging")


@rule(
    "U10",
    Severity.ERROR,
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
