"""A record in full as lines of plain text: the tabs of the terminal inspector, one after the other, for `show`."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from inspector import regex
from inspector.pages.content import Content, dump, read
from inspector.pages.message import COVERED, Body
from inspector.pages.model import ASK, WRONG, Item, Table
from inspector.pages.tabs import known, tabs, unshown
from inspector.privacy.secrets import MASK
from inspector.protocol.documents import Undecodable
from inspector.summaries import summary, wording
from inspector.text import clean, excerpt, size

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from inspector.analysis.analyzer import Step
    from inspector.pages.tabs import Model, TabPart
    from inspector.summaries.summary import RunLike

LINES = 200
"""Lines that are printed of a part of a tab."""
LONGEST = 2000
"""Characters that are printed of a cell, or of a line of a text."""
ALIGNED = 72
"""Characters of a column at most: a longer cell pushes the rest of its line to the right."""
LARGE = 2_000_000
"""Bytes of a body that is not printed if it was understood: to find its secrets all of it has to be gone through."""
PER = 16
"""Bytes on a line of hexadecimal."""
_HOW = "show it with x in `puppet-inspector open`"
_HIDDEN = {
    ASK: f"{MASK} ({_HOW})",
    COVERED: f"{MASK} contains a secret; {_HOW}",
}
"""What the terminal inspector says of something hidden, and what is said where no key can be pressed."""


def markdown(step: Step, run: RunLike | None) -> list[str]:
    """A record for a ticket: a heading, what is wrong, and the rest in a fence that nothing captured can end."""
    title, _, *rest = lines(step, run, findings=False)
    longest = max((len(run) for line in rest for run in regex.findall("`+", line)), default=0)
    fence = "`" * max(3, longest + 1)
    wrong = [
        f"- {finding.severity} {finding.rule}: {_escaped(clean(finding.message))}"
        for finding in summary.shown_by(step.record.seq, run)
    ]
    return [f"### Record {_escaped(title)}", "", *wrong, *([""] if wrong else []), fence, *rest, fence, ""]


def _escaped(text: str) -> str:
    """Text in which Markdown and HTML have no meaning."""
    return regex.sub(r"([\\`*_\[\]<>#|~])", r"\\\1", text)


def lines(
    step: Step, run: RunLike | None, related: Iterable[Step] = (), *, findings: bool = True, masks: bool = True
) -> list[str]:
    """What happened, what is wrong with it, and all tabs but the explanation of the endpoint.

    Certificates are judged by the record's own and those in ``related``, earlier steps of its run. Without ``masks``,
    secrets are printed too.
    """
    number = run.number if run and run.number else "-"
    found = [f"{step.record.seq}  {wording.line(summary.brief_of(step), run)}", f"run {number}, phase {step.phase}"]
    if step.match:
        found.append(f"{step.match.endpoint.name}: {step.match.endpoint.purpose}")
    if findings:
        shown = summary.shown_by(step.record.seq, run)
        found += [f"{finding.severity} {finding.rule}: {finding.message}" for finding in shown]
    for tab in tabs(step, known(step, related), run):
        if tab.name == "Explain":
            continue
        for part in tab.parts:
            found += ["", tab.name if part.title == tab.name else f"{tab.name}: {part.title}"]
            found += [f"  {line}" for line in part_lines(part, masks=masks)]
    return [clean(line).rstrip() for line in found]


def part_lines(part: TabPart, *, masks: bool = True) -> list[str]:
    """The printed lines of a part of a tab, not yet cleaned."""
    try:
        return list(_drawn(part.make() if masks else _revealed(part.make())))
    except WRONG as error:
        return list(_drawn(unshown(error)))


def _revealed(model: Model) -> Model:
    """Show the secrets of a part."""
    match model:
        case Item():
            return model.uncovered()
        case Table():
            for row in range(min(LINES, len(model.rows))):
                model.reveal(row)
        case Content(unmasked=Content() as unmasked):
            return unmasked
        case Body():
            model.shown = True
    return model


def _drawn(model: Model) -> Iterator[str]:
    match model:
        case Item():
            branches = _tree(model)
            yield from islice(branches, LINES)
            if next(branches, None) is not None:
                yield "... more lines; --json prints all"
        case Table():
            yield from _table(model)
            yield from _more(len(model.rows))
        case Content():
            yield from _text(model)
        case Body():
            yield from _body(model)


def _body(body: Body) -> Iterator[str]:
    if len(body.decoded) > LARGE and body.document is not None and not isinstance(body.document, Undecodable):
        yield f"{body.about}; large: view it with `puppet-inspector open`, or decoded with --json"
        return
    content = body.content(body.mode)
    shown = list(_text(content))
    hidden = bool(content.hidden) or any(MASK in line for line in shown)
    yield content.title if not hidden or shown == [_HIDDEN[COVERED]] else f"{content.title}; {MASK}: {_HOW}"
    yield from shown


def _tree(root: Item) -> Iterator[str]:
    """Every line of a tree, without the branches that only group many items."""
    levels = [(0, iter(root.items))]
    while levels:
        depth, items = levels[-1]
        item = next(items, None)
        if item is None:
            levels.pop()
            continue
        if not item.group:
            yield f"{'  ' * depth}{_hidden(item.text)}"
        if item.branch:
            levels.append((depth if item.group else depth + 1, iter(item.items)))


def _table(table: Table) -> Iterator[str]:
    if not table.rows:
        yield table.empty
        return
    places = range(len(table.fields))
    rows = [[_hidden(table.cell(row, at).plain) for at in places] for row in range(min(LINES, len(table.rows)))]
    rows = [[field.title for field in table.fields], *([excerpt(cell, LONGEST) for cell in row] for row in rows)]
    widths = [min(ALIGNED, max(len(row[at]) for row in rows)) for at in places]
    for row in rows:
        cells = (
            cell.rjust(width) if field.right else cell.ljust(width)
            for cell, width, field in zip(row, widths, table.fields, strict=True)
        )
        yield "  ".join(cells)


def _text(content: Content) -> Iterator[str]:
    data = content.data
    if content.hexed:
        for begin in range(0, min(len(data), LINES * PER), PER):
            yield dump(content, begin, PER).plain
        yield from _more(-(-len(data) // PER))
    elif data:
        pieces = data.removesuffix(b"\n").split(b"\n", LINES)
        for piece in pieces[:LINES]:
            line = read(piece[: 4 * LONGEST])  # a character has four bytes at most
            yield _hidden(line) if len(line) <= LONGEST else f"{line[:LONGEST]}… ({size(len(piece))})"
        yield from _more(LINES + sum(rest.count(b"\n") + 1 for rest in pieces[LINES:]))


def _more(number: int) -> Iterator[str]:
    if number > LINES:
        yield f"... {number - LINES:,} more lines; --json prints all"


def _hidden(text: str) -> str:
    for mask, hint in _HIDDEN.items():
        text = text.replace(mask, hint)
    return text
