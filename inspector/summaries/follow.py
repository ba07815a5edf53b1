"""A capture line by line, while a proxy writes it.

``Follower`` prints each record with what is known when it arrives: for ``follow``, and for the proxy's own console
(``analysis_worker``).
"""

from __future__ import annotations

import dataclasses
import functools
import select
import sqlite3
import sys
import time
from collections import OrderedDict
from typing import TYPE_CHECKING, NamedTuple

from inspector.analysis.analyzer import Analyzer, merged
from inspector.capture import paths
from inspector.capture.store import Capture
from inspector.errors import CaptureError
from inspector.model import NOTHING_OPEN, Severity, Visible
from inspector.rules import in_use, is_own, rule_of
from inspector.runs.snapshot import RunState
from inspector.summaries import conclusions, filters, judgement, listing, reading, summary, wording
from inspector.summaries.under_way import NO_HABIT, Habit, Moment, is_call, settled
from inspector.text import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator
    from pathlib import Path

    from inspector.analysis.analyzer import Step
    from inspector.model import OpenRequest, Present
    from inspector.runs.run import Run
    from inspector.runs.snapshot import RunSnapshot
    from inspector.summaries.filters import Filter
    from inspector.summaries.summary import RunBrief
    from inspector.summaries.under_way import UnderWay

INTERVAL = 0.2
"""Seconds between two polls of a capture: a proxy writes as often."""
PATIENCE = 5.0
"""Seconds for which a capture may be unreadable: it may just be in creation."""
DO = "  do: "
"""The prefix of a line with a fix."""
NEVER = "the analysis has ended at it"
"""Why a record was left out."""
LOOK = 1.0
"""Seconds between two looks at what is under way."""
LASTS = (5.0, 15.0, 60.0, 300.0, 900.0, 1800.0, 3600.0)
"""Seconds after which a line says what an agent does; then every hour."""
AGENTS = 10_000
"""Agents of which it is known how long their runs took."""


def follow(
    path: Path | None,
    text: str = "",
    *,
    everything: bool = False,
    width: int | None = None,
    pause: Callable[[], None] | None = None,
) -> Iterator[str]:
    """Lines for what is added to a capture (with ``everything``: first for its existing records), without end;
    ``width`` is that of the terminal.

    Of a directory, by default ``captures.FOLDER``, it is the capture that was written last, and then every new one that
    appears there. ``pause`` is called whenever there is nothing new, and may stop the loop with an exception. Raises
    InspectorError.
    """
    folder = path or paths.FOLDER
    known = set(folder.glob("*.sqlite"))
    followed = paths.one(path)
    chosen = filters.parse(text, reading.latest(followed))
    follower = Follower(followed, chosen, after=0 if everything else last(followed))
    while True:
        for line in follower.look():
            if line.step:
                yield from listing.lines(summary.brief_of(line.step), line.step.run, width)
            else:
                yield from wording.flowing(line.text, width)
        if followed != path and (fresh := set(folder.glob("*.sqlite")) - known):
            known |= fresh
            followed = max(fresh, key=paths.written)
            yield f"-- new capture: {clean(str(followed))}"
            follower = Follower(followed, chosen)
            continue
        (pause or wait)()


def last(path: Path) -> int:
    """The number of a capture's last record. Raises CaptureError."""
    with Capture.open(path) as capture:
        return capture.last


def wait() -> None:
    """Wait for some time. Raises BrokenPipeError as soon as the reader of our output is gone."""
    out = select.poll()
    out.register(sys.stdout, 0)
    if out.poll(INTERVAL * 1000):
        raise BrokenPipeError


class PrintedLine(NamedTuple):
    """A line, and its subject."""

    text: str
    step: Step | None = None
    """The record on the line."""
    run: Run | None = None
    """The run that the line is about."""
    under_way: UnderWay[RunSnapshot] | None = None
    """What is under way. If all three are None, the line is about the capture."""
    trouble: tuple[str, ...] = ()
    """Internal errors while summarising it."""


class Follower:
    """Reads what is added to one capture.

    The capture is opened for each poll. A reader that stays open would prevent the proxy from cleaning up at its end,
    and one opened before the proxy started would not see the proxy's records.
    """

    def __init__(
        self,
        path: Path,
        chosen: Filter,
        *,
        after: int = 0,
        skipped: Collection[int] = (),
        begin_record: Callable[[int], None] = lambda _: None,
        end_run: Callable[[Run, RunBrief], None] | None = None,
    ) -> None:
        """Records up to ``after`` are analyzed but not printed, ``skipped`` ones not analyzed. ``begin_record`` is
        called with the number of each record before it is analyzed, and with 0 after the last; ``end_run`` once with
        each run that is over, or was cut off, of which a record is new."""
        self._path = path
        self._chosen = chosen
        self._silent = after
        self._skipped = skipped
        self._begin_record = begin_record
        self._end_run = end_run
        self._file: tuple[int, int] | None = None
        self._readable = time.monotonic()
        self._begin()

    def _begin(self) -> None:
        self._analyzer = Analyzer()
        self._after = 0
        self._looked = 0.0
        self.present = NOTHING_OPEN
        """What is under way in the capture."""
        self.under_way: list[UnderWay[RunSnapshot]] = []
        """What agents do."""
        self._marked: set[int] = set()
        self._open: dict[Run, RunSnapshot | None] = {}
        """The runs that may go on, with their facts; None: it has new records since."""
        self._new: set[Run] = set()
        """Those with new records that were not reported to ``end_run``."""
        self._counted: set[Run] = set()
        """Those that were reported to it and may go on nevertheless."""
        self._shown: dict[Run, str] = {}
        """What was printed of runs that may go on nevertheless."""
        self._summed: dict[Run, int] = {}
        """How many records they had then."""
        self._errors: dict[Run, set[str]] = {}
        """The rules of errors that were printed with a record of a run."""
        self._habits: OrderedDict[str, Habit] = OrderedDict()
        self._announced: dict[tuple[Run | OpenRequest | None, str], float] = {}
        """What was printed as under way, by run or request: how long it must last to be printed again."""

    def look(self) -> Iterator[PrintedLine]:
        """Lines for what was added since the last poll, and what is under way. Raises CaptureError."""
        present = None
        try:
            yield from self._check()
            while self._file is not None:
                with Capture.open(self._path) as capture:
                    yield from self._read(capture)
                    following = capture.continued_in
                    while following is None and time.monotonic() - self._looked >= LOOK:
                        present = capture.present(time.time())
                        if capture.last <= self._after:
                            break  # all records that were written before it are read
                        yield from self._read(capture)
                if following is None or not following.exists():
                    break
                # The same traffic continues in another capture, and so do the numbers.
                self._path, self._file = following, None
                yield from self._check()
            self._readable = time.monotonic()
        except (CaptureError, sqlite3.Error) as error:
            present = None
            if time.monotonic() - self._readable > PATIENCE:
                if isinstance(error, CaptureError):
                    raise
                raise CaptureError(f"{self._path} cannot be read: {error}.", "Check its disk.") from error
        if present is not None:
            self._looked = time.monotonic()
            yield from self._judge(present)

    def _check(self) -> Iterator[PrintedLine]:
        """Report that the capture was deleted or replaced."""
        try:
            status = self._path.stat()
        except OSError:
            if self._file is not None:
                yield PrintedLine(f"-- {clean(str(self._path))} was deleted")
                self._file = None
                self._silent = 0
                self._begin()
            return
        file = status.st_dev, status.st_ino
        if self._file not in (None, file):
            yield self._anew()
        self._file = file

    def _anew(self) -> PrintedLine:
        self._silent = 0
        self._begin()
        return PrintedLine(f"-- {clean(str(self._path))} was replaced by another capture")

    def _read(self, capture: Capture) -> Iterator[PrintedLine]:
        if 0 < capture.last < self._after:  # deleted and recreated between two polls
            yield self._anew()
        for record in capture.records(self._after):
            if record.seq in self._skipped:
                step = self._analyzer.leave_out(record, NEVER)
            else:
                self._begin_record(record.seq)
                step = self._analyzer.feed(record)
            self._after = record.seq
            candidate = filters.candidate(step)
            candidate.line = functools.partial(wording.line, candidate.brief, step.run)
            if self._chosen.marks(candidate):
                self._marked.add(record.seq)
            silent = record.seq <= self._silent
            if not silent:
                if step.run:
                    self._open[step.run] = None
                    if step.run not in self._counted:
                        self._new.add(step.run)
                if self._chosen.matches_step(candidate):
                    yield PrintedLine(candidate.line(), step)
                    yield from self._proved(step)
            for run in sorted(step.over, key=lambda run: run.started):
                if run.real:
                    brief = conclusions.of_run(run)
                    if run in self._open:
                        yield from self._tell(run, brief)
                    self._end(run, brief)
                self._forget(run)
            if record.seq == self._silent:
                moment = Moment(capture.present(time.time()), time.time())
                going = moment.recording == "open"
                self._open = {run: None for run in self._analyzer.runs
                              if going and moment.state(run.snapshot()) is RunState.OPEN}  # fmt: skip
        self._begin_record(0)

    def _proved(self, step: Step) -> Iterator[PrintedLine]:
        """The errors that a record proves, and what a site's own rules say of it, when its run shows them for the first
        time."""
        run = step.run
        if run is None:
            return
        if in_use().ignores and not run.certname:  # whether they are dropped is not known yet
            return
        for finding in step.findings:
            proved = rule_of(finding.rule).visible is not Visible.CONSEQUENCE and finding.severity is Severity.ERROR
            if (proved or is_own(finding.rule)) and step.record.seq in finding.seqs:
                known = self._errors.setdefault(run, set())
                # A verdict that comes next says an error; what a site's own rule says is in none.
                if finding.rule not in known and (is_own(finding.rule) or run not in step.over):
                    known.add(finding.rule)
                    yield PrintedLine(wording.shown(finding), run=run)

    def _forget(self, run: Run) -> None:
        self._analyzer.forget(run)
        self._drop(run)
        self._marked.difference_update(run.seqs)

    def _drop(self, run: Run) -> None:
        for of_run in (self._open, self._shown, self._summed, self._errors):
            of_run.pop(run, None)
        self._new.discard(run)
        self._counted.discard(run)

    # -- runs that may go on --------------------------------------------------------------------------

    def sum_up(self) -> Iterator[PrintedLine]:
        """The runs that are not over, as nothing more comes."""
        present = self.present
        if present.recording in ("open", "unknown"):
            present = dataclasses.replace(present, recording="ended", time=time.time())
        yield from self._judge(present)

    def _judge(self, present: Present) -> Iterator[PrintedLine]:
        """Yield lines about runs that are over, and about what is under way."""
        self.present, now = present, time.time()
        known = set(self._analyzer.runs)
        for run in {*self._open, *self._counted, *self._errors} - known:
            if run.joined:  # one without a certname became part of another
                self._drop(run)
            self._open.pop(run, None)  # or the requests of a tool, which are no run
        if present.recording == "unknown":  # who writes it says nothing of it
            present = dataclasses.replace(present, recording="open")
        moment = Moment(present, now)
        going: dict[Run, tuple[RunSnapshot, Habit]] = {}
        latest = self._latest()
        for run in list(self._open):
            facts, silence = self._facts(run), moment.silence(self._facts(run))
            habit = self._habits.get(facts.name, NO_HABIT)
            began, following = latest[_agent(facts)]
            state = moment.state(facts, habit, next_run=following is not run and began >= facts.ended)
            if state is not RunState.OPEN or (settled(facts, silence) and self._summed.get(run) != len(run.seqs)):
                yield from self._sum_up(run, state, silence)
            if state is RunState.OPEN and not is_call(facts):
                going[run] = facts, habit
        self.under_way = []
        if self.present.recording == "open":
            self.under_way = moment.under_way(going.values())
            yield from self._announce(moment, {run.number: run for run in going})

    def _facts(self, run: Run) -> RunSnapshot:
        facts = self._open[run]
        if facts is None:
            facts = self._open[run] = run.snapshot()
        return facts

    def _latest(self) -> dict[object, tuple[float, Run]]:
        """Return when the latest run of each agent began, with that run."""
        latest: dict[object, tuple[float, Run]] = {}
        for run in self._open:
            whose = _agent(self._facts(run))
            if whose not in latest or run.started > latest[whose][0]:
                latest[whose] = run.started, run
        return latest

    def _sum_up(self, run: Run, state: RunState, silence: float) -> Iterator[PrintedLine]:
        """Yield the summary of a run from which no more records are expected, or that waits."""
        trouble: list[str] = []
        self._summed[run] = len(run.seqs)
        made = dataclasses.replace(run, findings=merged(run.findings, self._analyzer.judge(run, trouble)))
        brief = judgement.judged(conclusions.of_run(made), state, silence)[0]
        yield from self._tell(run, brief, trouble)
        if state is not RunState.OPEN:
            del self._open[run]
            self._end(run, brief)

    def _end(self, run: Run, brief: RunBrief) -> None:
        """Note that a run is over."""
        if brief.state is RunState.OVER and brief.certname and not brief.stranger:
            habit = self._habits.setdefault(brief.name, Habit())
            habit.add(brief)
            self._habits.move_to_end(brief.name)
            if len(self._habits) > AGENTS:
                self._habits.popitem(last=False)
        if run in self._new and self._end_run:
            self._end_run(run, brief)
        self._new.discard(run)
        self._counted.add(run)

    def _tell(self, run: Run, brief: RunBrief, trouble: Collection[str] = ()) -> Iterator[PrintedLine]:
        """A run's summary and verdict, unless they were printed already or the filter does not match the run."""
        # It asks again and again: that it waits is printed once.
        why = brief.verdict.message if brief.verdict and brief.outcome != "waiting" else ""
        shown = f"{brief.ending} {why}"
        if self._shown.get(run) == shown:
            return
        self._shown[run] = shown
        lines = [wording.summary(brief)]
        if brief.verdict is not None:
            lines += [f"run {run.number}: {brief.verdict.message}", f"{DO}{brief.fix}"]
        if self._chosen.matches_run(brief, "\n".join(lines), marked=not self._marked.isdisjoint(run.seqs)):
            for at, line in enumerate(lines):
                yield PrintedLine(line, run=run, trouble=() if at else tuple(trouble))

    def _announce(self, moment: Moment, runs: dict[int | None, Run]) -> Iterator[PrintedLine]:
        """Yield lines about what agents do for a long time."""
        announced, self._announced = self._announced, {}
        for each in self.under_way:
            run = runs[each.run.number] if each.run else None
            due = announced.get((run or each.request, each.activity), LASTS[0])
            if each.seconds < LASTS[0]:
                due = LASTS[0]  # a new one of the same kind
            elif each.seconds >= due:
                due = next((last for last in LASTS if last > each.seconds), each.seconds + LASTS[-1])
                if self._matches(each, run):
                    yield PrintedLine(wording.under_way(each, moment.time), under_way=each)
            self._announced[run or each.request, each.activity] = due
        # What is interrupted by a request is not begun anew.
        self._announced |= {
            key: due for key, due in announced.items() if key not in self._announced and key[0] in runs.values()
        }

    def _matches(self, each: UnderWay[RunSnapshot], run: Run | None) -> bool:
        if each.run is None or run is None:
            return not self._chosen.terms
        return self._chosen.matches_run(each.run, str(each), marked=not self._marked.isdisjoint(run.seqs))


def _agent(run: RunSnapshot) -> object:
    """Return the name of the agent whose run it is."""
    return run.name, run.stranger, run.tool
