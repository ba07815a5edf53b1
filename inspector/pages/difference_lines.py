"""A comparison of two runs as the lines of a list, each with the record that shows it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from inspector.compare import text
from inspector.compare.differences import Section
from inspector.protocol.kinds import Kind
from inspector.text import clean, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspector.compare.comparison import Comparison
    from inspector.compare.differences import Change, Difference
    from inspector.compare.documents import RunDocuments
    from inspector.compare.times import TimeCompared

TIMES = "times"
"""What stands where a section does of what is a time."""
LONG = 200
"""Characters of a value."""


class Proof(NamedTuple):
    """A record that shows a difference."""

    run: int
    seq: int


class DifferenceLine(NamedTuple):
    """A line: a difference, a time, or a section that could not be compared."""

    key: int
    section: str
    change: Change | None
    """None: it is not a difference."""
    what: str
    before: str
    after: str
    counts: bool
    """Whether it is one of what makes two runs different: volatile facts and noise do not."""
    difference: Difference | None = None
    note: str = ""
    proof: Proof | None = None


def lines(comparison: Comparison) -> list[DifferenceLine]:
    """The lines of a comparison."""
    return [line._replace(key=key) for key, line in enumerate(_lines(comparison))]


def _lines(comparison: Comparison) -> Iterator[DifferenceLine]:
    for section in Section:
        if reason := comparison.uncompared.get(section):
            what = f"not compared: {clean(reason)}"
            yield DifferenceLine(
                0, str(section), None, what, "", "", counts=True, proof=_proof(section, "", comparison)
            )
        for difference in comparison.of(section):
            yield _difference(difference, comparison, counts=True)
        if section is Section.FACTS:
            for difference in comparison.volatile:
                yield _difference(difference, comparison, counts=False)
    for time in comparison.times:
        yield _time(time)


def _difference(difference: Difference, comparison: Comparison, *, counts: bool) -> DifferenceLine:
    before, after = text.values(difference, LONG)
    proof = _proof(difference.section, difference.name, comparison, before=difference.change == "removed")
    address = clean(difference.address)
    return DifferenceLine(
        0, str(difference.section), difference.change, address, before, after, counts, difference, proof=proof
    )


def _time(time: TimeCompared) -> DifferenceLine:
    what = " ".join(filter(None, (time.kind if time.what else "whole run", clean(time.what))))
    note = time.noise
    if not note and time.usual:
        note = f"usual: {' to '.join(map(seconds, time.usual))}"
    change: Change | None = None if time.noise else "changed"
    return DifferenceLine(0, TIMES, change, what, seconds(time.before), seconds(time.after), not time.noise, note=note)


_KINDS = {
    Section.CATALOG: Kind.CATALOG, Section.FACTS: Kind.CATALOG, Section.REPORT: Kind.REPORT
}  # fmt: skip
"""The kind of request that has what a section is about."""


def _proof(section: Section, name: str, comparison: Comparison, *, before: bool = False) -> Proof | None:
    """The record that shows a difference, by preference of the second run."""
    sides = (comparison.before, comparison.after) if before else (comparison.after, comparison.before)
    return next((proof for side in sides if (proof := _of_side(section, name, side))), None)


def _of_side(section: Section, name: str, side: RunDocuments) -> Proof | None:
    if side.run.number is None:
        return None
    seqs: list[int] = []
    if section is Section.FILES:
        seqs = [use.seq for use in side.files if use.name == name]
    elif section is Section.FINDINGS:
        seqs = [seq for finding in side.run.findings if finding.rule == name for seq in finding.seqs[:1]]
    elif section is Section.REQUESTS:
        seqs = [request.seq for request in side.requests if request.name == name]
    elif section in _KINDS:
        seqs = [request.seq for request in side.requests if request.kind is _KINDS[section]]
    return Proof(side.run.number, seqs[-1]) if seqs else None
