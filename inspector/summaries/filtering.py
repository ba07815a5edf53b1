"""The runs and records of a capture that match a filter, in brief.

They are read page by page through the index, so that progress can be shown and the search cancelled, and so that a
million records need no more memory than a page. Terms that need bodies (``text:``) or printed lines come last.
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
    from collections.abc import Container, Iterable, Iterator, Sequence

    from inspector.summaries.filters import Filter, Term
    from inspector.summaries.indexed import IndexedCapture
    from inspector.summaries.summary import Brief, RunBrief

STRIDE = 200
"""Records that are read from the capture before it is opened again."""
MANY = 150_000
"""Records that take longer than a key may take."""
FEW = 2000
"""Runs whose lines are printed within the time of a key."""
_BACK = regex.compile("since|until", regex.IGNORECASE)


class Progress[T](NamedTuple):
    """The number of the last record that was read, and of the last one there is; the matches since the previous
    report."""

    done: int
    total: int
    found: list[T]


class _Owned(NamedTuple):
    """Records, and parallel to them their runs."""

    briefs: list[Brief]
    runs: Sequence[RunBrief | None]

    @property
    def last(self) -> int:
        """The number of the last record."""
        return self.briefs[-1].seq if self.briefs else 0

    def of(self, numbers: Container[int]) -> _Owned:
        """The records that belong to these runs."""
        return self._only([run is not None and run.number in numbers for run in self.runs])

    def fitting(self, term: Term) -> _Owned:
        """The records for which a term of the index holds."""
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
    """Runs filters on a capture. Every method raises InspectorError if its text is not a valid filter."""

    def __init__(self, source: IndexedCapture) -> None:
        self._source = source
        self._words: dict[int, tuple[RunBrief, str]] = {}

    def parse(self, text: str) -> Filter:
        """Parse a filter; ``10m`` counts back from the latest record."""
        return filters.parse(text, self._source.latest() if _BACK.search(text) else None)

    def slow(self, text: str) -> bool:
        """Whether ``runs`` or ``briefs`` are slow for a large capture, because very many records or bodies have to be
        read or lines formatted. Then call ``read_runs`` and ``read_briefs`` in a thread."""
        chosen = self.parse(text)
        return any(_dear(term) for term in chosen.terms) or (bool(chosen.about_exchanges) and self._source.last > MANY)

    def live(self, text: str) -> bool:
        """Whether ``runs`` is fast enough to be called with each key while a filter is typed."""
        chosen, source = self.parse(text), self._source
        words = any(term.asks.words for term in chosen.terms)
        return (
            not chosen.reads
            and (not chosen.about_exchanges or source.last <= MANY)
            and (not words or len(source.runs) <= FEW)
        )

    def runs(self, text: str) -> list[RunBrief]:
        """The runs that match a filter, in order."""
        return [run for progress in self.read_runs(text) for run in progress.found]

    def briefs(self, text: str, number: int | None = None) -> list[Brief]:
        """The records that match a filter, of one run or of the whole capture, in order."""
        return [match for progress in self.read_briefs(text, number) for match in progress.found]

    # -- records ----------------------------------------------------------------------------------------

    def read_briefs(self, text: str, number: int | None = None) -> Iterator[Progress[Brief]]:
        """Like ``briefs``, in steps. The iterator may be used in a thread, and is cancelled by closing it. It raises
        CaptureError if the capture cannot be read."""
        chosen = self.parse(text)
        if number is None:
            return self._matching(self._pages(), self._source.last, chosen.terms)
        briefs = self._source.briefs(number)
        owned = _Owned(briefs, [self._source.run(number)] * len(briefs))
        return self._matching(iter([owned]), briefs[-1].seq if briefs else 0, chosen.terms)

    def _matching(self, pages: Iterator[_Owned], total: int, terms: Iterable[Term]) -> Iterator[Progress[Brief]]:
        cheap, dear = _apart(terms)
        for page in pages:
            left = page
            for term in cheap:
                left = left.fitting(term)
            if not dear:
                yield Progress(page.last, total, left.briefs)
                continue
            for last, some in self._candidates(left):
                yield Progress(last, total, [each.brief for each in some if _holds(each, dear)])
            yield Progress(page.last, total, [])

    def _pages(self) -> Iterator[_Owned]:
        """All records with their runs."""
        for page in self._source.pages():
            yield _Owned(page, list(map(self._source.owner_of, page)))

    def _candidates(self, owned: _Owned) -> Iterator[tuple[int, Iterator[Candidate]]]:
        """Records as input for filters, some at a time, with the number of the last of them. The capture is reopened
        for each: an open reader prevents the proxy from cleaning up."""
        for some in batched(zip(*owned, strict=True), STRIDE):
            with self._source.capture() as capture:
                yield (
                    some[-1][0].seq,
                    (
                        Candidate(brief, run, partial(wording.line, brief, run), partial(capture.record, brief.seq))
                        for brief, run in some
                    ),
                )

    # -- runs -------------------------------------------------------------------------------------------

    def read_runs(self, text: str) -> Iterator[Progress[RunBrief]]:
        """Like ``read_briefs``, for runs; all are in the last report."""
        chosen = self.parse(text)
        printed = self._printed if any(term.asks.words for term in chosen.about_runs) else lambda _: ""
        runs = [run for run in self._source.runs if chosen.matches_run(run, printed(run), marked=not chosen.forbids)]
        if not chosen.about_exchanges:
            return iter((Progress(len(runs), len(runs), runs),))
        return self._with_records(runs, chosen.about_exchanges, forbids=chosen.forbids)

    def _with_records(
        self, runs: list[RunBrief], terms: Iterable[Term], *, forbids: bool
    ) -> Iterator[Progress[RunBrief]]:
        """Return the runs with a record that matches all terms; with ``forbids``, where all terms are negated,
        those without a record that matches the opposite of one of them."""
        cheap, dear = _apart(terms)
        undecided = {run.number for run in runs}
        decided: set[int] = set()
        total = self._source.last
        for page in self._pages():
            left = page.of(undecided)
            for term in cheap:
                if forbids:
                    decided |= left.fitting(dataclasses.replace(term, negated=False)).numbers
                else:
                    left = left.fitting(term)
            if not dear:
                decided |= set() if forbids else left.numbers
            for last, some in self._candidates(left) if dear else ():
                for each in some:
                    number = each.run.number if each.run else None
                    # Terms that exclude are all negated: they hold for a record that matches none of them.
                    if number not in decided and _holds(each, dear) is not forbids and number is not None:
                        decided.add(number)
                yield Progress(last, total, [])
            undecided -= decided
            yield Progress(page.last, total, [])
        yield Progress(total, total, [run for run in runs if (run.number in decided) is not forbids])

    def _printed(self, run: RunBrief) -> str:
        cached = self._words.get(run.number)
        if cached is None or cached[0] is not run:
            cached = self._words[run.number] = run, wording.words(run)
        return cached[1]


def _holds(candidate: Candidate, terms: Iterable[Term]) -> bool:
    return all(term.asks.step(candidate) is not term.negated for term in terms)


def _dear(term: Term) -> bool:
    return term.asks.reads or term.asks.words


def _apart(terms: Iterable[Term]) -> tuple[list[Term], list[Term]]:
    """Separate the terms that the index can answer from the slow ones."""
    items = list(terms)
    return [term for term in items if not _dear(term)], [term for term in items if _dear(term)]
