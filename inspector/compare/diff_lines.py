"""A comparison as lines for a console or a page, each with what it is, and as the rows of a list, each with the record
that shows it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from inspector.compare.differences import Section
from inspector.compare.groups import GROUPED
from inspector.protocol.kinds import Kind
from inspector.text import beginning, clean, excerpt, local_second, plural, seconds

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inspector.compare.comparison import Comparison
    from inspector.compare.differences import Change, Difference
    from inspector.compare.documents import RunDocuments
    from inspector.compare.groups import Groups
    from inspector.compare.times import TimeCompared

type Sort = Literal["head", "added", "removed", "changed", "plain", "note", "hunk", "old", "new", "same"]
"""What a line is: a heading; a difference; anything; something less important; the last ones: a line of a text."""

MOST = 15
"""Differences of a section, and lines of a text, that are shown unless all are."""
NODES = 20
"""Nodes of a group that are named unless all are."""
LONG = 160
"""Characters of a value that are shown unless all are."""
WHOLE = 10_000
"""The same, if all are."""
_SENTENCES = (Section.RUN, Section.FINDINGS)
"""Sections whose values are not cut."""
_SIGNS: dict[str, str] = {"added": "+", "removed": "-", "changed": "~"}
_TEXT: dict[str, Sort] = {"@": "hunk", "-": "old", "+": "new"}
_UNQUOTED = (Section.RUN, Section.FINDINGS, Section.REQUESTS, Section.REPORT, Section.FILES)
"""Sections whose values are texts of our own."""


TIMES = "times"
"""What stands where a section does of what is a time."""
ROW = 200
"""Characters of a value in a row."""


class Line(NamedTuple):
    """A line, safe for a terminal."""

    sort: Sort
    text: str


def lines(comparison: Comparison, *, full: bool = False) -> Iterator[Line]:
    """The lines of a comparison; ``full``: with all values, all differences and the volatile facts."""
    yield _side("before", comparison.before)
    yield _side("after", comparison.after)
    yield from _stop(comparison, full=full)
    stopped = None if full else comparison.stopped
    same: list[str] = []
    for section in Section:
        found, about = comparison.of(section), _about(section, comparison)
        if stopped:
            found = [difference for difference in found if not stopped.covers(difference)]
            if not found and (stopped.lacks(section) or comparison.of(section)):
                continue
        volatile = comparison.volatile if full and section is Section.FACTS else []
        reason = comparison.uncompared.get(section)
        if reason and not (stopped and stopped.lacks(section)):
            yield Line("plain", "")
            yield Line("head", f"{section}: not compared: {beginning(clean(reason), 600)}")
        elif not found and comparison.stopped and section is Section.FILES and comparison.stopped.lacks(section):
            yield Line("plain", "")
            yield Line(
                "head", clean(f"{section}: not compared: {comparison.stopped.side.label} asked for fewer ({about})")
            )
        elif not found and not volatile:
            same.append(f"{section} ({about})" if about else str(section))
            continue
        else:
            yield Line("plain", "")
            number = plural(len(found), "difference") if found else "no difference"
            yield Line("head", f"{section}: {number}{f' ({about})' if about else ''}")
        yield from differences(found, full=full)
        if volatile:
            yield Line("note", "  may change at any time:")
            yield from differences(volatile, full=True)
    yield Line("plain", "")
    yield from _times(comparison.times, full=full)
    if same:
        yield Line("head", f"no difference: {', '.join(same)}")


def _stop(comparison: Comparison, *, full: bool) -> Iterator[Line]:
    """What stopped the one run, and unless ``full`` in a line what of the other one it never came to."""
    stopped = comparison.stopped
    if stopped is None:
        return
    yield Line("plain", "")
    yield Line("head", f"{stopped.ending}: {clean(stopped.side.label)}")
    yield Line("removed", f"  {clean(stopped.why)}")
    if stopped.completed_since:
        yield Line("plain", f"  completed since: {clean(stopped.other.label)}")
    rest = stopped.rest(comparison.differences, comparison.uncompared)
    if rest and not full:
        yield Line("note", f"  never got that far: {clean(rest)} (--full)")


def grouped(groups: Groups, *, full: bool = False) -> Iterator[Line]:
    """The lines of several nodes whose runs were compared."""
    yield from nodes(groups, full=full)
    for section, found in sorted(groups.others.items()):
        yield Line("changed", f"{section}: different on {plural(len(found), 'node')}: {names(found, full=full)}")
    sections = [str(section) for section in Section if section not in GROUPED]
    yield Line("note", f"{', '.join(sections)} are shown with --agent NAME")


def nodes(groups: Groups, *, full: bool = False) -> Iterator[Line]:
    """The lines of several nodes."""
    compared = groups.changed + len(groups.same)
    failed_nodes = sum(len(failed.nodes) for failed in groups.failed)
    yield Line(
        "head",
        f"{plural(compared, 'node')} compared: {groups.changed:,} changed, {len(groups.same):,} without a change"
        + (f"; {failed_nodes:,} not compared" if failed_nodes else ""),
    )
    for number, group in enumerate(groups.groups):
        yield Line("plain", "")
        what = plural(len(group.differences), "change")
        if len(group.nodes) > 1:
            what = f"the same {what.removeprefix('1 ')}"
        yield Line("head", f"{what} on {plural(len(group.nodes), 'node')}: {names(group.nodes, full=full)}")
        yield from differences(group.differences, full=full)
        if not full and number + 1 == MOST and len(groups.groups) > MOST:
            yield Line("note", f"... {len(groups.groups) - MOST:,} more groups (--full)")
            break
    yield Line("plain", "")
    for failed in groups.failed:
        text = f"not compared: {plural(len(failed.nodes), 'node')}: {names(failed.nodes, full=True)}"
        yield Line("head", text)
        yield Line("removed", f"  {clean(excerpt(failed.reason, WHOLE if full else 600))}")
    for label, found in (
        ("without a change", groups.same),
        ("with a run before only", groups.only_before),
        ("with a run after only", groups.only_after),
        ("not compared, with one run only", groups.alone),
    ):
        if found:
            yield Line("head", f"{label}: {plural(len(found), 'node')}: {names(found, full=True)}")
    if groups.ignored:
        yield Line("note", f"{plural(groups.ignored, 'difference')} ignored")


def names(nodes: Sequence[str], *, full: bool) -> str:
    """The names of some nodes."""
    shown = nodes if full else nodes[:NODES]
    more = f" and {len(nodes) - len(shown):,} more (--full)" if len(shown) < len(nodes) else ""
    return f"{', '.join(map(clean, shown))}{more}"


def differences(found: Sequence[Difference], *, full: bool = False, indent: str = "  ") -> Iterator[Line]:
    """The lines of some differences."""
    for difference in found if full else found[:MOST]:
        for line in of_difference(difference, full=full):
            yield line._replace(text=indent + line.text)
    if not full and len(found) > MOST:
        yield Line("note", f"{indent}... {len(found) - MOST:,} more (--full)")


def of_difference(difference: Difference, *, full: bool = False) -> Iterator[Line]:
    """The lines of one difference."""
    address, values = clean(difference.address), _values(difference, full=full)
    note = f"  ({beginning(clean(difference.note), WHOLE if full else LONG)})" if difference.note else ""
    places = _places(difference.places)
    text = f"{_SIGNS[difference.change]} {address}{f': {values}' if values else ''}{note}"
    yield Line(difference.change, text)
    if places:
        yield Line("note", f"    {places}")
    if difference.change != "changed" and full and isinstance(difference.after or difference.before, dict):
        for name, value in (difference.after or difference.before).items():
            yield Line("plain", f"    {clean(str(name))} => {word(value)}")
    shown = difference.lines if full else difference.lines[:MOST]
    for line in shown:
        yield Line(_TEXT.get(line[:1], "same"), f"    {clean(line.expandtabs(4))}")
    if len(shown) < len(difference.lines):
        yield Line("note", f"    ... {len(difference.lines) - len(shown):,} more lines (--full)")


def _places(places: tuple[str, ...]) -> str:
    """Where it was and where it is; of two places in one file, the file once."""
    if len(places) == 2:
        (old, _, _), (new, colon, line) = (place.rpartition(":") for place in places)
        if colon and old == new:
            return clean(f"{places[0]} -> {line}")
    return " -> ".join(map(clean, places))


def _values(difference: Difference, *, full: bool) -> str:
    before, after = values(difference, WHOLE if full or difference.section in _SENTENCES else LONG)
    return f"{before} -> {after}" if before and after else before or after


def values(difference: Difference, longest: int) -> tuple[str, str]:
    """The values of a difference in a line each, before and after; empty if they are not there or shown otherwise."""
    if difference.lines and difference.section is not Section.FILES:
        return "", ""
    if difference.section is Section.CATALOG and not difference.part:
        return "", ""

    def shown(value: Any) -> str:
        plain = difference.section in _UNQUOTED and isinstance(value, str)
        text = clean(" ".join(value.split())) if plain else word(value)
        return excerpt(text, longest)

    before = "" if difference.change == "added" else shown(difference.before)
    return before, "" if difference.change == "removed" else shown(difference.after)


def word(value: Any) -> str:
    """A JSON-able value in a line, as a manifest writes it if that is short."""
    match value:
        case None:
            return "undef"
        case {"__ptype": "Binary", "__pvalue": str(digest)}:
            return f"Binary({clean(digest)})"
        case {"__ptype": "Deferred", "__pvalue": {"name": str(name), "arguments": list(arguments)}}:
            return f"Deferred({clean(name)}({', '.join(map(word, arguments))}))"
        case {"__ptype": str(kind), "__pvalue": inner}:
            return f"{clean(kind)}({word(inner)})"
        case {"__ptype": str(kind)}:
            return clean(kind)
    return clean(json.dumps(value, ensure_ascii=False))


def _side(label: str, documents: RunDocuments) -> Line:
    run = documents.run
    began = local_second(run.started)
    text = f"{label:<7} {documents.label}  {began}  {run.name}  {run.ending}, {seconds(run.duration)}"
    return Line("head", clean(text))


def _about(section: Section, comparison: Comparison) -> str:
    """How much a section compares, and what of it is not shown."""
    sides = comparison.before, comparison.after
    parts: list[str] = []
    match section:
        case Section.CATALOG:
            parts.append(f"{_both([len(side.catalog.resources) if side.catalog else 0 for side in sides])} resources")
        case Section.FACTS:
            parts.append(f"{_both([side.facts.count if side.facts else 0 for side in sides])} values")
            if more := len(comparison.volatile):
                parts.append(f"{plural(more, 'volatile one')} {'differs' if more == 1 else 'differ'}")
        case Section.FILES:
            parts.append(f"{_both([len(side.files) for side in sides])} files")
        case Section.REQUESTS:
            parts.append(f"{_both([len(side.requests) for side in sides])} requests")
    if ignored := comparison.ignored[section]:
        parts.append(f"{ignored:,} ignored")
    return ", ".join(parts)


def _both(numbers: list[int]) -> str:
    before, after = numbers
    return f"{before:,}" if before == after else f"{before:,} and {after:,}"


def _times(times: list[TimeCompared], *, full: bool) -> Iterator[Line]:
    telling = [time for time in times if not time.noise]
    whole = next((f" (whole run: {_spans(time)})" for time in times if time.kind == "run" and time.noise), "")
    yield Line(
        "head", f"times: {plural(len(telling), 'difference') if telling else 'no difference'} beyond noise{whole}"
    )
    for time in times if full else telling:
        name = clean(time.name)
        if time.noise:
            yield Line("note", f"    {name}: {_spans(time)}  ({time.noise})")
            continue
        ratio = f", {time.ratio:.1f} times" if time.ratio is not None else ""
        usual = f"; {_usual(time)}" if time.usual else ""
        sign = "+" if time.difference > 0 else "-"
        yield Line("changed", f"  ~ {name}: {_spans(time)}  ({sign}{seconds(abs(time.difference))}{ratio}{usual})")


def _spans(time: TimeCompared) -> str:
    return f"{seconds(time.before)} -> {seconds(time.after)}"


def _usual(time: TimeCompared) -> str:
    return f"usual: {' to '.join(map(seconds, time.usual))}" if time.usual else ""


# -- rows -----------------------------------------------------------------------------------------------------


class Proof(NamedTuple):
    """A record that shows a difference."""

    run: int
    seq: int


class DifferenceLine(NamedTuple):
    """A row: a difference, a time, or a section that could not be compared."""

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
    cause: str = ""
    """What stopped one of the runs, in a sentence, if the row is about that: its note is the fix then."""


def rows(comparison: Comparison) -> list[DifferenceLine]:
    """The rows of a comparison, as a list shows them."""
    return [line._replace(key=key) for key, line in enumerate(_rows(comparison))]


def _rows(comparison: Comparison) -> Iterator[DifferenceLine]:
    yield from _of_stop(comparison)
    stopped = comparison.stopped
    for section in Section:
        if reason := comparison.uncompared.get(section):
            what = f"not compared: {clean(reason)}"
            yield DifferenceLine(
                0, str(section), None, what, "", "", counts=not (stopped and stopped.lacks(section)),
                proof=_proof(section, "", comparison),
            )  # fmt: skip
        for difference in comparison.of(section):
            yield _difference(difference, comparison, counts=not (stopped and stopped.covers(difference)))
        if section is Section.FACTS:
            for difference in comparison.volatile:
                yield _difference(difference, comparison, counts=False)
    for time in comparison.times:
        yield _time(time)


def _of_stop(comparison: Comparison) -> Iterator[DifferenceLine]:
    """What stopped the one run, and what of the other one it never came to."""
    stopped = comparison.stopped
    if stopped is None:
        return
    number, seq = stopped.side.run.number, stopped.seq
    proof = Proof(number, seq) if number is not None and seq is not None else None
    yield DifferenceLine(
        0, stopped.ending, None, clean(stopped.reason), "", "", counts=True, note=stopped.fix, proof=proof,
        cause=clean(stopped.why),
    )  # fmt: skip
    if rest := stopped.rest(comparison.differences, comparison.uncompared):
        yield DifferenceLine(0, stopped.ending, None, f"never got that far: {clean(rest)}", "", "", counts=True)


def _difference(difference: Difference, comparison: Comparison, *, counts: bool) -> DifferenceLine:
    before, after = values(difference, ROW)
    proof = _proof(difference.section, difference.name, comparison, before=difference.change == "removed")
    address = clean(difference.address)
    return DifferenceLine(
        0, str(difference.section), difference.change, address, before, after, counts, difference, proof=proof
    )


def _time(time: TimeCompared) -> DifferenceLine:
    change: Change | None = None if time.noise else "changed"
    note = time.noise or _usual(time)
    before, after = seconds(time.before), seconds(time.after)
    return DifferenceLine(0, TIMES, change, clean(time.name), before, after, not time.noise, note=note)


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
