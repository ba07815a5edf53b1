"""A comparison as JSON (docs/json/diff.schema.json)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

import msgspec

from inspector.columns import Count, Utc
from inspector.compare.differences import Change, Section
from inspector.compare.groups import Failed
from inspector.runs.snapshot import Outcome
from inspector.text import utc

if TYPE_CHECKING:
    from inspector.compare import differences
    from inspector.compare.comparison import Comparison
    from inspector.compare.documents import RunDocuments
    from inspector.compare.groups import Groups
    from inspector.compare.times import TimeCompared


class Run(msgspec.Struct):
    """A run that is compared."""

    label: str
    """The capture and the run."""
    run: int | None
    certname: str | None
    started: Utc


class Side(Run):
    """One of the two runs."""

    outcome: Outcome
    resources: int | None
    """Resources of the catalog; null: there is none."""
    catalog_version: str | None
    code_id: str | None


class Difference(msgspec.Struct):
    """One thing that differs."""

    section: Section
    name: str
    """A resource, the path of a fact, a file, a request, a property of the run."""
    part: str | None
    """A parameter of the resource, or another part; null: all of it."""
    change: Change
    before: Any
    """Null: not there. Of an added or removed resource, its parameters. Rich data as objects with __ptype."""
    after: Any
    """As before."""
    places: tuple[str, ...]
    """File and line of the manifest, before and after; one if they are equal."""
    lines: tuple[str, ...]
    """Of texts, a unified diff."""
    note: str | None


class Time(msgspec.Struct):
    """How long something took in both runs."""

    kind: Literal["run", "phase", "pause", "request"]
    what: str | None
    """Which phase, pause or request; null: the whole run."""
    before_s: float
    after_s: float
    ratio: float | None
    """after_s as a multiple of before_s."""
    noise: str | None
    """Why the difference means nothing; null: it may mean something."""
    usual_s: list[float] | None
    """The shortest and the longest time in other good runs of the agent, if there are enough."""


class Pair(msgspec.Struct):
    """Two runs."""

    before: Side
    after: Side
    status: Literal[0, 1, 2]
    """The exit status: 0 no difference, 1 differences (also: a run was stopped before it asked for a catalog), 2 the
    catalogs could not be compared."""
    differences: list[Difference]
    volatile_facts: list[Difference]
    """Facts that may change at any time; they do not count."""
    times: list[Time]
    ignored: Count
    """Differences that --ignore left out."""
    not_compared: dict[Section, str]
    """Sections that could not be compared, and why."""


class Group(msgspec.Struct):
    """Changes that exactly these nodes have; a node may be in several groups."""

    nodes: tuple[str, ...]
    differences: list[Difference]
    """As the first of the nodes has them."""


class Grouped(msgspec.Struct):
    """Several nodes by what differs."""

    status: Literal[0, 1, 2]
    """The exit status: 0 no difference, 1 differences (also: nodes with a run on one side only), 2 nodes that could not
    be compared."""
    groups: list[Group]
    without_change: list[str]
    not_compared: list[Failed]
    ignored: Count


class Nodes(Grouped):
    """Several nodes."""

    only_before: list[str]
    """Nodes of which only the first capture has a run."""
    only_after: list[str]
    """Nodes of which only the second capture has a run."""
    one_run_only: list[str]
    """Nodes of which the only capture has one run, which is not compared."""
    other_sections: dict[Section, list[str]]
    """By section that is not grouped (findings, facts, requests, report): the nodes with differences in it, which
    --agent NAME shows."""


def plain(comparison: Comparison) -> Pair:
    """Return a comparison."""
    return Pair(
        before=_side(comparison.before),
        after=_side(comparison.after),
        status=comparison.status,
        differences=[difference(each) for each in comparison.differences],
        volatile_facts=[difference(each) for each in comparison.volatile],
        times=[_time(time) for time in comparison.times],
        ignored=comparison.ignored.total(),
        not_compared=comparison.uncompared,
    )


def nodes(groups: Groups) -> Nodes:
    """Return what was found of several nodes."""
    return Nodes(
        **grouped(groups),
        only_before=groups.only_before,
        only_after=groups.only_after,
        one_run_only=groups.alone,
        other_sections=groups.others,
    )


def grouped(groups: Groups) -> dict[str, Any]:
    """Return the fields of ``Grouped``."""
    return {
        "status": groups.status,
        "groups": [Group(group.nodes, [difference(each) for each in group.differences]) for group in groups.groups],
        "without_change": groups.same,
        "not_compared": groups.failed,
        "ignored": groups.ignored,
    }


def difference(of: differences.Difference) -> Difference:
    """Return one difference."""
    return Difference(
        of.section, of.name, of.part or None, of.change, of.before, of.after, of.places, of.lines, of.note or None
    )


def run(documents: RunDocuments) -> Run:
    """Return a run that is compared."""
    of = documents.run
    return Run(documents.label, of.number, of.certname, utc(of.started))


def _side(documents: RunDocuments) -> Side:
    catalog = documents.catalog
    return Side(
        **msgspec.structs.asdict(run(documents)),
        outcome=documents.run.outcome,
        resources=len(catalog.resources) if catalog else None,
        catalog_version=None if catalog is None or catalog.version is None else str(catalog.version),
        code_id=catalog.code_id if catalog else None,
    )


def _time(time: TimeCompared) -> Time:
    ratio = time.ratio
    return Time(
        kind=time.kind,
        what=time.what or None,
        before_s=round(time.before, 3),
        after_s=round(time.after, 3),
        ratio=None if ratio is None else round(ratio, 2),
        noise=time.noise or None,
        usual_s=[round(seconds, 3) for seconds in time.usual] if time.usual else None,
    )
