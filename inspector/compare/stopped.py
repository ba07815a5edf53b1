"""A run that ended before it got a catalog, compared with one that got one: what stopped it, and what it never came to.

What only the other run has, from there on, says nothing more about it.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from inspector.compare.differences import Section
from inspector.model import Phase
from inspector.rules import fixes
from inspector.summaries.judgement import without_node
from inspector.summaries.summary import RunBrief
from inspector.text import plural

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inspector.compare.differences import Change, Difference
    from inspector.compare.documents import RunDocuments
    from inspector.summaries.summary import Conclusion

UNWRAPPED = 10_000
"""Columns of a fix that whoever shows it wraps."""


@dataclass(frozen=True)
class StoppedRun:
    """The run that ended early, and the other one."""

    side: RunDocuments
    other: RunDocuments
    change: Change
    """What a difference is that only the other run has."""

    @property
    def ending(self) -> str:
        """How it ended: ``refused``."""
        return self.side.run.ending

    @property
    def _verdict(self) -> Conclusion | None:
        run = self.side.run
        return run.verdict if isinstance(run, RunBrief) else None

    @property
    def why(self) -> str:
        """What stopped it, in a sentence."""
        return self._verdict.message if self._verdict else f"{self.side.run.name}: {self.ending}"

    @property
    def reason(self) -> str:
        """The same for a line: the rule, and the reason without the node's name and serial numbers."""
        verdict = self._verdict
        if verdict is None:
            return self.ending
        return " ".join(filter(None, (verdict.cause, without_node(verdict.reason, self.side.run.name))))

    @property
    def fix(self) -> str:
        """What to do about it, or was to do if the node completed a run since, in lines; empty if that is not known."""
        run = self.side.run
        if not isinstance(run, RunBrief) or not run.steps:
            return ""
        then = [f"at the time ({self.other.label} completed since):"] if self.completed_since else []
        return "\n".join([*then, *fixes.lines(run.steps, UNWRAPPED)])

    @property
    def completed_since(self) -> bool:
        """Whether the other run is a later one of the same node, and completed."""
        stopped, other = self.side.run, self.other.run
        return other.name == stopped.name and other.started > stopped.started and other.outcome == "complete"

    @property
    def seq(self) -> int | None:
        """The record that shows what stopped it; None if no finding does."""
        run = self.side.run
        cause = run.cause_found if isinstance(run, RunBrief) else None
        return cause.seqs[0] if cause and cause.seqs else None

    @cached_property
    def phases(self) -> frozenset[Phase]:
        """The phases of the other run in which this one ended, or to which it never came."""
        came_to = {span.phase for span in self.side.run.spans}
        order = [span.phase for span in self.other.run.spans]
        last = max((at for at, phase in enumerate(order) if phase in came_to), default=0)
        # A run without a catalog may still send a report.
        return frozenset(order[min(last, order.index(Phase.CATALOG) if Phase.CATALOG in order else last) :])

    def lacks(self, section: Section) -> bool:
        """Whether it never sent or asked for what a section compares."""
        match section:
            case Section.CATALOG:
                return not self.side.catalog_failure
            case Section.FACTS:
                return self.side.facts is None and section not in self.side.unreadable
            case Section.REPORT:
                return self.side.report is None and section not in self.side.unreadable
            case Section.FILES:
                return self.files > 0
        return False

    @property
    def files(self) -> int:
        """How many files only the other run got or asked about."""
        return len({use.name for use in self.other.files} - {use.name for use in self.side.files})

    def covers(self, difference: Difference) -> bool:
        """Whether ``why`` or ``rest`` say all that matters about a difference."""
        return self._stated(difference) or self._never(difference)

    def rest(self, differences: Iterable[Difference], uncompared: Iterable[Section]) -> str:
        """What it never came to, in words: documents, and how many of what else."""
        parts = [str(section) for section in uncompared if self.lacks(section)]
        parts += [plural(self.files, "file")] if self.files else []
        never = [each for each in differences if each.section is Section.REQUESTS and self._never(each)]
        requests = sum(self._missing[name] for name in {name for each in never for name in each.names})
        parts += [plural(requests, "request")] if requests else []
        return ", ".join(parts)

    @cached_property
    def _missing(self) -> Counter[str]:
        """How many requests of each name only the other run made."""
        return Counter(each.name for each in self.other.requests) - Counter(each.name for each in self.side.requests)

    def _stated(self, difference: Difference) -> bool:
        """Whether it is the cause, or follows from it."""
        run = self.side.run
        if not isinstance(run, RunBrief) or run.cause is None:
            return False
        if difference.section is Section.FINDINGS:
            return difference.name in (run.cause, *run.symptoms)
        return difference.section is Section.RUN and difference.name in ("outcome", "catalog")

    def _never(self, difference: Difference) -> bool:
        """Whether two runs differ in this only because one of them ended early."""
        match difference.section:
            case Section.REQUESTS if difference.note not in self.phases:
                return False
            case Section.REQUESTS if difference.part == "number":
                return any(self._missing[name] for name in difference.names)
            case Section.FINDINGS:
                seqs = {seq for each in self.other.run.findings if each.rule == difference.name for seq in each.seqs}
                phases = {request.phase for request in self.other.requests if request.seq in seqs}
                return difference.change == self.change and phases <= self.phases
            case Section.FILES | Section.FACTS:  # facts are sent before: a missing one may be why it stopped
                return False
            case Section.RUN if difference.name == "catalog":
                return self.lacks(Section.CATALOG)
        return difference.change == self.change


def stopped(before: RunDocuments, after: RunDocuments) -> StoppedRun | None:
    """Return the run of two that ended before it got a catalog; None if neither did, or both."""
    if after.catalog is None and before.catalog is not None and after.run.outcome != "complete":
        return StoppedRun(after, before, "removed")
    if before.catalog is None and after.catalog is not None and before.run.outcome != "complete":
        return StoppedRun(before, after, "added")
    return None
