"""A survey in words and for JSON."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import msgspec

from inspector.columns import Count, Number, Utc
from inspector.explain.readiness.changes import Effect, Unchecked, unchecked_for
from inspector.rules import fixes
from inspector.rules.words import cut, some
from inspector.summaries import wording
from inspector.summaries.wording import Labelled
from inspector.text import clean, plural, utc, utc_minute

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspector.explain.readiness.changes import Change
    from inspector.explain.readiness.survey import Evidence, Survey

PRODUCTS = {
    4: "Puppet 4", 5: "Puppet 5", 6: "Puppet 6", 7: "Puppet 7", 8: "Puppet 8 and OpenVox 8", 9: "OpenVox 9"
}  # fmt: skip
COLUMNS = ("change", "since", "nodes", "last", "record")


def head(survey: Survey) -> str:
    """Return what was looked at, in a sentence."""
    versions = Counter(version or "unknown version" for version in survey.agents.values())
    named = {evidence.node for change in survey.affected for evidence in survey.evidence(change)}
    if others := len(named - survey.agents.keys()):
        versions["no run of an agent"] = others
    nodes = plural(versions.total(), "node")
    if versions:
        nodes += f" ({', '.join(f'{count}x {clean(version)}' for version, count in versions.most_common(6))})"
    masters = f", master {clean(', '.join([*survey.masters][:6]))}" if survey.masters else ""
    affected = f"{len(survey.affected)} of {len(survey.changes)} changes concern what was recorded"
    return f"{PRODUCTS[survey.target]}: {affected}, of {nodes}{masters}"


def rows(survey: Survey) -> list[list[str]]:
    """Return the cells of each change that concerns a node, for ``COLUMNS``."""
    found = []
    for change in survey.affected:
        evidence = survey.evidence(change)
        last = f"{utc_minute(evidence[0].time)} UTC"
        found.append([change.title, str(change.since), str(len(evidence)), last, _record(survey, evidence[0])])
    return found


def details(survey: Survey, change: Change, width: int | None) -> Iterator[str]:
    """Yield the lines about a change that concerns nodes."""
    room = width or wording.PLAIN
    evidence = survey.evidence(change)
    yield f"{change.title} ({change.effect}, {PRODUCTS[change.since]})"
    latest = evidence[0]
    shows = f"{_record(survey, latest)} of {clean(cut(latest.node, 100))}: {clean(cut(latest.text))}"
    for part in (
        Labelled("  nodes:  ", clean(some([each.node for each in evidence], 10))),
        Labelled("  shows:  ", shows),
        Labelled("  what:   ", change.what),
        Labelled("  do:     ", change.fix),
        Labelled("  source: ", "; ".join(change.sources)),
    ):
        yield from part.lines(room)


def rest(survey: Survey, width: int | None) -> Iterator[str]:
    """Yield what was recorded and concerns no node, what was not recorded, and what cannot be seen in traffic."""
    room = width or wording.PLAIN
    past = survey.past
    if past:
        titles = "; ".join(change.title for change in past)
        yield from wording.wrapped("recorded, and no node is concerned: ", titles, room, "  ")
        yield ""
    absent = [change.title for change in survey.changes if change not in past and change not in survey.affected]
    if absent:
        yield from wording.wrapped("not recorded: ", "; ".join(absent), room, "  ")
        yield ""
    yield "not checked, because traffic does not show it:"
    for row in unchecked_for(survey.target):
        yield from wording.wrapped("  - ", f"{row.title}: {row.how}", room)
    if survey.unanalyzed:
        yield f"  - {survey.unanalyzed} records that were not analyzed: see `puppet-inspector check`"


class PlainAgent(msgspec.Struct):
    """A node whose agent ran."""

    node: str
    version: str | None
    """The latest."""


class PlainEvidence(msgspec.Struct):
    """A node that a change concerns."""

    node: str
    """Its certname; its address if that is not known."""
    records: Number
    """How many records show it."""
    last: Utc
    """When the latest of them ended."""
    capture: str
    record: Count
    """The latest of them."""
    shows: str
    """What it shows."""


class PlainChange(msgspec.Struct):
    """One removal or changed default."""

    key: str
    """Its name, which stays the same."""
    title: str
    since: int
    """The major version that brought it."""
    effect: Effect
    what: str
    """What happens."""
    steps: list[fixes.PlainStep]
    """What to do."""
    sources: tuple[str, ...]
    recorded: bool
    """Whether traffic showed what it is about; without ``nodes``, it concerns none of those that were recorded."""
    nodes: list[PlainEvidence]
    """The nodes that it concerns, the latest first; empty if nothing showed one."""


class PlainSurvey(msgspec.Struct, rename={"target": "for"}):
    """What captures show of the way to a version."""

    target: int
    """8: Puppet 8 and OpenVox 8; 9: OpenVox 9, with all that came before."""
    captures: list[str]
    agents: list[PlainAgent]
    """The nodes whose agent ran."""
    masters: list[str]
    """The versions of the masters (X-Puppet-Version)."""
    unanalyzed: Count
    """Records that were not analyzed, or not completely."""
    changes: list[PlainChange]
    """Every change that was looked for, the oldest first."""
    not_checked: list[Unchecked]
    """What concerns the upgrade and cannot be seen in traffic."""


def plain(survey: Survey) -> PlainSurvey:
    """Return a survey for JSON."""
    return PlainSurvey(
        target=survey.target,
        captures=survey.captures,
        agents=[PlainAgent(node, version or None) for node, version in sorted(survey.agents.items())],
        masters=[*survey.masters],
        unanalyzed=survey.unanalyzed,
        changes=[
            PlainChange(
                key=change.key,
                title=change.title,
                since=change.since,
                effect=change.effect,
                what=change.what,
                steps=fixes.fields(change.fix),
                sources=change.sources,
                recorded=change.key in survey.found or change.key in survey.settled,
                nodes=[_plain(each) for each in survey.evidence(change)],
            )
            for change in survey.changes
        ],
        not_checked=[*unchecked_for(survey.target)],
    )


def _plain(evidence: Evidence) -> PlainEvidence:
    return PlainEvidence(
        evidence.node, evidence.records, utc(evidence.time), evidence.capture, evidence.record, evidence.text
    )


def _record(survey: Survey, evidence: Evidence) -> str:
    name = evidence.capture.rpartition("/")[2]
    where = f" of {clean(name)}" if len(survey.captures) > 1 else ""
    return f"record {evidence.record}{where}"
