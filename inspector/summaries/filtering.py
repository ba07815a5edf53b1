"""The runs and records of a capture that match a filter, in brief.

Terms that the index can answer are tested at once: a hundred thousand records take a fraction of a second. Terms that
need bodies (``text:``) or printed lines are tested in steps, so that progress can be shown and the search cancelled.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from itertools import batched, compress
from typing import TYPE_CHECKING, NamedTuple

from inspector import regex
from inspector.summaries import filters, wording
from inspector.summaries.filters import Candidate

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from inspector.summaries.filters import Filter, Term
    from inspector.summaries.source import Source
    from inspector.summaries.summary import Brief, RunBrief

STRIDE = 200
"""Records between two progress reports."""
_BACK = regex.compile("since|until", regex.IGNORECASE)


class Progress[T](NamedTuple):
    """The progress, and the matches since the previous report."""

    done: int
    total: int
    found: list[T]


class _Owned(NamedTuple):
    """Records, and parallel to them their runs: two lists, because there may be a hundred thousand."""

    briefs: list[Brief]
    runs: list[RunBrief | None]

    def of(self, runs: Iterable[RunBrief]) -> _Owned:
        """The records that belong to these runs."""
        numbers = {run.number for run in runs}
        return self._only([run is not None and run.number in numbers for run in self.runs])

    def fitting(self, term: Term) -> _Owned:
        """The records for which a term holds."""
        holds, negated = term.asks.step, term.negated
        if not self.briefs:
            return self
        candidate = Candidate(self.briefs[0], None, str, lambda: None)  # reused for all records
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
    """Runs filters on a source. Every method raises InspectorError if its text is not a valid filter."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._words: dict[int, tuple[RunBrief, str]] = {}
        self._all = _Owned([], [])
        self._known = -1
        """The source's revision for which ``_all`` was read."""

    def parse(self, text: str) -> Filter:
        """Parse a filter; ``10m`` counts back from the latest record."""
        latest = None
        if _BACK.search(text):
            briefs = self._every().briefs
            latest = briefs[-1].ended if briefs else None
        return filters.parse(text, latest)

    def slow(self, text: str) -> bool:
        """Whether ``runs`` or ``briefs`` are slow for a large capture, because bodies have to be read or lines
        formatted. Then call ``read_runs`` and ``read_briefs`` in a thread."""
        return any(_dear(term) for term in self.parse(text).terms)

    def runs(self, text: str) -> list[RunBrief]:
        """The runs that match a filter, in order."""
        return [run for progress in self.read_runs(text) for run in progress.found]

    def briefs(self, text: str, number: int | None = None) -> list[Brief]:
        """The records that match a filter, of one run or of the whole capture, in order."""
        return [match for progress in self.read_briefs(text, number) for match in progress.found]

    def _every(self) -> _Owned:
        if self._known != self._source.revision:
            self._known = self._source.revision
            briefs, owners = self._source.all_briefs(), self._source.owners()
            self._all = _Owned(briefs, [owners.get(brief.seq) for brief in briefs])
        return self._all

    # -- records ----------------------------------------------------------------------------------------

    def read_briefs(self, text: str, number: int | None = None) -> Iterator[Progress[Brief]]:
        """Like ``briefs``, in steps. Terms for the index are tested before this returns. The iterator may be used in
        a thread, and is cancelled by closing it. It raises CaptureError if the capture cannot be read."""
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
        """Records as input for filters. The capture is reopened from time to time, because an open reader prevents
        the proxy from cleaning up."""
        for some in batched(zip(*owned, strict=True), STRIDE):
            with self._source.capture() as capture:
                for brief, run in some:
                    yield Candidate(brief, run, partial(wording.line, brief, run), partial(capture.record, brief.seq))

    # -- runs -------------------------------------------------------------------------------------------

    def read_runs(self, text: str) -> Iterator[Progress[RunBrief]]:
        """Like ``read_briefs``, for runs."""
        chosen = self.parse(text)
        forbids = bool(chosen.about_exchanges) and all(term.negated for term in chosen.about_exchanges)
        printed = self._printed if any(term.asks.words for term in chosen.about_runs) else lambda _: ""
        runs = [run for run in self._source.runs if chosen.matches_run(run, printed(run), marked=not forbids)]
        if not chosen.about_exchanges:
            return iter((Progress(len(runs), len(runs), runs),))
        cheap, dear = _apart(chosen.about_exchanges)
        left = self._every()
        if forbids:
            # One record that matches one of the terms is enough, whatever the other terms are.
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
        for brief, run in zip(*left, strict=True):
            if run:
                own[run.number].briefs.append(brief)
                own[run.number].runs.append(run)
        done, total = 0, len(left.briefs)
        yield Progress(0, total, [])
        for run in runs:
            mine = own[run.number]
            # Terms that exclude are all negated: they hold for a record that matches none of them.
            fits = (
                all(term.asks.step(candidate) is not term.negated for term in dear)
                for candidate in self._candidates(mine)
            )
            shown = all(fits) if forbids else any(fits)
            done += len(mine.briefs)
            yield Progress(done, total, [run] if shown else [])

    def _printed(self, run: RunBrief) -> str:
        cached = self._words.get(run.number)
        if cached is None or cached[0] is not run:
            cached = self._words[run.number] = run, wording.words(run, run.verdict)
        return cached[1]


def _dear(term: Term) -> bool:
    return term.asks.reads or term.asks.words


def _apart(terms: Iterable[Term]) -> tuple[list[Term], list[Term]]:
    """Separate the terms that the index can answer from the slow ones."""
    items = list(terms)
    return [term for term in items if not _dear(term)], [term for term in items if _dear(term)]
