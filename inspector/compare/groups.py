"""Several nodes compared: the same changes on many of them are one group."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from inspector.compare.differences import Section

if TYPE_CHECKING:
    from inspector.compare.comparison import Comparison
    from inspector.compare.differences import Difference

GROUPED = (Section.RUN, Section.CATALOG, Section.FILES)
"""Sections that are grouped: what the master decides. Of the others, which differ from node to node, it is only counted
on which nodes they do."""


@dataclass(frozen=True, slots=True)
class Group:
    """Changes that exactly these nodes have."""

    nodes: tuple[str, ...]
    differences: tuple[Difference, ...]
    """As the first of the nodes has them."""


@dataclass(frozen=True, slots=True)
class Failed:
    """Nodes whose catalogs could not be compared, all for one reason."""

    reason: str
    nodes: tuple[str, ...]


@dataclass(slots=True)
class Groups:
    """What was found of several nodes so far. Of each change only one copy is kept."""

    same: list[str] = field(default_factory=list)
    """Nodes without a change."""
    only_before: list[str] = field(default_factory=list)
    only_after: list[str] = field(default_factory=list)
    """Nodes with a run on one side only."""
    alone: list[str] = field(default_factory=list)
    """Nodes with a single run in the only capture."""
    others: dict[Section, list[str]] = field(default_factory=dict)
    """The nodes with differences in each of the sections that are not grouped."""
    ignored: int = 0
    _failed: dict[str, tuple[str, list[str]]] = field(default_factory=dict)
    _changes: dict[str, Difference] = field(default_factory=dict)
    """By identity, as the first node has it."""
    _nodes: dict[str, list[int]] = field(default_factory=dict)
    """By identity, the places of the nodes that have it."""
    _names: list[str] = field(default_factory=list)
    """The nodes that were compared, by their places."""

    def add(self, comparison: Comparison) -> None:
        """Add the comparison of a node."""
        name = comparison.after.name
        self.ignored += comparison.ignored.total()
        if Section.CATALOG in comparison.uncompared:
            reason = "; ".join(
                ": ".join(filter(None, (f"the run {when} {side.without_catalog}", side.catalog_failure)))
                for when, side in (("before", comparison.before), ("after", comparison.after))
                if side.without_catalog
            )
            self.fail(name, reason)
            return
        for section in {each.section: None for each in comparison.differences if each.section not in GROUPED}:
            self.others.setdefault(section, []).append(name)
        found = [difference for difference in comparison.differences if difference.section in GROUPED]
        if not found:
            self.same.append(name)
            return
        place = len(self._names)
        self._names.append(name)
        for difference in found:
            self._changes.setdefault(difference.identity, difference)
            places = self._nodes.setdefault(difference.identity, [])
            if places[-1:] != [place]:
                places.append(place)

    def fail(self, name: str, reason: str) -> None:
        """Add a node that could not be compared."""
        self._failed.setdefault(reason.replace(name, "\0"), (reason, []))[1].append(name)

    @property
    def failed(self) -> list[Failed]:
        """The nodes that could not be compared, by reason, the most frequent one first."""
        found = [Failed(reason, tuple(nodes)) for reason, nodes in self._failed.values()]
        return sorted(found, key=lambda failed: -len(failed.nodes))

    @property
    def groups(self) -> list[Group]:
        """The changes in groups: those of most nodes first."""
        by_nodes: dict[tuple[int, ...], list[Difference]] = {}
        for identity, places in self._nodes.items():
            by_nodes.setdefault(tuple(places), []).append(self._changes[identity])
        found = [
            Group(tuple(self._names[place] for place in places), tuple(differences))
            for places, differences in by_nodes.items()
        ]
        return sorted(found, key=lambda group: (-len(group.nodes), -len(group.differences)))

    @property
    def changed(self) -> int:
        """How many nodes have changes."""
        return len(self._names)

    @property
    def status(self) -> int:
        """0: no difference on any node; 1: differences, also nodes with a run on one side only; 2: nodes that could not
        be compared, or none at all."""
        if self._failed or not (self.same or self._names):
            return 2
        return int(bool(self._names or self.others or self.only_before or self.only_after))
