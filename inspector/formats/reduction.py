"""A capture reduced to one finding: what is left shows it, and without any part of that it would not.

Delta debugging with the analyzer as the judge: whole runs go first, then records, bodies, and their parts. What a try
leaves must show the finding with the same severity, in the same words but for numbers, in a run with the same verdict;
and nothing that the capture did not show. Records pass ``outgoing`` before their bodies are taken apart: what is secret
because something beside it says so is masked as long as that is beside it.
"""

from __future__ import annotations

import dataclasses
import time
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, NamedTuple

from inspector import regex
from inspector.analysis.analyzer import Analyzer
from inspector.capture.replacing import created
from inspector.capture.store import Capture
from inspector.errors import InspectorError
from inspector.formats import body_parts
from inspector.formats.outgoing import Outgoing
from inspector.model import Closed, Connection, Exchange, Gap, Severity
from inspector.progress import unwatched, watched
from inspector.protocol import bodies
from inspector.rules import in_use
from inspector.summaries import conclusions
from inspector.summaries.calls import Apart
from inspector.summaries.judgement import Recorded, judge
from inspector.summaries.pairing import numbered
from inspector.text import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
    from pathlib import Path

    from inspector.formats.outgoing import Content
    from inspector.model import Finding, Message, Record
    from inspector.progress import Watch
    from inspector.rules import Ruleset
    from inspector.runs.run import Run
    from inspector.summaries.reading import CaptureRuns
    from inspector.summaries.summary import RunBrief

IN_MEMORY = 2**26
"""Bytes of the records that tries keep in memory: up to these, parts of bodies go."""
HEAD = 2**12
"""Bytes that a record takes there beside its bodies."""
_NUMBERS = regex.compile(r"[0-9][0-9.,]*")
_BATCH = 200


class Ended(StrEnum):
    """Why a reduction ended: no part of what is left can go; its time was over; the user ended it; the records that are
    left are too large for their bodies to be taken apart."""

    SMALLEST = "smallest"
    BUDGET = "budget"
    INTERRUPTED = "interrupted"
    SIZE = "size"


class Shown(NamedTuple):
    """A finding, and the run that shows it."""

    run: RunBrief
    finding: Finding

    @property
    def is_cause(self) -> bool:
        """Whether it is the cause of how its run ended."""
        return self.run.cause == self.finding.rule

    @property
    def verdict(self) -> tuple[object, ...]:
        """Whose run it is, how it ended, and why."""
        run, verdict = self.run, self.run.verdict
        why = (verdict.cause, verdict.certainty) if verdict else ()
        return (run.tool, run.command, run.result, *why)

    def same(self, other: Shown, *, texts: bool = True) -> bool:
        """Whether another run shows the same; ``texts``: in the same words, but for numbers."""
        one, two = self.finding, other.finding
        if (one.rule, one.severity, self.verdict) != (two.rule, two.severity, other.verdict):
            return False
        words, others = ((_NUMBERS.sub("#", found.message), found.printed) for found in (one, two))
        return not texts or words == others


# -- what is looked for -----------------------------------------------------------------------------------------


def chosen(found: CaptureRuns, rule: str | None = None, number: int | None = None) -> Shown:
    """Return the finding of a rule, of a run, or the cause of the newest failed run. Raises InspectorError."""
    if number is not None:
        candidates = [numbered(found, number).brief]
        where = f"Run {number} of {found.capture}"
    else:
        every = sorted(found.briefs, key=lambda run: run.started, reverse=True)
        candidates = [*(run for run in every if not run.well), *(run for run in every if run.well)]
        candidates += reversed(found.apart.found)
        where = str(found.capture)
    rules = dict.fromkeys(finding.rule for run in candidates for finding in run.ordered)
    if not rules:
        hint = "`puppet-inspector runs` lists the runs of a capture, and what was found in each."
        raise InspectorError(f"{where} shows no deviation: there is nothing to reduce it to.", hint)
    if rule is not None and rule not in rules:
        raise InspectorError(f"{where} shows nothing of rule {clean(rule)}.", f"It shows {', '.join(rules)}.")
    every_shown = [Shown(run, finding) for run in candidates for finding in run.ordered]
    if rule is not None:
        return next(shown for shown in every_shown if shown.finding.rule == rule)
    # Without a visible cause, the gravest of what was found.
    return next((shown for shown in every_shown if shown.is_cause), every_shown[0])


class _Looking(NamedTuple):
    """What a try must show."""

    shown: Shown
    allowed: frozenset[tuple[str, Severity]]
    """What else it may show."""
    rules: Ruleset

    def in_records(
        self, records: Iterable[Record], effort: Effort | None = None, *, texts: bool = True
    ) -> Shown | None:
        """Return the finding as some records show it; None if they do not, or show something else as well."""
        analyzer = Analyzer(self.rules.rules, self.rules.ignores)
        briefs: list[RunBrief] = []
        apart = Apart()

        def take(run: Run) -> None:
            (apart.add if run.number is None else briefs.append)(conclusions.of_run(run))

        for record in records:
            if effort:
                effort.check()
            for run in analyzer.feed(record).over:
                take(run)
                analyzer.forget(run)
        for run in analyzer.end():
            take(run)
        judged = judge([Recorded(briefs, apart=apart)])
        every = [Shown(run, one) for run in (*judged.runs.values(), *apart.found) for one in run.findings]
        if any((one.finding.rule, one.finding.severity) not in self.allowed for one in every):
            return None
        return next((one for one in every if self.shown.same(one, texts=texts)), None)


# -- tries ------------------------------------------------------------------------------------------------------


class _Over(Exception):
    """No more tries."""


class Effort:
    """The tries of a reduction, which take some seconds at most; what is done between them does not count."""

    def __init__(self, seconds: float, watch: Watch = unwatched, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock, self._watch = clock, watch
        self._seconds, self._spent = seconds, 0.0
        self._began: float | None = None
        """When the try under way began."""
        self.tries = 0
        self.reached = False
        """Whether anything smaller was found to be enough."""
        self.ended = Ended.SMALLEST
        """Why it ended, or would have ended so far."""

    def stop(self) -> None:
        """End it: what was reached is the result. Raises KeyboardInterrupt if it is nothing, or the second time."""
        if not self.reached or self.ended is Ended.INTERRUPTED:
            raise KeyboardInterrupt
        self.ended = Ended.INTERRUPTED

    def check(self) -> None:
        """Raise _Over if no more is to be tried."""
        under_way = self._clock() - self._began if self._began is not None else 0.0
        if self.ended is Ended.SMALLEST and self._spent + under_way >= self._seconds:
            self.ended = Ended.BUDGET
        if self.ended is not Ended.SMALLEST:
            raise _Over

    def tried[T](self, shows: Callable[[Sequence[T]], bool], parts: Sequence[T]) -> bool:
        """Return whether some parts show what is looked for. Raises _Over."""
        self.check()
        self.tries += 1
        gone = int(self._spent)
        self._watch(gone, max(gone + 1, int(self._seconds)), f"reducing, {len(parts):,} left, second")
        self._began = self._clock()
        try:
            enough = shows(parts)
        finally:
            self._spent += self._clock() - self._began
            self._began = None
        self.reached = self.reached or enough
        return enough

    def smallest[T](self, parts: Sequence[T], shows: Callable[[Sequence[T]], bool]) -> list[T]:
        """Return as few parts as still show what is looked for: all of them do. Of many, half of them go first."""
        left, size = list(parts), len(parts)
        try:
            while size:
                at, before = 0, len(left)
                while at < len(left):
                    rest = left[:at] + left[at + size :]
                    if self.tried(shows, rest):
                        left = rest
                    else:
                        at += size
                if size == 1 and len(left) == before:
                    break
                size = max(min(size, len(left)) // 2, 1) if left else 0
        except _Over:
            pass
        return left


# -- a reduction ------------------------------------------------------------------------------------------------


@dataclass(slots=True)
class Size:
    """How large a capture is."""

    records: int = 0
    bodies: int = 0
    """Bytes of the bodies, as on the wire."""

    def add(self, record: Record) -> None:
        """Count a record."""
        self.records += 1
        self.bodies += sum(len(message.body) for message in _messages(record))


@dataclass(slots=True)
class Reduction:
    """What became of a capture."""

    before: Shown
    after: Shown
    whole: Size
    left: Size
    withheld: list[Content] = field(default_factory=list)
    """What was withheld, by what opens it."""


def reduce(
    found: CaptureRuns,
    target: Path,
    shown: Shown,
    opened: frozenset[Content],
    effort: Effort,
    watch: Watch = unwatched,
) -> Reduction:
    """Make the smallest capture that shows a finding of another one, with pseudonyms as ``share`` makes them.
    ``opened`` is not withheld. Raises InspectorError, also if ``target`` exists."""
    briefs = (*found.briefs, *found.apart.found)
    allowed = frozenset((finding.rule, finding.severity) for run in briefs for finding in run.findings)
    looking = _Looking(shown, allowed, in_use())
    with Capture.open(found.capture) as capture, created(target) as made:
        with Capture.open(found.capture) as again:  # what is read for tries does not count against the rest
            necessary = _Records(again, found, looking, effort, watch)
            seqs = necessary.smallest()
            fits = necessary.weight(seqs) <= IN_MEMORY
        # A proxy may be writing, and the names in later records were not learned.
        outgoing = Outgoing.of((capture, necessary.last), pseudonyms=True, opened=opened, watch=watch)
        closed: dict[str, Closed | None] = {}
        records: Iterable[Record] = _leaving(capture, seqs, outgoing, closed)
        if fits:
            records = _Bodies([*records], looking, effort).smallest()
        elif effort.ended is Ended.SMALLEST:
            effort.ended = Ended.SIZE
        left = _write(records, closed, made)
        made.set_meta([("shared", "values withheld, names and addresses replaced, certificates issued again"),
                       ("reduced", f"to one finding of rule {shown.finding.rule}")])  # fmt: skip
        after = looking.in_records(made.records(), texts=False)
        if after is None:
            raise InspectorError(
                f"What may leave of {found.capture} does not show {shown.finding.rule} any more.",
                "`puppet-inspector share` makes a copy of all of it.",
            )
    return Reduction(shown, after, necessary.whole, left, sorted(outgoing.withheld))


def _leaving(
    capture: Capture, seqs: Iterable[int], outgoing: Outgoing, closed: dict[str, Closed | None]
) -> Iterator[Record]:
    """Yield records as they may leave; how their connections ended is added to ``closed``."""
    for seq in seqs:
        record = capture.record(seq)
        if record is None:
            continue
        for leg in record.legs:
            connection = capture.connection(leg.id)
            closed[outgoing.leg(leg).id] = connection.closed if connection else None
        yield outgoing.leaving(record) or Gap(
            record.time, f"this record was not shared: {outgoing.unmasked[seq]}", 1, seq
        )


def _write(records: Iterable[Record], closed: dict[str, Closed | None], made: Capture) -> Size:
    left, noted = Size(), set()
    for number, record in enumerate(records, 1):
        for leg in record.legs:
            if leg.id not in noted:
                noted.add(leg.id)
                made.note(Connection(leg, closed.get(leg.id)))
        made.append(record)
        left.add(record)
        if number % _BATCH == 0:
            made.flush()
    made.flush()
    return left


def _weight(record: Record | None) -> int:
    return HEAD + sum(len(message.body) for message in _messages(record))


def _messages(record: Record | None) -> list[Message]:
    return [message for message in (record.request, record.response) if message] if isinstance(record, Exchange) else []


class _Records:
    """Finds the records that are necessary."""

    def __init__(self, capture: Capture, found: CaptureRuns, looking: _Looking, effort: Effort, watch: Watch) -> None:
        self._capture, self._found, self._looking, self._effort = capture, found, looking, effort
        self.whole = Size()
        self._every = []
        for record in watched(capture.records(), watch, capture.count()):
            self.whole.add(record)
            self._every.append(record.seq)
        self.last = self._every[-1] if self._every else 0
        self._known: dict[int, Record | None] = {}
        self._room = IN_MEMORY

    def weight(self, seqs: Sequence[int]) -> int:
        """Return how much memory some records take."""
        return sum(_weight(self._read(seq)) for seq in seqs)

    def smallest(self) -> list[int]:
        """Return the numbers of the records that are left. Raises InspectorError."""
        groups = self._enough()
        if len(groups) > 1:
            groups = self._effort.smallest(groups, lambda left: self._show(_flat(left)))
        return self._effort.smallest(_flat(groups), self._show)

    def _read(self, seq: int) -> Record | None:
        if seq in self._known:
            return self._known[seq]
        record = self._known[seq] = self._capture.record(seq)
        self._room -= _weight(record)
        if self._room < 0:  # of fewer records, later, all stay
            self._known.clear()
            self._room = IN_MEMORY
        return record

    def _show(self, seqs: Sequence[int]) -> bool:
        records = (record for seq in seqs if (record := self._read(seq)) is not None)
        return self._looking.in_records(records, self._effort) is not None

    def _enough(self) -> list[list[int]]:
        """Return records that show the finding, in groups: its evidence, its run, the runs of its node, or all."""
        run, finding = self._looking.shown
        own = [list(each.seqs) for each in self._found.runs if each.brief.number == run.number]
        node = [list(each.seqs) for each in self._found.runs if each.brief.name == run.name]
        evidence = list(finding.seqs)
        try:
            for groups in ([evidence], [*own, evidence], [*node, evidence]):
                if self._effort.tried(lambda groups: self._show(_flat(groups)), groups):
                    return groups
            if not self._effort.tried(self._show, self._every):
                raise InspectorError(
                    f"The records of {self._found.capture} do not show {finding.rule} by themselves.",
                    "Its run is under way, or was when the recording ended: take one that is over.",
                )
        except _Over:
            return [self._every]
        in_runs = [list(each.seqs) for each in self._found.runs]
        return [*in_runs, sorted({*self._every} - {*_flat(in_runs)})]


def _flat(groups: Iterable[Iterable[int]]) -> list[int]:
    return sorted({seq for group in groups for seq in group})


class _Bodies:
    """Finds the parts of bodies that are necessary."""

    def __init__(self, records: list[Record], looking: _Looking, effort: Effort) -> None:
        self._records, self._looking, self._effort = records, looking, effort

    def smallest(self) -> list[Record]:
        """Return the records with as little in their bodies as possible."""
        now = self._looking.in_records(self._records, texts=False)
        if now is None:
            return self._records  # the proof fails
        self._looking = self._looking._replace(shown=now)
        places = [
            (at, side)
            for at, record in enumerate(self._records)
            for side in ("request", "response")
            if (message := getattr(record, side, None)) and message.body and not message.lost
        ]
        left = self._effort.smallest(places, lambda left: self._show(self._emptied({*places} - {*left})))
        self._records = self._emptied({*places} - {*left})
        for at, side in left:
            self._take_apart(at, side)
        return self._records

    def _show(self, records: Iterable[Record]) -> bool:
        return self._looking.in_records(records, self._effort) is not None

    def _emptied(self, places: Collection[tuple[int, str]]) -> list[Record]:
        records = list(self._records)
        for at, side in places:
            records[at] = _changed(records[at], side, b"")
        return records

    def _take_apart(self, at: int, side: str) -> None:
        """Remove parts of a body: the outermost first, as all that is in them goes with them."""
        body = body_parts.opened(getattr(self._records[at], side))
        if body is None:
            return
        value, depth = body.value, 0
        while (parts := body_parts.parts(value, depth)) is not None:
            depth += 1
            if not parts:
                continue

            def remaining(left: Sequence[body_parts.Part]) -> list[Record]:
                records = list(self._records)
                made = body_parts.without(value, {*parts} - {*left})  # noqa: B023 - used before they change
                records[at] = _changed(records[at], side, body.write(made))
                return records

            def show(left: Sequence[body_parts.Part]) -> bool:
                try:
                    return self._show(remaining(left))
                except bodies.WRONG:
                    return False

            left = self._effort.smallest(parts, show)
            if len(left) < len(parts):
                self._records, value = remaining(left), body_parts.without(value, {*parts} - {*left})


def _changed(record: Record, side: str, plain: bytes) -> Record:
    """Return an exchange whose request or response has another body."""
    message: Message = getattr(record, side)
    changes = {side: body_parts.with_body(message, plain)}
    return dataclasses.replace(record, **changes)  # type: ignore[arg-type]
