"""A catalog as trees: by containment, and by type."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

import msgspec

from inspector import regex
from inspector.explain import resource_outcomes
from inspector.explain.containment import Containment
from inspector.pages import languages
from inspector.pages.model import Item, fields, item_of, many
from inspector.privacy import hiding

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from inspector.pages.languages import Language
    from inspector.protocol.documents import Catalog, Resource

_WORD = regex.compile(r"[a-z0-9_./-]+")
_ADDED = "undef true false tags file line lines characters press x to show it bytes binary"
"""Words that a line may have beyond what was sent."""


def contained(catalog: Catalog) -> Item:
    """Return a catalog as a tree: stages, the classes in them, the resources in those."""
    tree = Containment(resource_outcomes.resources(catalog, None), catalog.edges)
    circular: dict[int, list[int]] = {}
    for number, container in tree.tangled.items():
        circular.setdefault(container, []).append(number)

    def item(number: int, *, opened: bool = False) -> Item:
        resource, held = tree.outcome(number).resource, tree.contents[number]
        if resource is None and not held:
            return Item(tree.refs[number], "not in this catalog")

        def inner() -> Iterator[Item]:
            yield from many(held, item, lambda number: tree.refs[number])
            yield from (Item(tree.refs[number], "contains itself") for number in circular.get(number, ()))
            if resource:
                yield from _fields(resource)

        note = _place(resource) if resource else "not in this catalog"
        note = f"{note}  contains {len(held)}" if held else note
        holds = _holds(resource) if resource and not held else None
        return Item(tree.refs[number], inner=inner, note=note.strip(), opened=opened, holds=holds)

    def roots() -> Iterator[Item]:
        tops = [number for number in tree.roots if number not in tree.tangled]
        yield from many(tops, lambda number: item(number, opened=True), lambda number: tree.refs[number])
        if lost := [*tree.tangled]:
            inner = lambda: many(lost, item, lambda number: tree.refs[number])  # noqa: E731
            yield Item("in a cycle", inner=inner, note=str(len(lost)))

    return Item("containment", inner=roots)


def by_type(catalog: Catalog) -> Item:
    """Types, and their resources by title."""

    def type_(kind: str, found: list[Resource]) -> Item:
        return Item(kind, inner=lambda: many(found, resource, lambda resource: resource.title), note=str(len(found)))

    def types() -> Iterator[Item]:
        ordered = sorted(catalog.resources, key=lambda resource: (resource.type, resource.title))
        for kind, found in groupby(ordered, lambda resource: resource.type):
            yield type_(kind, list(found))

    return Item("by type", inner=types)


def about(catalog: Catalog) -> Item:
    """The fields of a catalog."""

    def inner() -> Iterator[Item]:
        for name in ("name", "environment", "version", "catalog_uuid", "code_id", "catalog_format"):
            if (value := getattr(catalog, name)) is not None:
                yield Item(name, value)
        yield Item("static", "yes" if catalog.static else "no")
        yield Item("resources", f"{len(catalog.resources):,}")
        yield Item("edges", f"{len(catalog.edges):,}")
        yield Item("resources with secrets", f"{sum(bool(resource.sensitive) for resource in catalog.resources):,}")
        yield item_of("classes", sorted(catalog.classes))
        for name, struct in (("metadata", catalog.metadata), ("recursive_metadata", catalog.recursive_metadata)):
            if struct:
                yield item_of(name, struct)

    return Item("about", inner=inner)


def resource(resource: Resource) -> Item:
    """A resource with its parameters."""
    return Item(resource.title, inner=lambda: _fields(resource), note=_place(resource), holds=_holds(resource))


def _fields(resource: Resource) -> Iterator[Item]:
    for name, value in hiding.parameters(resource).items():
        yield item_of(name, value, language(resource) if name == "content" else None)
    if resource.tags:
        yield Item("tags", ", ".join(resource.tags), style="dim")
    yield from (Item(item.name, item.value, style="dim") for item in fields(resource) if item.name in ("file", "line"))


def language(resource: Resource) -> Language:
    """The language of a resource's content: of a file, by its path."""
    path = resource.parameters.get("path")
    return languages.of_file(path if isinstance(path, str) else resource.title)


def _place(resource: Resource) -> str:
    flags = [
        word
        for word, set_ in (("exported", resource.exported), ("secret", bool(resource.sensitive_parameters)))
        if set_
    ]
    where = f"{resource.file or ''}{f':{resource.line}' if resource.line is not None else ''}"
    return "  ".join([part for part in (where, *flags) if part])


def _holds(resource: Resource) -> Callable[[str], bool]:
    """Whether a resource's lines may contain a text: searching its JSON is faster than making the lines."""

    def holds(text: str) -> bool:
        if words := [word for word in _WORD.findall(text) if word not in _ADDED]:
            sent = msgspec.json.encode(resource, enc_hook=str).decode().casefold()
            return all(word in sent for word in words)
        return True

    return holds
