"""What a report's page shows, gathered from the copy of a capture that may leave."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inspector.explain import bootstrap_reading
from inspector.explain.master_log.measured import NOTHING
from inspector.formats.outgoing import summary as withheld_summary
from inspector.progress import unwatched, watched
from inspector.report.answers import answers_of
from inspector.report.data import MessageBlocks, RecordColumns, by_gravity, newest
from inspector.report.ladders import ladder
from inspector.report.parts import parts_of
from inspector.report.sequences import sequence
from inspector.report.validity import validity
from inspector.report.waterfalls import waterfall
from inspector.rules import rule_of
from inspector.text import clean, seconds, size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from inspector.explain.master_log.measured import MasterTimes
    from inspector.model import Finding
    from inspector.pages.finding_groups import Group
    from inspector.progress import Watch
    from inspector.report.answers import Answers
    from inspector.report.copies import LeavingCapture
    from inspector.report.ladders import Ladder
    from inspector.report.parts import RunParts
    from inspector.report.sequences import SequenceDiagram
    from inspector.report.validity import ValidityAxis
    from inspector.report.waterfalls import Waterfall
    from inspector.rules import Rule
    from inspector.summaries.summary import RunBrief

SECTIONS = 200
"""Runs that have a section of their own: those that did not go well first, then the latest."""
LADDERS = 60
"""Agents whose bootstrap is drawn: those that are stuck first."""


@dataclass(frozen=True, slots=True)
class FoundDeviation:
    """A finding of a run, with its rule."""

    finding: Finding
    rule: Rule
    follows: bool
    """Whether it is a consequence of the run's cause."""


@dataclass(frozen=True, slots=True)
class RunSection:
    """One run in full."""

    run: RunBrief
    findings: tuple[FoundDeviation, ...]
    waterfall: Waterfall
    sequence: SequenceDiagram
    parts: RunParts

    @property
    def name(self) -> str:
        return clean(self.run.name)

    @property
    def took(self) -> str:
        return seconds(self.run.duration)

    @property
    def traffic(self) -> str:
        """How much was sent and received."""
        return f"{size(self.run.sent)} sent, {size(self.run.received)} received"


@dataclass(frozen=True, slots=True)
class RunSections:
    """The sections of some runs: each is read when its turn comes, as all of them together take much memory."""

    copy: LeavingCapture
    runs: list[RunBrief]
    times: MasterTimes
    watch: Watch

    def __iter__(self) -> Iterator[RunSection]:
        source = self.copy.source
        with source.capture() as capture:
            for run in watched(self.runs, self.watch, len(self.runs), "drawing run"):
                briefs = source.briefs(run.number)
                yield RunSection(
                    run,
                    tuple(FoundDeviation(each, rule_of(each.rule), each.rule in run.symptoms) for each in run.ordered),
                    waterfall(run, briefs, self.times),
                    sequence(run, briefs),
                    parts_of(source, capture, run, briefs),
                )


@dataclass(slots=True)
class ReportContent:
    """All that a page shows."""

    copy: LeavingCapture
    answers: Answers
    runs: list[RunBrief]
    """The newest first."""
    sections: Iterable[RunSection]
    """Of those that did not go well first, then of the newest."""
    ladders: list[Ladder]
    axis: ValidityAxis | None
    records: RecordColumns
    messages: MessageBlocks | None
    apart: list[Group]
    """What was found in requests that are part of no run, by rule."""
    times: MasterTimes = NOTHING
    """What a master's logs say."""

    @property
    def withheld(self) -> str:
        """How much was withheld, and how to open it."""
        return withheld_summary(self.copy.withheld)

    @property
    def rules(self) -> list[Rule]:
        """The rules of the findings that are shown, the gravest first."""
        found = {found.rule for run in self.runs for found in run.findings} | {group.key for group in self.apart}
        return sorted(map(rule_of, found), key=lambda rule: (-rule.severity.rank, rule.id))


def gathered(
    copy: LeavingCapture, watch: Watch = unwatched, *, bodies: bool = True, times: MasterTimes = NOTHING
) -> ReportContent:
    """Gather what a page shows of the chosen runs; ``times`` is what a master's logs say. Raises CaptureError."""
    runs = newest(copy.runs)
    sections = RunSections(copy, by_gravity(copy.runs)[:SECTIONS], times, watch)
    ladders, axis = _bootstraps(copy, runs, watch)
    records, messages = _records(copy, watch, bodies=bodies)
    return ReportContent(copy, answers_of(copy), runs, sections, ladders, axis, records, messages, copy.apart, times)


def _bootstraps(copy: LeavingCapture, runs: list[RunBrief], watch: Watch) -> tuple[list[Ladder], ValidityAxis | None]:
    def progress(done: int, total: int) -> bool:
        watch(done, total, "reading bootstrap record")
        return True

    found = bootstrap_reading.read(copy.source, progress)
    at = copy.source.latest() or 0.0
    chosen = {run.name for run in runs}
    bootstraps = [found.of(name, at) for name in found.names() if name in chosen]
    bootstraps.sort(key=lambda bootstrap: bootstrap.stuck is None)
    return [ladder(bootstrap, at) for bootstrap in bootstraps[:LADDERS]], validity(bootstraps, at)


def _records(copy: LeavingCapture, watch: Watch, *, bodies: bool) -> tuple[RecordColumns, MessageBlocks | None]:
    source = copy.source
    numbers = {run.number for run in copy.runs}
    records, messages = RecordColumns(), MessageBlocks() if bodies else None
    done = 0
    with source.capture() as capture:
        for page in source.pages():
            for brief in page:
                done += 1
                watch(done, source.last, "packing record")
                run = source.owner_of(brief)
                if not copy.whole and (run is None or run.number not in numbers):
                    continue
                records.add(brief, run)
                if messages is not None and (record := capture.record(brief.seq)) is not None:
                    messages.add(record)
    watch(source.last, source.last, "packing record")
    return records, messages
