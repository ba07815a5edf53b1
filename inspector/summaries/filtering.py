"""What a filter lets through of a capture: runs and records in brief.

What the index tells is asked at once, for a hundred thousand records in a fraction of a second. What has to be read
(``text:``) or put into words comes step by step, so that it can be shown how far it is, and given up.
"""

from __future__ import annotations

import dataclasses
import re
from functools import partial
from itertools import batched, compress
from typing import TYPE_CHECKING, NamedTuple

from inspector.summaries import filters, wording
from inspector.summaries.filters import Candidate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from inspector.summaries.filters import Filter, Term
    from inspector.summaries.source import Source
    from inspector.summaries.summary import Brief, RunBrief

STRIDE = 200
"""Records between two reports of how far it is."""
_BACK = re.compile("since|until", re.IGNORECASE)


class Progress[T](NamedTuple):
    """How far it is, and what came through since the last time."""

    done: int
    total: int
    found: list[T]


class _Owned(NamedTuple):
    """Records, and beside them their runs: two lists, for there may be a hundred thousand."""

    briefs: list[Brief]
    runs: list[RunBrief | None]

    def of(self, runs: Iterable[RunBrief]) -> _Owned:
        """Those that belong to one of some runs."""
        numbers = {run.number for run in runs}
        return self._only([run is not None and run.number in numbers for run in self.runs])

    def fitting(self, term: Term) -> _Owned:
        """Those for which a term holds."""
        holds, negated = term.asks.step, term.negated
        if not self.briefs:
            return self
        candidate = Candidate(self.briefs[0], None, str, lambda: None)  # one for all of them
        return self._only(
            [holds(candidate) is not negated for candidate.brief, candidate.run in zip(*self, strict=True)]
        )

    def _only(self, wanted: list[bool]) -> _Owned:
        return _Owned(list(compress(self.briefs, wanted)), list(compress(self.runs, wanted)))

    @property
    def numbers(self) -> set[int]:
        """The numbers of their runs."""
        return {run.number for run in self.runs if run}


class Filtering:
    """Asks a source. What it is told must be a filter: every method raises InspectorError where it is none."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._words: dict[int, tuple[RunBrief, str]] = {}
        self._all = _Owned([], [])
        self._known = -1
        """The source's revision then."""

    def parse(self, text: str) -> Filter:
        """A filter, where ``10m`` counts back from the latest record."""
        latest = None
        if _BACK.search(text):
            briefs = self._every().briefs
            latest = briefs[-1].ended if briefs else None
        return filters.parse(text, latest)

    def slow(self, text: str) -> bool:
        """Whether ``runs`` or ``briefs`` of a large capture take long: bodies have to be read, or every record has to
        be put into words. Then ``read_runs`` and ``read_briefs`` are for a thread."""
        return any(_dear(term) for term in self.parse(text).terms)

    def runs(self, text: str) -> list[RunBrief]:
        """The runs that a filter lets through, in order."""
        return [run for progress in self.read_runs(text) for run in progress.found]

    def briefs(self, text: str, number: int | None = None) -> list[Brief]:
        """The records that a filter lets through, of a run or of the whole capture, in order."""
        return [match for progress in self.read_briefs(text, number) for match in progress.found]

    def _every(self) -> _Owned:
        if self._known != self._source.revision:
            self._known = self._source.revision
            briefs, owners = self._source.all_briefs(), self._source.owners()
            self._all = _Owned(briefs, [owners.get(brief.seq) for brief in briefs])
        return self._all

    # -- records ----------------------------------------------------------------------------------------

    def read_briefs(self, text: str, number: int | None = None) -> Iterator[Progress[Brief]]:
        """The same bit by bit. What the index tells is asked before this returns; the iterator may go on in a thread,
        and is given up by closing it. It raises CaptureError where the capture can't be read."""
        chosen = self.parse(text)
        if number is None:
            left = self._every()
        else:
            briefs = self._source.briefs(number)
            left = _Owned(briefs, [self._source.run(number)] * len(briefs))
        cheap, dear = _apart(chosen.terms)
        for term in cheap:
            left = left.fitting(term)
        if dear:
            return self._read_briefs(left, dear)
        return iter((Progress(len(left.briefs), len(left.briefs), list(left.briefs)),))

    def _read_briefs(self, left: _Owned, dear: list[Term]) -> Iterator[Progress[Brief]]:
        found: list[Brief] = []
        total = len(left.briefs)
        yield Progress(0, total, [])
        for done, candidate in enumerate(self._candidates(left), 1):
            if all(term.asks.step(candidate) is not term.negated for term in dear):
                found.append(candidate.brief)
            if done % STRIDE == 0 or done == total:
                yield Progress(done, total, found)
                found = []

    def _candidates(self, owned: _Owned) -> Iterator[Candidate]:
        """Records as filters look at them. The capture is opened again from time to time: an open reader keeps the
        proxy from tidying up."""
        for some in batched(zip(*owned, strict=True), STRIDE):
            with self._source.capture() as capture:
                for each, run in some:
                    yield Candidate(each, run, partial(wording.line, each, run), partial(capture.record, each.seq))

    # -- runs -------------------------------------------------------------------------------------------

    def read_runs(self, text: str) -> Iterator[Progress[RunBrief]]:
        """As ``read_briefs``."""
        chosen = self.parse(text)
        forbids = bool(chosen.about_exchanges) and all(term.negated for term in chosen.about_exchanges)
        printed = self._printed if any(term.asks.words for term in chosen.about_runs) else lambda _: ""
        runs = [run for run in self._source.runs if chosen.matches_run(run, printed(run), marked=not forbids)]
        if not chosen.about_exchanges:
            return iter((Progress(len(runs), len(runs), runs),))
        cheap, dear = _apart(chosen.about_exchanges)
        left = self._every()
        if forbids:
            # One record that one of the terms names is enough, whatever the others say.
            named = [left.fitting(dataclasses.replace(term, negated=False)).numbers for term in cheap]
            runs = [run for run in runs if not any(run.number in numbers for numbers in named)]
        else:
            for term in cheap:
                left = left.fitting(term)
            numbers = left.numbers
            runs = [run for run in runs if run.number in numbers]
        if dear:
            return self._read_runs(runs, left.of(runs), dear, forbids=forbids)
        return iter((Progress(len(runs), len(runs), runs),))

    def _read_runs(
        self, runs: list[RunBrief], left: _Owned, dear: list[Term], *, forbids: bool
    ) -> Iterator[Progress[RunBrief]]:
        own = {run.number: _Owned([], []) for run in runs}
        for each, run in zip(*left, strict=True):
            if run:
                own[run.number].briefs.append(each)
                own[run.number].runs.append(run)
        done, total = 0, len(left.briefs)
        yield Progress(0, total, [])
        for run in runs:
            mine = own[run.number]
            # Those that forbid are all negated: they hold for a record that has nothing of what they name.
            fits = (
                all(term.asks.step(candidate) is not term.negated for term in dear)
                for candidate in self._candidates(mine)
            )
            shown = all(fits) if forbids else any(fits)
            done += len(mine.briefs)
            yield Progress(done, total, [run] if shown else [])

    def _printed(self, run: RunBrief) -> str:
        kept = self._words.get(run.number)
        if kept is None or kept[0] is not run:
            kept = self._words[run.number] = run, wording.words(run, run.verdict)
        return kept[1]


def _dear(term: Term) -> bool:
    return term.asks.reads or term.asks.words


def _apart(terms: Iterable[Term]) -> tuple[list[Term], list[Term]]:
    """What the index tells, and what takes long."""
    items = list(terms)
    return [term for term in items if not _dear(term)], [term for term in items if _dear(term)]
