"""The tree of a run's catalog as lines: what contains what, with the outcomes of what is in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from rich.text import Text

from inspector.explain.resource_outcomes import Status
from inspector.pages import palette

if TYPE_CHECKING:
    from collections import Counter
    from collections.abc import Collection, Iterator

    from inspector.explain.containment import Below, Containment
    from inspector.explain.resource_outcomes import Applied

DEEPEST = 36
"""Cells for the lines that lead to what is in a resource; further outside they are left out."""
SMALL = 40
"""A catalog of no more resources is open at first."""


class TreeLine(NamedTuple):
    """One line of the tree."""

    number: int
    """The number of its resource."""
    depth: int
    outcome: Applied
    open: bool
    """Whether its contents follow."""
    below: Below | None
    """The outcomes of what it contains; None: it contains nothing."""
    lead: str = ""
    """The lines that lead to it."""
    note: str = ""
    """What is wrong with its place in the tree."""

    @property
    def mark(self) -> str:
        """Whether it has a branch, and whether that is open."""
        if self.below is None:
            return "─ " if self.lead else "  "
        return "▼ " if self.open else "▶ "


def shown(tree: Containment, opened: Collection[int], wanted: Collection[int] | None = None) -> list[TreeLine]:
    """The lines of a tree of which these branches are open; with ``wanted`` only these resources and their
    containers."""
    return [*_lines(tree, opened, wanted if wanted is None else with_containers(tree, wanted))]


def with_containers(tree: Containment, wanted: Collection[int]) -> set[int]:
    """These resources and all of their containers."""
    found: set[int] = set()
    for number in wanted:
        at: int | None = number
        while at is not None and at not in found:
            found.add(at)
            at = tree.parents[at]
    return found


def _lines(tree: Containment, opened: Collection[int], wanted: Collection[int] | None) -> Iterator[TreeLine]:
    waiting = [*_children(tree.roots, wanted, 0, "")]
    while waiting:
        number, depth, around, lead = waiting.pop()
        inner = tree.contents[number]
        is_open = bool(inner) and number in opened
        yield TreeLine(number, depth, tree.outcome(number), is_open, tree.below[number], lead, note(tree, number))
        if is_open:
            waiting += _children(inner, wanted, depth + 1, around)


def _children(
    numbers: list[int], wanted: Collection[int] | None, depth: int, around: str
) -> Iterator[tuple[int, int, str, str]]:
    """Yield siblings in reverse order, each with the lines that lead to its contents, and to itself."""
    last = True
    for number in reversed(numbers):
        if wanted is None or number in wanted:
            inner, own = ("   ", "└─") if last else ("│  ", "├─")
            yield number, depth, (around + inner)[-DEEPEST:] if depth else "", around + own if depth else ""
            last = False


def order(tree: Containment) -> Iterator[int]:
    """All resources from top to bottom, as if all branches were open."""
    waiting = [*reversed(tree.roots)]
    while waiting:
        yield (number := waiting.pop())
        waiting += reversed(tree.contents[number])


def note(tree: Containment, number: int) -> str:
    """What is wrong with a resource's place in the tree; empty: nothing."""
    if tree.missing(number):
        return "not in the catalog"
    return "contains itself" if number in tree.tangled else ""


def first_open(tree: Containment) -> set[int]:
    """The branches that are open at first: all of a small catalog, else those that lead to what failed."""
    if tree.known <= SMALL:
        return {number for number, inner in enumerate(tree.contents) if inner}
    failed = [number for number in range(tree.known) if tree.outcome(number).status in (Status.FAILED, Status.RESTART)]
    return with_containers(tree, failed) | {*tree.roots}


def counts(below: Counter[Status]) -> Text:
    """How many of which outcome, the worst first."""
    text = Text()
    for status in Status:
        if below[status]:
            text.append(", " if text else "").append(f"{below[status]} {status}", palette.RESOURCES[status])
    return text
