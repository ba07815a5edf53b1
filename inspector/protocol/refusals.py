"""Why an agent refuses a catalog before it applies any of it.

Only what every agent refuses: it depends on nothing but the catalog, and on types that come with Puppet. What types
think of their parameters, and which relationships they add by themselves, is not known here.

An agent reads the catalog (resources, then edges), converts its resources into its own, which have names beside their
titles, looks for what they refer to, and puts all in order.
"""

from __future__ import annotations

import posixpath
from collections import Counter, deque
from enum import Enum, auto
from functools import cached_property
from itertools import chain
from operator import attrgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from inspector import regex
from inspector.protocol.cycles import components

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inspector.protocol.catalogs import Catalog, Resource


class Refusal(NamedTuple):
    """The reason that stops the agent."""

    message: str
    """As the agent says it, at the end of "Failed to apply catalog: ..." or of "Could not retrieve catalog from remote
    server: ..."."""
    read: bool = False
    """Whether the agent can read the catalog, and fails to apply it."""
    ref: str = ""
    """The resource that it is about; empty if it is about none."""
    place: str = ""
    """Where that resource is declared, if the message does not say so."""


def refusal(catalog: Catalog) -> Refusal | None:
    """Return why an agent refuses a catalog; None if nothing here says so. Takes linear time, 1 to 4 us a resource."""
    if catalog.unreadable:
        return Refusal(catalog.unreadable)
    return _Conversion(catalog).refusal()


# -- words ----------------------------------------------------------------------------------------

_TAG = regex.compile(r"[A-Za-z0-9_\x80-\x{10ffff}][A-Za-z0-9_:.\-\x80-\x{10ffff}]*\n?")
_IN_TAGS = "".join(filter(str.isalnum, map(chr, range(128)))).encode() + b"_:.-\n" + bytes(range(128, 256))
"""What lines of valid tags are made of."""
_REF = regex.compile(r"(?s)([^\[\]]+)\[(.+)\]")
_LINKS = (None, "manage", "follow", "ignore")


def _capitalized(name: str) -> str:
    """The name of a type, or of a class, as Puppet writes it: it looks at the first letter only."""
    if "A" <= name[:1] <= "Z":
        return name
    return "::".join(part.capitalize() for part in name.split("::"))


def _reference(kind: str, title: str) -> str:
    kind = "Class" if kind.lower() in ("", "component") else _capitalized(kind)
    if kind == "Class":
        title = _capitalized(title) or "main"
    return f"{kind}[{title}]"


def _at(resource: Resource, before: str = " ") -> str:
    """Where a resource is declared, in Puppet's words; empty if it is not known."""
    parts = [
        f"{name}: {value}" for name, value in (("file", resource.file), ("line", resource.line)) if value is not None
    ]
    return f"{before}({', '.join(parts)})" if parts else ""


def _no_reference(value: object) -> str:
    """What an agent says of something that is not of the form ``Type[title]``."""
    shown = f'"{value}"' if isinstance(value, str) else "nil" if value is None else str(value)
    return f"No title provided and {shown} is not a valid resource reference"


def _doubtful(tags: list[str]) -> bool:
    """Whether one of the tags may be invalid. A large catalog has too many to look at each."""
    text = "\n".join(["", *tags, ""]).encode("utf-8", "replace")
    odd = text.translate(None, _IN_TAGS) or text.count(b"\n") > len(tags) + 1
    return bool(tags) and (bool(odd) or any(begin in text for begin in (b"\n\n", b"\n:", b"\n.", b"\n-")))


def _each(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]


# -- types ----------------------------------------------------------------------------------------

_NAMEVARS = {
    "File": "path", "Exec": "command", "Tidy": "path",
    **dict.fromkeys(
        ("Filebucket", "Group", "Notify", "Package", "Resources", "Schedule", "Service", "Stage", "User"), "name"
    ),
}  # fmt: skip
"""The parameter that names a resource, by type: what comes with Puppet."""
_NAMED_OTHERWISE = frozenset(kind for kind, name in _NAMEVARS.items() if name != "name")
_CONTAINERS = frozenset({"Class", "Node"})
_GIVEN = frozenset({
    "Filebucket[puppet]",
    *(f"Schedule[{name}]" for name in ("puppet", "hourly", "daily", "weekly", "monthly", "never")),
})  # fmt: skip
"""What an agent adds to each catalog."""
_METAPARAMETERS = frozenset(
    {"alias", "audit", "before", "loglevel", "noop", "notify", "require", "schedule", "stage", "subscribe", "tag"}
)
"""The parameters of every resource."""
_COMES_FIRST = {"require": True, "subscribe": True, "before": False, "notify": False}
"""The relationships: whether what they name comes first."""
_NAMES = frozenset({"name", "path"})
_JUDGED = frozenset({*_NAMES, "alias", "tag"})
_LOOKED_AT = frozenset({*_JUDGED, *_COMES_FIRST})
"""The parameters that may make an agent refuse a resource."""


class _Role(Enum):
    """What an agent makes of a resource."""

    NATIVE = auto()
    """A resource of a type that comes with Puppet."""
    COMPONENT = auto()
    """A mere container, as of classes."""
    FOREIGN = auto()
    """A resource of a module's type, of which nothing is known here."""


def _role(kind: str, known: str | None, form: int) -> _Role:
    if form >= 2 and known != "compilable_type":
        return _Role.COMPONENT
    if kind in _NAMEVARS:
        return _Role.NATIVE
    return _Role.COMPONENT if kind in _CONTAINERS and form < 2 else _Role.FOREIGN


class _Conversion:
    """One catalog on its way into the agent."""

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._resources = resources = catalog.resources
        self._form = catalog.catalog_format or 0
        self._types = set(map(attrgetter("type"), resources))
        self._refs = [f"{resource.type}[{resource.title}]" for resource in resources]
        """The references of the resources, as Puppet writes them."""
        rewritten = {kind for kind in self._types if kind == "Class" or _reference(kind, "") != f"{kind}[]"}
        self._sent: dict[str, int] = {}
        """The references that Puppet writes in another way, as sent."""
        for number in self._numbers(rewritten):
            sent, self._refs[number] = self._refs[number], _reference(resources[number].type, resources[number].title)
            if sent != self._refs[number]:
                self._sent[sent] = number
        self._special = [
            number for number, resource in enumerate(resources) if not _LOOKED_AT.isdisjoint(resource.parameters)
        ]
        """The resources with a parameter that is looked at."""
        self._odd_files = [
            number
            for number in self._numbers(["File"])
            if "//" in (title := resources[number].title) or "/." in title or title[-1:] == "/" or title[:1] != "/"
        ]
        """The files whose title is not what the agent makes of it."""
        self._by_ref = dict(zip(reversed(self._refs), range(len(resources) - 1, -1, -1), strict=True))
        """The resources by title and alias, then also by name."""
        self._outer: list[int | None] = []
        """By edge, the container."""
        self._inner: list[int | None] = []
        """By edge, what is in it."""
        self._firsts: list[int] = []
        """By relationship, what is applied first."""
        self._seconds: list[int] = []
        """By relationship, what is applied after it."""
        self._unfound: list[int] = []
        """Resources that refer to what is no title and no alias."""

    def _role(self, number: int) -> _Role:
        resource = self._resources[number]
        return _role(resource.type, resource.kind, self._form)

    def _numbers(self, kinds: Iterable[str]) -> list[int]:
        """The resources of these types."""
        chosen = frozenset(kinds)
        return [number for number, resource in enumerate(self._resources) if resource.type in chosen] if chosen else []

    def refusal(self) -> Refusal | None:
        """Return the first reason. The order is the agent's."""
        return (
            self._invalid_tag()
            or self._declared_twice()
            or self._edge_to_nothing()
            or self._invalid_metadata()
            or self._invalid_resource()
            or self._named_twice()
            or self._dependency_on_nothing()
            or self._cycle()
        )

    def _refusal(self, message: str, number: int | None, *, read: bool = True) -> Refusal:
        if number is None:
            return Refusal(message, read)
        place = _at(self._resources[number], "")
        return Refusal(message, read, self._refs[number], "" if place in message else place)

    # -- the catalog is read --------------------------------------------------------------------------

    def _invalid_tag(self) -> Refusal | None:
        catalog = self._catalog
        lists = chain([catalog.tags, catalog.classes], map(attrgetter("tags"), self._resources))
        if not _doubtful([*chain.from_iterable(lists)]):
            return None
        of_resources = ((number, resource.tags) for number, resource in enumerate(self._resources))
        for number, tags in chain([(None, catalog.tags)], of_resources, [(None, catalog.classes)]):
            for tag in tags:
                if not _TAG.fullmatch(tag):
                    return self._refusal(f"Invalid tag '{tag.lower()}'", number, read=False)
        return None

    def _declared_twice(self) -> Refusal | None:
        if len(self._by_ref) == len(self._refs) and not any(
            "alias" in self._resources[number].parameters for number in self._special
        ):
            return None
        self._by_ref.clear()
        for number, ref in enumerate(self._refs):
            if (other := self._by_ref.setdefault(ref, number)) != number:
                return self._twice(number, other, read=False)
            kind = ref.partition("\n")[0].rpartition("[")[0]
            for alias in _each(self._resources[number].parameters.get("alias")):
                if not isinstance(alias, str):
                    continue
                other = self._by_ref.setdefault(f"{kind}[{alias}]", number)
                if other != number:
                    return self._aliased(number, f'"{alias}"', f'"{alias}"', other, read=False)
        return None

    def _twice(self, number: int, other: int, *, read: bool) -> Refusal:
        ref, place = self._refs[number], _at(self._resources[other], " at ")
        text = (
            f"Duplicate declaration: {ref} is already declared{place}; cannot redeclare{_at(self._resources[number])}"
        )
        return self._refusal(text, number, read=read)

    def _aliased(self, number: int, key: str, words: str, other: int, *, read: bool) -> Refusal:
        ref, kind = self._refs[number], self._refs[number].partition("[")[0]
        text = (
            f"Cannot alias {ref} to {key}{_at(self._resources[number], ' at ')}; "
            f'resource ["{kind}", {words}] already declared{_at(self._resources[other])}'
        )
        return self._refusal(text, number, read=read)

    def _edge_to_nothing(self) -> Refusal | None:
        edges = self._catalog.edges
        for ref, number in self._sent.items():
            self._by_ref.setdefault(ref, number)
        self._outer = [*map(self._by_ref.get, map(attrgetter("source"), edges))]
        self._inner = [*map(self._by_ref.get, map(attrgetter("target"), edges))]
        if None not in self._outer and None not in self._inner and all(edge.event is None for edge in edges):
            return None
        for place, edge in enumerate(edges):
            if edge.event not in (None, "NONE") and edge.event is not False and edge.callback in (None, False):
                message = "You must pass a callback for non-NONE events"
                return self._refusal(message, self._find(edge.target), read=False)
            self._outer[place] = outer = self._find(edge.source)
            if outer is None:
                return self._edge_refused("source", edge.source, edge.target)
            self._inner[place] = inner = self._find(edge.target)
            if inner is None:
                return self._edge_refused("target", edge.target, edge.source)
        return None

    def _edge_refused(self, end: str, ref: str, other: str) -> Refusal:
        text = f'Could not intern from data: Could not find relationship {end} "{ref}" for {other}'
        return self._refusal(text if _REF.fullmatch(ref) else _no_reference(ref or None), self._find(other), read=False)

    def _invalid_metadata(self) -> Refusal | None:
        trees = (tree for by_source in self._catalog.recursive_metadata.values() for tree in by_source.values())
        for metadata in chain(self._catalog.metadata.values(), *trees):
            if not _absolute(metadata.path):
                return Refusal("Paths must be fully qualified")
            if metadata.links not in _LINKS:
                return Refusal(":links can only be set to :manage or :follow")
        return None

    def _find(self, ref: str) -> int | None:
        """The number of a resource; None if nothing has this reference."""
        if (number := self._by_ref.get(ref)) is None and (parts := _REF.fullmatch(ref)):
            known = _reference(parts[1], parts[2])
            if (number := self._by_ref.get(known)) is None and known.startswith("File["):
                title = known[5:-1]
                number = self._by_ref.get(f"File[{title.rstrip('/') or title[:1]}]")
        return number

    # -- its resources are converted ------------------------------------------------------------------

    def _invalid_resource(self) -> Refusal | None:
        """Also collect the relationships: most resources that have any are sound otherwise."""
        doubtful = [*self._odd_files]
        by_ref = self._by_ref
        for number in self._special:
            parameters = self._resources[number].parameters
            if not _JUDGED.isdisjoint(parameters):
                doubtful.append(number)
            for name, comes_first in _COMES_FIRST.items():
                if name not in parameters:
                    continue
                value = parameters[name]
                for ref in value if type(value) is list else (value,):
                    other = by_ref.get(ref) if type(ref) is str else None
                    if other is None:
                        self._unfound.append(number)
                    else:
                        self._firsts.append(other if comes_first else number)
                        self._seconds.append(number if comes_first else other)
        for number in sorted({*doubtful, *self._unfound, *self._misplaced()}):
            if reason := self._invalid(self._resources[number], self._role(number)):
                return self._refusal(reason, number)
        return None

    def _misplaced(self) -> list[int]:
        """The resources that cannot be what the catalog says: classes of a type, and files without one."""
        if self._form < 2:
            return []
        found = [number for number in self._numbers(_CONTAINERS) if self._resources[number].kind == "compilable_type"]
        named = self._numbers(_NAMED_OTHERWISE)
        return found + [number for number in named if self._resources[number].kind != "compilable_type"]

    def _invalid(self, resource: Resource, role: _Role) -> str:
        """Return why a resource is none for any agent; empty if nothing here says so."""
        parameters = resource.parameters
        if role is _Role.FOREIGN and resource.type in _CONTAINERS:
            return f"Resource type '{resource.type}' was not found"
        for name, value in parameters.items():
            of_type = role is not _Role.FOREIGN and name in ("name", _NAMEVARS.get(resource.type))
            if value is None and self._form >= 2 and (of_type or name in _METAPARAMETERS):
                return f"Got nil value for {name}"
        if role is _Role.COMPONENT and resource.type in _NAMED_OTHERWISE:
            return "Got nil value for name"
        if role is _Role.NATIVE and resource.type == "File":
            path = parameters.get("path", parameters.get("name", resource.title))
            if not resource.title:
                return 'No set of title patterns matched the title "".'
            if isinstance(path, str | int) and not _absolute(str(path)):
                return self._failed(resource, "path", f"File paths must be fully qualified, not '{path}'")
        for tag in _each(parameters.get("tag")):
            if isinstance(tag, str) and not _TAG.fullmatch(tag):
                return self._failed(resource, "tag", f"Invalid tag '{tag.lower()}'{_at(resource)}")
        for name in _COMES_FIRST:
            for other in _each(parameters[name]) if name in parameters else ():
                if isinstance(other, dict):
                    wrong = "Puppet::Resource.new does not take a hash as the first argument."
                    return self._failed(resource, name, wrong)
                if not isinstance(other, str) or (other not in self._by_ref and not _REF.fullmatch(other)):
                    return self._failed(resource, name, _no_reference(other))
        return ""

    def _failed(self, resource: Resource, parameter: str, reason: str) -> str:
        return f"Parameter {parameter} failed on {_reference(resource.type, resource.title)}: {reason}{_at(resource)}"

    def _named_twice(self) -> Refusal | None:
        """Add the names that resources have beside their titles; of those that collide the one that the agent comes to
        first is reported."""
        found, first = None, len(self._refs)
        named = (number for number in self._special if not _NAMES.isdisjoint(self._resources[number].parameters))
        for number in sorted({*named, *self._odd_files, *self._numbers(["Package"])}):
            name, words = self._name(number)
            if name is None:
                continue
            other = self._by_ref.setdefault(f"{self._refs[number].partition('[')[0]}[{name}]", number)
            if other != number and max(other, number) < first:
                first = max(other, number)
                if other > number:  # its title is what the earlier one is named
                    found = self._twice(other, number, read=True)
                else:
                    found = self._aliased(number, f"[{words}]", words, other, read=True)
        return found

    def _name(self, number: int) -> tuple[str | None, str]:
        """Return the name that a resource has beside its title: for comparing, and in Ruby's notation."""
        resource, role = self._resources[number], self._role(number)
        kind, parameters = resource.type, resource.parameters
        name = parameters.get("name")
        if role is _Role.FOREIGN or (role is _Role.NATIVE and kind in ("Exec", "Tidy")):
            name = None  # several may have one name
        elif kind == "File" and role is _Role.NATIVE:
            name = _path(parameters.get("path", parameters.get("name", resource.title)))
        elif kind == "Package" and role is _Role.NATIVE:
            name, provider = parameters.get("name", resource.title), parameters.get("provider", "")
            if isinstance(name, str) and isinstance(provider, str) and "command" not in parameters:
                return f"{name}\0{provider}", f':default, "{name}", :{provider or "…"}'
            name = None
        same = role is _Role.NATIVE and name == resource.title
        return (None, "") if same or not isinstance(name, str) else (name, f'"{name}"')

    # -- what they refer to ---------------------------------------------------------------------------

    def _dependency_on_nothing(self) -> Refusal | None:
        for number in dict.fromkeys(self._unfound):
            parameters = self._resources[number].parameters
            for name in _COMES_FIRST:
                for ref in _each(parameters[name]) if name in parameters else ():
                    other = self._find(ref)
                    if other is not None:
                        self._firsts.append(other if _COMES_FIRST[name] else number)
                        self._seconds.append(number if _COMES_FIRST[name] else other)
                    elif self._absent(ref):
                        parts = _REF.fullmatch(ref)
                        shown = _reference(parts[1], parts[2]) if parts else ref
                        word = "dependency" if _COMES_FIRST[name] else "dependent"
                        text = f"Could not find {word} {shown} for {self._refs[number]}{_at(self._resources[number])}"
                        return self._refusal(text, number)
        return None

    def _absent(self, ref: str) -> bool:
        """Whether no resource can have a reference that is neither a title nor a known name. What a module's types make
        names of is not known."""
        parts = _REF.fullmatch(ref)
        known = _reference(parts[1], parts[2]) if parts else ref
        return known not in _GIVEN and known.partition("[")[0] not in self._foreign

    @cached_property
    def _foreign(self) -> set[str]:
        return {resource.type for number, resource in enumerate(self._resources) if self._role(number) is _Role.FOREIGN}

    # -- order ----------------------------------------------------------------------------------------

    def _cycle(self) -> Refusal | None:
        following = self._following()
        before: dict[int, int] = dict.fromkeys(following, 0)
        for points in following.values():
            for point in points:
                before[point] = before.get(point, 0) + 1
        ready = [point for point, count in before.items() if not count]
        for point in ready:
            for other in following.get(point, ()):
                before[other] -= 1
                if not before[other]:
                    ready.append(other)
        if len(ready) == len(before):
            return None
        left = sorted(before.keys() - set(ready))
        place = {point: number for number, point in enumerate(left)}
        after = [[place[other] for other in following.get(point, ()) if other in place] for point in left]
        cycles = [
            group for group in components(len(left), after.__getitem__) if len(group) > 1 or group[0] in after[group[0]]
        ]
        way = [left[number] // 2 for number in _way(min(map(sorted, cycles)), after)]
        shown = " => ".join(self._refs[number] for number in way)
        return self._refusal(f"Found {len(cycles)} dependency cycle{'s' if len(cycles) > 1 else ''}: ({shown})", way[0])

    def _following(self) -> dict[int, list[int]]:
        """What comes after each point. A resource is one point (its number twice), and a container two, its beginning
        and its end (one more): what is in it comes between them."""
        containers = {
            number
            for number in {*self._outer}
            if number is not None and (self._role(number) is _Role.COMPONENT or self._resources[number].type == "Stage")
        }
        following: dict[int, list[int]] = {2 * number: [2 * number + 1] for number in containers}
        for first, second in zip(self._firsts, self._seconds, strict=True):
            following.setdefault(2 * first + (first in containers), []).append(2 * second)
        tied = {*containers, *self._firsts, *self._seconds}
        if len({*self._inner}) < len(self._inner):
            # What is in several containers ties these together.
            tied |= {number for number, count in Counter(self._inner).items() if number is not None and count > 1}
        for outer, inner in zip(self._outer, self._inner, strict=True):
            if inner in tied and outer in containers:
                following[2 * outer].append(2 * inner)
                following.setdefault(2 * inner + (inner in containers), []).append(2 * outer + 1)
        return following


def _absolute(path: str) -> bool:
    """Whether a path may be a whole one on some system."""
    return path[:1] in ("/", "\\") or path[1:3] in (":/", ":\\")


def _is_odd(path: str) -> bool:
    return "//" in path or "/." in path or path[-1:] == "/" or path[:1] != "/"


def _path(value: Any) -> str | None:
    """A path as the agent makes it; None if that depends on its system."""
    if not isinstance(value, str) or value[:1] != "/" or value[:2] == "//":
        return None
    return posixpath.normpath(value) if _is_odd(value) else value


def _way(group: list[int], following: list[list[int]]) -> list[int]:
    """Return the shortest way from a point of a cycle back to it."""
    start = group[0]
    came: dict[int, int] = {}
    waiting = deque([start])
    while waiting:
        point = waiting.popleft()
        for other in following[point]:
            if other == start:
                way = [start]
                while point != start:
                    way.append(point)
                    point = came[point]
                return [start, *reversed(way)]
            if other not in came:
                came[other] = point
                waiting.append(other)
    return group
