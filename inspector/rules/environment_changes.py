"""R06, R07 and R08: environments that the master changes."""

from inspector.rules.kit import *
from inspector.rules.puppet_commands import safe_name

_POSTS = 5
"""Catalog requests that an agent sends at most: one, and four retries."""


@rule(
    "R06",
    Severity.ERROR,
    generations=("3", *SINCE_4),
    otherwise="warning if the agent settled in the end",
    title="environment keeps changing",
    fix=(
        on_master("let the ENC return one environment for {name} whatever the facts are"),
        on_node("or let it return none, and set it there", "puppet config set environment <name> --section agent"),
    ),
    source="docs/protocol.md#change-of-environment; puppet 7.23.0 lib/puppet/configurer.rb",
    explains=("R05", "R07", "R08"),
    without_catalog=NO_CATALOG,
    good=lambda: [
        talk(
            plugins(), catalog(environment="staging"), plugins(environment="staging"),
            catalog(environment="staging", asks="staging"), report(environment="staging"),
        ),
    ],
    bad=lambda: [
        talk(
            plugins(), catalog(environment="b", asks="a"), plugins(environment="b"),
            catalog(environment="a", asks="b"), plugins(environment="a"),
            catalog(environment="b", asks="a"), plugins(environment="b"),
            catalog(environment="a", asks="b"), plugins(environment="a"),
            catalog(environment="b", asks="a"), report(environment="b", result="failed"),
        ),
    ],
)  # fmt: skip
def environment_flapping(case: RunCase) -> Iterator[Statement]:
    """The agent requested one environment, was given another, switched, and was given yet another. Each switch costs
    pluginsync and a compilation; at the fifth catalog the agent gives up and the run fails. The classifier's answer
    depends on something that changes with the environment, or two classifiers disagree."""
    usable = [answer for answer in case.run.catalogs if answer.usable]
    switched = [answer for answer in usable if answer.environment not in (None, answer.requested)]
    if len(switched) < 2:
        return
    steps = ", ".join(
        f"{cut(answer.requested or '?', 40)} -> {cut(answer.environment, 40)}" for answer in switched[:_POSTS]
    )
    settled = len(switched) < _POSTS
    what = f"changed {len(switched)} times in one run" if settled else "never settled, the agent gives up"
    yield Statement(
        f"the environment {what} (requested -> received: {steps})",
        tuple(answer.seq for answer in switched),
        severity=Severity.WARNING if settled else None,
        at=(places.meaning("environment: ", "about"), places.REQUEST_LINE),
    )


def _assigned(run: Run) -> str:
    """Return the environment that the master assigned, as a command takes it."""
    names = [answer.environment for answer in run.catalogs if answer.usable and answer.environment]
    return safe_name(names[-1] if names else None, "<name>")


def _follow(name: str) -> Fix:
    return (
        on_node("see whether strict mode is on",
                "puppet config print strict_environment_mode environment --section agent"),
        on_node("set the environment to the master's", f"puppet config set environment {name} --section agent",
                only_if="it is on"),
        on_node("or turn strict mode off", "puppet config set strict_environment_mode false --section agent",
                only_if="it is on"),
    )  # fmt: skip


@rule(
    "R07",
    Severity.ERROR,
    generations=("3", *SINCE_4),
    title="agent does not switch to the catalog's environment",
    fix=_follow("<name>"),
    instead=lambda run: _follow(_assigned(run)),
    source="docs/protocol.md#change-of-environment; puppet 7.23.0 lib/puppet/configurer.rb",
    explains=("R08", "P05", "P15"),
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


def _of_2_7(run: Run) -> Fix | None:
    """Return the fix for an agent that does not follow the master, and has no command that sets the environment."""
    if run.generation != "2.7":
        return None
    return (
        on_node(f"set the environment that the master assigns: `environment = {_assigned(run)}` in [agent] of its "
                "puppet.conf"),
        on_node("or upgrade it: agents follow the master from version 3 on"),
    )  # fmt: skip


@rule(
    "R08",
    Severity.NOTICE,
    at=(Kind.NODE, Kind.CATALOG),
    otherwise="warning for agents of 2.7",
    title="master overrides the environment",
    fix=(
        on_master("remove {name}'s environment from the ENC; the one in puppet.conf is only a request by the agent",
                  only_if="the classifier is not meant to decide (otherwise nothing is wrong)"),
    ),
    instead=_of_2_7,
    source="docs/protocol.md#change-of-environment; docs/protocol.md#node-request",
    good=lambda: [talk(node(), plugins(), catalog(), report())],
    bad=lambda: [
        talk(
            node(environment="staging"), plugins(environment="staging"),
            catalog(environment="staging", asks="staging"), report(environment="staging"),
        ),
        talk(plugins(), catalog(environment="staging"), report(), version="2.7.26"),
    ],
)  # fmt: skip
def environment_overridden(case: ExchangeCase) -> Iterator[Statement]:
    """The agent requested one environment, and the master assigned another: the classifier decides. The agent follows,
    so the environment in puppet.conf on the node has no effect. An agent of 2.7 applies the catalog with files of the
    environment that it requested, and so mixes two versions of the code."""
    answer, match = case.step.response, case.step.match
    if not isinstance(answer, d.Node | d.Catalog) or not answer.environment or match is None or case.run.tool:
        return
    requested = match.environment
    if isinstance(case.step.request, d.CatalogRequest):
        requested = case.step.request.environment or requested
    if requested and answer.environment != requested:
        old = case.run.generation == "2.7"
        files = "; an agent of 2.7 requests its files from the former all the same" if old else ""
        yield Statement(
            f"the agent requested {cut(requested, 60)}, the master assigns {cut(answer.environment, 60)}{files}",
            severity=Severity.WARNING if old else None,
            at=(places.meaning(f"environment: {answer.environment}"), places.REQUEST_LINE),
        )
