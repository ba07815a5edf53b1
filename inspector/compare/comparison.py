"""The comparison of two runs: everything that is different, and what could not be compared."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from inspector.compare import catalogs, circumstances, facts, files, reports, requests, times
from inspector.compare.differences import Differences, Patterns, Section
from inspector.compare.documents import masks_of
from inspector.compare.facts import Volatile
from inspector.compare.stopped import stopped
from inspector.text import clean

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Sequence

    from inspector.compare.differences import Difference
    from inspector.compare.documents import RunDocuments
    from inspector.compare.stopped import StoppedRun
    from inspector.compare.times import TimeCompared
    from inspector.runs.snapshot import RunSnapshot


_NAMED = {Section.FACTS: "facts", Section.REPORT: "a report"}


@dataclass(frozen=True, slots=True)
class Choices:
    """How runs are compared."""

    ignored: Patterns = field(default_factory=Patterns)
    """What is not compared."""
    volatile: Volatile = field(default_factory=Volatile)
    """The facts that may change at any time."""
    tags: bool = False
    """Whether the tags of resources are compared."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs, and what is different about them."""

    before: RunDocuments
    after: RunDocuments
    differences: list[Difference]
    """In the order of the sections."""
    volatile: list[Difference]
    """Of facts that may change at any time; they do not count."""
    times: list[TimeCompared]
    ignored: Counter[Section]
    """How many differences of each section were left out."""
    uncompared: dict[Section, str]
    """Sections that could not be compared, and why."""
    stopped: StoppedRun | None = None
    """The run that ended before it got a catalog, while the other got one."""

    @property
    def status(self) -> Literal[0, 1, 2]:
        """0: no difference; 1: differences, also: one run was stopped before it asked for a catalog; 2: the catalogs
        could not be compared."""
        return 2 if self.without_catalogs else 1 if self.differences else 0

    @property
    def without_catalogs(self) -> str:
        """Why the catalogs could not be compared; empty if they were, or if one run was stopped before that."""
        if self.stopped and self.stopped.lacks(Section.CATALOG):
            return ""
        return self.uncompared.get(Section.CATALOG, "")

    def of(self, section: Section) -> list[Difference]:
        """The differences of a section."""
        return [difference for difference in self.differences if difference.section is section]


def compare(
    before: RunDocuments,
    after: RunDocuments,
    choices: Choices | None = None,
    history: Sequence[RunSnapshot] = (),
) -> Comparison:
    """Compare two runs. ``history`` are other good runs of the agent, which show its usual times."""
    choices = choices or Choices()
    found, changing = (_differences(before, after, choices) for _ in range(2))
    circumstances.compare(before, after, found)
    uncompared = _catalogs(before, after, found, choices)
    files.compare(before, after, found)
    if before.facts is not None and after.facts is not None:
        facts.compare(before.facts, after.facts, found, changing, choices.volatile)
    elif missing := _missing(Section.FACTS, (before, before.facts), (after, after.facts)):
        uncompared[Section.FACTS] = missing
    requests.compare(before.requests, after.requests, found)
    if before.report is not None and after.report is not None:
        secret = reports.SecretParameters(before.catalog, after.catalog)
        reports.compare(before.report, after.report, found, secret)
    elif missing := _missing(Section.REPORT, (before, before.report), (after, after.report)):
        uncompared[Section.REPORT] = missing
    early = stopped(before, after)
    compared = times.phases(before.run, after.run, history, early.change if early else None)
    compared += times.requests(before.requests, after.requests)
    return Comparison(
        before, after, found.found, changing.found, compared, found.ignored + changing.ignored, uncompared, early
    )


def answers(before: RunDocuments, after: RunDocuments, choices: Choices, *, with_files: bool) -> Comparison:
    """Compare what two masters answered to the same questions: the catalog, and ``with_files`` the files."""
    found = _differences(before, after, choices)
    uncompared = _catalogs(before, after, found, choices)
    if with_files and not uncompared:
        files.compare(before, after, found)
    return Comparison(before, after, found.found, [], [], found.ignored, uncompared)


def _differences(before: RunDocuments, after: RunDocuments, choices: Choices) -> Differences:
    return Differences(masks_of(before, after), choices.ignored, before.own_names | after.own_names)


def _catalogs(before: RunDocuments, after: RunDocuments, found: Differences, choices: Choices) -> dict[Section, str]:
    """Add the differences of the catalogs; return why they cannot be compared, if they cannot."""
    if missing := [f"{side.label} {side.without_catalog}" for side in (before, after) if side.without_catalog]:
        return {Section.CATALOG: "; ".join(missing)}
    if before.catalog is not None and after.catalog is not None:
        catalogs.compare(before.catalog, after.catalog, found, tags=choices.tags)
    return {}


def _missing(section: Section, *sides: tuple[RunDocuments, object]) -> str:
    """Why documents of two runs cannot be compared; empty if neither sent one."""
    if not any(document is not None or section in side.unreadable for side, document in sides):
        return ""
    return "; ".join(
        f"{side.label} sent {_NAMED[section]} that cannot be read: {clean(side.unreadable[section])}"
        if section in side.unreadable
        else f"{side.label} sent no {section}"
        for side, document in sides
        if document is None
    )
