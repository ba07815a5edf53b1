"""Two catalogs by meaning: resources by type and title, their parameters, containers, relationships and tags.

The file and the line of a resource are no change, nor is the order of anything, nor the way in which a reference names
a resource (its title, its path, an alias). A new cycle of dependencies is a difference of its own.
"""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from inspector.compare import meaning
from inspector.compare.differences import Section
from inspector.explain import resource_outcomes
from inspector.explain.catalog_graph import CatalogGraph
from inspector.explain.containment import PATHS, Containment, key, texts
from inspector.protocol import rich

if TYPE_CHECKING:
    from inspector.compare.differences import Difference, Differences
    from inspector.protocol.documents import Catalog, Resource

RELATIONS = frozenset(resource_outcomes.RELATIONS)
CYCLE = 50
"""Resources of a cycle that are listed."""


class _Side:
    """One of the two catalogs."""

    def __init__(self, catalog: Catalog) -> None:
        self.catalog = catalog
        self.resources: dict[str, Resource] = {}
        """By their references; of several with one, the later ones by that and their number."""
        numbers = Counter[str]()
        for resource in catalog.resources:
            name = key(resource.ref)
            numbers[name] += 1
            self.resources[name if numbers[name] == 1 else f"{name}\0{numbers[name]}"] = resource
        self._names: Containment | None = None

    def canonical(self, ref: str) -> str:
        """A reference by the title of the resource, in the form in which two of one resource are equal."""
        found = key(ref)
        if found in self.resources:
            return found
        if self._names is None:  # only a few references use another name
            self._names = Containment(resource_outcomes.resources(self.catalog, None))
        number = self._names.find(ref)
        return found if number is None else key(self._names.refs[number])


def compare(before: Catalog, after: Catalog, found: Differences, *, tags: bool = False) -> None:
    """Add the differences of two catalogs."""
    old, new = _Side(before), _Side(after)
    renamed = _renamed(old, new)
    for name, resource in old.resources.items():
        other = new.resources.get(name)
        if other is not None:
            _resource(resource, other, old, new, found, tags=tags)
        elif name in renamed:
            other = renamed[name]
            _add(found, resource, other, "title", resource.title, other.title)
            _resource(resource, other, old, new, found, tags=tags)
        else:
            found.add(
                Section.CATALOG, resource.ref, "", resource.values, places=(place(resource),), change="removed",
                means=_means(resource),
            )  # fmt: skip
    paired = {key(resource.ref) for resource in renamed.values()}
    for name, resource in new.resources.items():
        if name not in old.resources and name not in paired:
            found.add(
                Section.CATALOG, resource.ref, "", None, resource.values, places=(place(resource),), change="added",
                means=_means(resource),
            )  # fmt: skip
    _containers(old, new, {name: key(resource.ref) for name, resource in renamed.items()}, found)
    if any(_may_close_cycle(difference) for difference in found.found):
        _cycles(before, after, found)


def place(resource: Resource) -> str:
    """File and line of the manifest; empty if they are not known."""
    if not resource.file:
        return ""
    return resource.file if resource.line is None else f"{resource.file}:{resource.line}"


def _means(resource: Resource) -> Any:
    return {name: meaning.plain(value) for name, value in resource.values.items()}


def _add(
    found: Differences, old: Resource, new: Resource, part: str, before: Any, after: Any, *, sensitive: bool = False,
    note: str = "",
) -> None:  # fmt: skip
    found.add(
        Section.CATALOG,
        new.ref,
        part,
        before,
        after,
        sensitive=sensitive,
        places=(place(old), place(new)),
        note=note,
        formerly=old.ref,
    )


def _renamed(old: _Side, new: _Side) -> dict[str, Resource]:
    """Return the resources that have another title and still manage the same thing, by their old title."""
    gone = {name: resource for name, resource in old.resources.items() if name not in new.resources}
    by_name: dict[str, Resource] = {}
    for name, resource in new.resources.items():
        if gone and name not in old.resources and (own := _own_name(resource)):
            by_name.setdefault(own, resource)
    found: dict[str, Resource] = {}
    for name, resource in gone.items():
        if (own := _own_name(resource)) and (other := by_name.pop(own, None)):
            found[name] = other
    return found


def _own_name(resource: Resource) -> str:
    """Return a reference that names what a resource manages: by its path or name, or else by its title."""
    parameter = "path" if resource.type.lower() in PATHS else "name"
    name = resource.parameters.get(parameter)
    return key(f"{resource.type}[{name}]") if isinstance(name, str) and name else key(resource.ref)


def _resource(old: Resource, new: Resource, olds: _Side, news: _Side, found: Differences, *, tags: bool) -> None:
    """Add the differences of one resource."""
    if (
        old.parameters != new.parameters
        or old.sensitive_parameters != new.sensitive_parameters
        or meaning.encoded(old.parameters) != meaning.encoded(new.parameters)  # in Python, 1 equals true
    ):
        for name in {**old.parameters, **new.parameters}:
            _parameter(name, old, new, olds, news, found)
    if old.exported != new.exported:
        _add(found, old, new, "exported", old.exported, new.exported)
    if tags and {*old.tags} != {*new.tags}:
        _add(found, old, new, "tags", sorted({*old.tags}), sorted({*new.tags}))


def _parameter(name: str, old: Resource, new: Resource, olds: _Side, news: _Side, found: Differences) -> None:
    sent, now = old.parameters.get(name), new.parameters.get(name)
    marks = _marked(old, name), _marked(new, name)
    if type(sent) is str and type(now) is str and sent == now and marks[0] == marks[1]:
        return  # most of them
    before, after = old.value(name), new.value(name)
    if name in RELATIONS and _are_references(before) and _are_references(after):
        if not _same_references(before, after, olds, news):
            _add(found, old, new, name, before, after)
    elif not meaning.same(before, after):
        _add(found, old, new, name, before, after, sensitive=any(marks))
    elif marks[0] != marks[1] and before is not None:
        note = f"the same value, {'now' if marks[1] else 'no longer'} marked as sensitive"
        _add(found, old, new, name, before, after, sensitive=True, note=note)


def _marked(resource: Resource, name: str) -> bool:
    """Whether a parameter contains a secret, whichever way it is marked."""
    value = resource.parameters.get(name)
    return name in resource.sensitive_parameters or (isinstance(value, dict | list) and rich.secrets(value))


def _are_references(value: Any) -> bool:
    """Whether a value is nothing but references, as all but Deferred ones are."""
    value = meaning.bare(value)
    return (
        value is None
        or isinstance(value, str)
        or (isinstance(value, list) and all(isinstance(meaning.bare(each), str) for each in value))
    )


def _same_references(before: Any, after: Any, olds: _Side, news: _Side) -> bool:
    before, after = _texts(before), _texts(after)
    if {key(text) for text in before} == {key(text) for text in after}:
        return True
    return {olds.canonical(text) for text in before} == {news.canonical(text) for text in after}


def _texts(value: Any) -> list[str]:
    value = meaning.bare(value)
    return list(texts([meaning.bare(each) for each in value] if isinstance(value, list) else value))


def _containers(old: _Side, new: _Side, renamed: dict[str, str], found: Differences) -> None:
    """Add what is in another container, of the resources that are in both catalogs."""
    edges = {(edge.source, edge.target) for edge in old.catalog.edges}
    others = {(edge.source, edge.target) for edge in new.catalog.edges}
    if edges == others:
        return
    moved = {
        target for side, only in ((old, edges - others), (new, others - edges))
        for target in (side.canonical(inner) for _, inner in only)
    }  # fmt: skip
    before, after = _parents(old, edges, moved), _parents(new, others, {*moved, *renamed.values()})
    for name, resource in old.resources.items():
        other = new.resources.get(renamed.get(name, name))
        if name in moved and other is not None:
            was = sorted(renamed.get(ref, ref) for ref in before.get(name, ()))
            now = sorted(after.get(key(other.ref), ()))
            if was != now:
                _add(found, resource, other, "container", _titles(old, was), _titles(new, now))


def _may_close_cycle(difference: Difference) -> bool:
    part = difference.part
    return difference.section is Section.CATALOG and (
        part in RELATIONS or part == "container" or (not part and difference.change == "added")
    )


def _cycles(before: Catalog, after: Catalog, found: Differences) -> None:
    """Add the cycles of one catalog only: the agent applies nothing of a catalog with one."""
    new = _cycles_of(after)
    old = _cycles_of(before) if new else set()
    for cycle in sorted(new - old):
        found.add(Section.CATALOG, cycle[0], "cycle", None, list(cycle[:CYCLE]))


def _cycles_of(catalog: Catalog) -> set[tuple[str, ...]]:
    graph = CatalogGraph(resource_outcomes.resources(catalog, None), catalog.edges)
    members: dict[int, list[str]] = {}
    for number, cycle in graph.cycles.items():
        members.setdefault(cycle, []).append(graph.tree.refs[number])
    return {tuple(sorted(refs)) for refs in members.values()}


def _parents(side: _Side, edges: set[tuple[str, str]], of: set[str]) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for source, target in edges:
        if (inner := side.canonical(target)) in of:
            found.setdefault(inner, set()).add(side.canonical(source))
    return found


def _titles(side: _Side, refs: list[str]) -> Any:
    """Return references as the catalog writes them: a list, or the reference itself if there is only one."""
    titles = [side.resources[ref].ref if ref in side.resources else ref for ref in refs]
    return titles[0] if len(titles) == 1 else titles or None
