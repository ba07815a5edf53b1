"""A catalog as a graph: what is applied before what, and what triggers what. Plain data, without widgets.

Its edges are containment only; relationships are parameters of the resources (docs/protocol.md#catalogs). What an agent
adds by itself (a file needs its directory) is not in a catalog.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import chain, islice
from typing import TYPE_CHECKING

from inspector.explain.containment import Containment, texts
from inspector.protocol.cycles import components
from inspector.text import excerpt

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from inspector.explain.resource_outcomes import Applied
    from inspector.protocol.documents import Edge

LONGEST = 200
"""Characters of a reference in a sentence."""
MOST = 1000
"""Relationships, and contents, of a resource that are listed."""


class Kind(StrEnum):
    """A relationship, by the parameter that states it."""

    REQUIRE = "require"
    BEFORE = "before"
    SUBSCRIBE = "subscribe"
    NOTIFY = "notify"

    @property
    def refreshes(self) -> bool:
        """Whether a change of the first resource triggers the second one."""
        return self in (Kind.SUBSCRIBE, Kind.NOTIFY)

    @property
    def of_second(self) -> bool:
        """Whether it is a parameter of the resource that is applied second."""
        return self in (Kind.REQUIRE, Kind.SUBSCRIBE)


KINDS = tuple(Kind)


@dataclass(frozen=True, slots=True)
class Relation:
    """A relationship, as a resource has it."""

    kind: Kind
    other: int
    """The resource at the other end."""
    owner: int
    """The resource with the parameter."""
    target: int
    """The resource that the parameter names."""
    through: int | None = None
    """The container by which the resource has the relationship; None: it has it itself."""
    cycle: bool = False
    """Whether each of the two has to be applied before the other."""


@dataclass(frozen=True, slots=True)
class Neighbourhood:
    """What is around one resource."""

    number: int
    containers: list[int]
    """The innermost first."""
    contents: list[int]
    needs: list[Relation]
    """To what is applied before it."""
    needed_by: list[Relation]
    """To what is applied after it."""
    more: tuple[int, int, int]
    """How many of the contents, of ``needs`` and of ``needed_by`` are not listed."""
    cycle: bool
    """Whether it is in a cycle: nothing in it can be applied."""


class CatalogGraph:
    """The relationships of a catalog, in both directions."""

    def __init__(self, outcomes: Sequence[Applied], edges: Iterable[Edge] = ()) -> None:
        """Read the parameters of all resources."""
        self.tree = Containment(outcomes, edges)
        # By number of the relationship: the resource that is applied first, the one after it, and the kind.
        self._first, self._second, self._kinds = array("q"), array("q"), bytearray()
        self._before: dict[int, array[int]] = {}
        """By resource the relationships to what is applied before it."""
        self._after: dict[int, array[int]] = {}
        for number, outcome in enumerate(outcomes):
            if outcome.resource is not None:
                for kind, place in _PLACES.items():
                    if (value := outcome.resource.parameters.get(kind)) is not None:
                        for ref in dict.fromkeys(texts(value)):
                            self._add(number, KINDS[place], self.tree.number(ref))

    def _add(self, owner: int, kind: Kind, other: int) -> None:
        first, second = (other, owner) if kind.of_second else (owner, other)
        number = len(self._kinds)
        self._first.append(first)
        self._second.append(second)
        self._kinds.append(_PLACES[kind])
        self._before.setdefault(second, array("q")).append(number)
        self._after.setdefault(first, array("q")).append(number)

    def around(self, number: int) -> Neighbourhood:
        """The neighbourhood of a resource."""
        tree = self.tree
        containers = tree.above(number)
        contents = tree.contents[number]
        holders: list[int | None] = [None, *containers]
        sides = []
        for by, forward in ((self._before, False), (self._after, True)):
            counted = sum(len(by.get(number if holder is None else holder, ())) for holder in holders)
            every = chain.from_iterable(self._relations(number, holder, forward=forward) for holder in holders)
            sides.append((listed := [*islice(every, MOST)], max(0, counted - len(listed))))
        (needs, more_needs), (needed_by, more_needed) = sides
        return Neighbourhood(
            number, containers, contents[:MOST], needs, needed_by,
            (max(0, len(contents) - MOST), more_needs, more_needed), number in self.cycles,
        )  # fmt: skip

    def stated(self, relation: Relation) -> str:
        """A relationship in Puppet's words: ``File[/a] has require => Package[b]``."""
        refs = self.tree.refs
        first, second = (refs[relation.owner], refs[relation.target])
        text = f"{excerpt(first, LONGEST)} has {relation.kind} => {excerpt(second, LONGEST)}"
        if relation.through is not None:
            text += f", which applies to all that is in {excerpt(refs[relation.through], LONGEST)}"
        return f"{text}."

    def _relations(self, number: int, holder: int | None, *, forward: bool) -> Iterator[Relation]:
        own = number if holder is None else holder
        for at in (self._after if forward else self._before).get(own, ()):
            kind = KINDS[self._kinds[at]]
            other = self._second[at] if forward else self._first[at]
            owner, target = self._second[at], self._first[at]
            if not kind.of_second:
                owner, target = target, owner
            cycle = own in self.cycles and self.cycles[own] == self.cycles.get(other)
            yield Relation(kind, other, owner, target, holder, cycle)

    # -- cycles -----------------------------------------------------------------------------------------

    @cached_property
    def cycles(self) -> dict[int, int]:
        """The resources that are in a cycle of dependencies, each with the number of its cycle.

        As an agent sees it: a container begins before what it contains, and ends after that.
        """
        found: dict[int, int] = {}
        for number, group in enumerate(components(2 * len(self.tree.refs), self._next)):
            if len(group) > 1:
                found |= dict.fromkeys((point // 2 for point in group), number)
        return found

    def _next(self, point: int) -> list[int]:
        """What follows a point: the beginning of a resource (its number twice), or its end (one more)."""
        number, ends = divmod(point, 2)
        if not ends:
            return [2 * child for child in self.tree.contents[number]] or [point + 1]
        following = [2 * self._second[at] for at in self._after.get(number, ())]
        parent = self.tree.parents[number]
        return following if parent is None else [*following, 2 * parent + 1]


_PLACES = {kind: place for place, kind in enumerate(KINDS)}
