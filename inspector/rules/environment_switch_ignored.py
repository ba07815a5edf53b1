from inspector.rules.kit import *


@rule(
    "R07",
    Severity.ERROR,
    generations=("3", *SINCE_4),
    title="agent does not switch to the catalog's environment",
    fix=(
        on_node("see whether strict mode is on",
                "puppet config print strict_environment_mode environment --section agent"),
        on_node("set the environment to the master's", "puppet config set environment <name> --section agent",
                only_if="it is on"),
        on_node("or turn strict mode off", "puppet config set strict_environment_mode false --section agent",
                only_if="it is on"),
    ),
    source="docs/protocol.md#change-of-environment; puppet 7.23.0 lib/puppet/configurer.rb",
    good=lambda: [
        talk(
            plugins(), catalog(environment="staging"), plugins(environment="staging"),
            catalog(environment="staging", asks="staging"), metadata("modules/demo/app.conf", environment="staging"),
            report(environment="staging"),
        ),
    ],
    bad=lambda: [
        talk(
            plugins(), catalog(environment="staging"), metadata("modules/demo/app.conf"),
            report(environment="staging"),
        ),
        talk(plugins(), catalog(environment="staging"), report(result="failed")),
    ],
    also=("R08",),
)  # fmt: skip
def environment_switch_ignored(case: RunCase) -> Iterator[Statement]:
    """The master sent a catalog for a different environment than the agent had requested, and the agent did not switch
    to it. With strict_environment_mode the agent refuses such a catalog and the run fails. An agent that applies the
    catalog with files of the old environment mixes two versions of the code."""
    run = case.run
    catalog = run.catalogs[-1] if run.catalogs else None
    if (
        run.tool
        or catalog is None
        or not catalog.usable
        or catalog.requested is None
        or catalog.environment in (None, catalog.requested)
    ):
        return
    requested, received = cut(catalog.requested, 60), cut(catalog.environment, 60)
    seq = run.file_environments.get(catalog.requested)
    report = run.reports[-1] if run.reports else None
    if seq is not None and catalog.environment not in run.file_environments:
        yield Statement(
            f"the catalog is for {received}, but the agent requests its files from {requested}",
            (catalog.seq, seq),
            at=(places.meaning(f"environment: {catalog.environment}", "about"), places.REQUEST_LINE),
        )
    elif not run.file_environments and report and report.report and report.report.environment == catalog.requested:
        yield Statement(
            f"the agent requested {requested} and did not accept the catalog for {received}",
            (catalog.seq, report.seq),
            at=(places.meaning("environment: ", "about"), places.REQUEST_LINE),
        )
