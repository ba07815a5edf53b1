from inspector.rules.kit import *

POSTS = 5
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
    also=("R08",),
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
        f"{cut(answer.requested or '?', 40)} -> {cut(answer.environment, 40)}" for answer in switched[:POSTS]
    )
    seqs = tuple(answer.seq for answer in switched)
    if len(switched) >= POSTS:
        yield Statement(
            f"the environment never settled, the agent gives up (requested -> received: {steps})",
            seqs,
            at=(places.meaning("environment: ", "about"), places.REQUEST_LINE),
        )
    else:
        yield Statement(
            f"the environment changed {len(switched)} times in one run (requested -> received: {steps})",
            seqs,
            severity=Severity.WARNING,
            at=(places.meaning("environment: ", "about"), places.REQUEST_LINE),
        )
