"""What a catalog contains in what: stages, the classes in them, the resources in those. Plain data, without widgets.

A reference names a resource by its title, by the parameter that is its name (``path`` of a file), or by an alias.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from itertools import islice
from typing import TYPE_CHECKING, Any

from inspector.explain.resource_outcomes import DEPTH, Applied, Status

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from inspector.protocol.documents import Edge

PATHS = frozenset({"file", "tidy"})
"""Types whose name is the parameter ``path``. Of others it is ``name``."""
_BY_TITLE = frozenset({"exec", "package"})
"""Types that agents find by their title only: two execs may run one command, and a package's name is not unique without
its provider. A master accepts ``Package[NAME]``, and the agent does not find it."""


class Containment:
    """The resources of a catalog and of its report, by number, each in at most one container.

    What is only referred to has a number behind all others.
    """

    def __init__(self, outcomes: Sequence[Applied], edges: Iterable[Edge] = ()) -> None:
        """Read the containers from the edges; of what is only in the report, from its path there."""
        self._outcomes = outcomes
        self.refs = [outcome.ref for outcome in outcomes]
        self.known = len(outcomes)
        """The number of resources in the catalog or in the report; what follows is only referred to."""
        self._numbers = {ref: number for number, ref in reversed([*enumerate(self.refs)])}
        self.parents: list[int | None] = [None] * self.known
        self.tangled: dict[int, int] = {}
        """Of each circle of containers one resource, and its container, in which it is not shown."""
        for edge in edges:
            inner = self.number(edge.target)
            outer = self.number(edge.source)
            if self.parents[inner] is None:
                self.parents[inner] = outer
        for number, outcome in enumerate(outcomes):
            if outcome.resource is None and self.parents[number] is None and (above := _container(outcome)):
                self.parents[number] = self.number(above)
        self._untangle()

    # -- references -------------------------------------------------------------------------------------

    def find(self, ref: str) -> int | None:
        """The number of a resource; None if nothing has this reference."""
        number = self._numbers.get(ref)
        return number if number is not None else self._names.get(key(ref))

    def number(self, ref: str) -> int:
        """The number of a resource; a new one if it is not known."""
        number = self.find(ref)
        if number is None:
            number = self._numbers[ref] = self._names[key(ref)] = len(self.refs)
            self.refs.append(ref)
            self.parents.append(None)
        return number

    @cached_property
    def _names(self) -> dict[str, int]:
        """The resources by all of their names; titles come first."""
        found: dict[str, int] = {}
        for number, ref in enumerate(self.refs):
            found.setdefault(key(ref), number)
        for number, outcome in enumerate(self._outcomes):
            for name in _names(outcome):
                found.setdefault(key(f"{outcome.type}[{name}]"), number)
        return found

    def outcome(self, number: int) -> Applied:
        """Return a resource and its outcome; only its reference if the catalog just refers to it."""
        if number < self.known:
            return self._outcomes[number]
        ref = self.refs[number]
        kind, _, title = ref.partition("[")
        return Applied(ref, kind, title.removesuffix("]"), None, None, Status.UNREPORTED, None, None)

    def missing(self, number: int) -> bool:
        """Whether a resource is only referred to."""
        return number >= self.known

    # -- containers -------------------------------------------------------------------------------------

    def _untangle(self) -> None:
        """Take one of each circle of containers out of its container."""
        done = bytearray(len(self.parents))
        for start in range(len(self.parents)):
            way: list[int] = []
            at: int | None = start
            while at is not None and not done[at]:
                done[at] = 1  # on the way
                way.append(at)
                at = self.parents[at]
            if at is not None and done[at] == 1 and (parent := self.parents[at]) is not None:
                self.tangled[at] = parent
                self.parents[at] = None
            for number in way:
                done[number] = 2

    @cached_property
    def contents(self) -> list[list[int]]:
        """The contents of each resource, in the order of the catalog."""
        found: list[list[int]] = [[] for _ in self.parents]
        for number, parent in enumerate(self.parents):
            if parent is not None:
                found[parent].append(number)
        return found

    @property
    def roots(self) -> list[int]:
        """The resources without a container, except those that are only referred to and contain nothing."""
        return [
            number
            for number, parent in enumerate(self.parents)
            if parent is None and (number < self.known or self.contents[number])
        ]

    def above(self, number: int, most: int = DEPTH) -> list[int]:
        """The containers of a resource, the innermost first."""
        return [*islice(self._above(number), most)]

    def _above(self, number: int) -> Iterator[int]:
        at = self.parents[number]
        while at is not None:
            yield at
            at = self.parents[at]

    @cached_property
    def below(self) -> list[Below | None]:
        """What happened to the resources in each container, at any depth; None: it contains nothing."""
        order: list[int] = []
        waiting = [number for number, parent in enumerate(self.parents) if parent is None]
        while waiting:
            order.append(number := waiting.pop())
            waiting += self.contents[number]
        found = [Below() if inner else None for inner in self.contents]
        for number in reversed(order):
            parent = self.parents[number]
            above = None if parent is None else found[parent]
            if above is not None:
                above.add(self.outcome(number), found[number])
        return found


@dataclass(slots=True)
class Below:
    """What happened to the resources in a container."""

    counts: Counter[Status] = field(default_factory=Counter)
    """How many have which outcome, of those in the report."""
    time: float | None = None
    """Seconds of their evaluation; None: not known."""

    def add(self, outcome: Applied, inner: Below | None) -> None:
        """Add a resource, and those in it."""
        if outcome.status is not Status.UNREPORTED:
            self.counts[outcome.status] += 1
        for time in (outcome.time, inner.time if inner else None):
            if time is not None:
                self.time = (self.time or 0.0) + time
        if inner:
            self.counts.update(inner.counts)


def key(ref: str) -> str:
    """A reference in the form in which two of the same resource are equal: ``file[/a]`` for ``File[/a/]``."""
    kind, opened, title = ref.partition("[")
    kind, title = kind.lower().removeprefix("::"), title.removesuffix("]")
    if kind == "class":
        title = title.lower().removeprefix("::") or "main"
    elif kind in PATHS:
        title = title.rstrip("/") or title[:1]
    return f"{kind}[{title}]" if opened else ref


def _names(outcome: Applied) -> Iterator[str]:
    """The names of a resource beside its title."""
    resource, kind = outcome.resource, outcome.type.lower()
    if resource is None:
        return
    named: list[Any] = [resource.parameters.get("alias")]
    if kind not in _BY_TITLE:
        named.append(resource.parameters.get("path" if kind in PATHS else "name"))
    yield from texts(named)


def texts(value: Any) -> Iterator[str]:
    """The texts in a value and in its lists, from left to right."""
    waiting = [value]
    while waiting:
        match waiting.pop():
            case str() as text:
                yield text
            case list() as items:
                waiting += reversed(items)


def _container(outcome: Applied) -> str | None:
    """The container of a resource by its path in the report, in which a class has no brackets."""
    path = outcome.result.containment_path if outcome.result else None
    if not path or len(path) < 2:
        return None
    return path[-2] if "[" in path[-2] else f"Class[{path[-2]}]"
