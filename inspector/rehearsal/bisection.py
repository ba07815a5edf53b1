"""The smallest set of facts whose change changes a resource: found by compiling with some of the changes at a time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from inspector.compare import comparison
from inspector.compare.masks import Masks
from inspector.errors import CaptureError, IdentityError, InspectorError
from inspector.rehearsal import answered, compiling, fact_changes
from inspector.rehearsal.compiling import Question, Role, Task
from inspector.rehearsal.noise import Noise
from inspector.rehearsal.rehearsal import Rehearsal
from inspector.rehearsal.requests import Unsendable
from inspector.text import clean, plural

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from inspector.compare.differences import Difference
    from inspector.compare.documents import RunDocuments
    from inspector.progress import Watch
    from inspector.protocol.documents import Facts
    from inspector.rehearsal.requests import Asked

    type Changed = tuple[str, Any]
    """The name of a fact, and its other value."""


@dataclass(frozen=True, slots=True)
class FactChange:
    """A fact on which a resource depends. Values are JSON-able, with masks."""

    name: str
    before: Any
    after: Any
    """None: it is not there."""


@dataclass(frozen=True, slots=True)
class Bisected:
    """On which facts a resource depends."""

    node: str
    resource: str
    facts: tuple[FactChange, ...]
    """Empty: on none of those that were changed."""
    differences: tuple[Difference, ...]
    """The changes of the resource by these facts."""
    noise: tuple[str, ...]
    """What of it differs between two compiles with the recorded facts, which is left out: addresses."""
    candidates: int
    """How many facts were changed."""
    compiles: int


def smallest[T](changes: Sequence[T], matter: Callable[[Sequence[T]], bool]) -> list[T]:
    """Return a smallest part of changes that still matters, given that all together do: none of them can be left out
    (delta debugging: halves, quarters, and so on)."""
    left, parts = list(changes), 2
    while len(left) > 1:
        size = -(-len(left) // parts)
        pieces = [left[at : at + size] for at in range(0, len(left), size)]
        others = [[change for piece in pieces if piece is not one for change in piece] for one in pieces]
        if found := next((piece for piece in pieces if matter(piece)), None):
            left, parts = found, 2
        elif len(pieces) > 2 and (found := next((rest for rest in others if matter(rest)), None)):
            left, parts = found, max(parts - 1, 2)
        elif parts < len(left):
            parts = min(parts * 2, len(left))
        else:
            break
    return left


class Bisection(Rehearsal):
    """A rehearsal of one node, again and again."""

    _in_pairs = False

    def bisect(self, resource: str, watch: Watch) -> Bisected:
        """Find the facts on which a resource depends, among those that the plan changes. Raises InspectorError."""
        if len(self.nodes) != 1:
            raise InspectorError(
                f"Facts are bisected for one node, and there are {len(self.nodes)}.", "Choose one with --agent NAME."
            )
        (node,) = self.nodes
        self._try_connection()
        try:
            asked = self._asked(node)
            compiler = _Compiler(self, asked, watch)
            plain, again = compiler.documents(None), compiler.documents(None)
            recorded = asked.facts
        except (Unsendable, IdentityError, CaptureError) as error:
            reason = error.message if isinstance(error, InspectorError) else str(error)
            raise InspectorError(
                f"{clean(node.brief.name)} cannot be rehearsed: {reason}.", "Choose another."
            ) from error
        if plain.catalog is None or plain.without_catalog:
            raise InspectorError(
                f"The catalog of {clean(node.brief.name)} does not compile with the recorded facts: "
                f"{plain.catalog_failure or plain.without_catalog}.",
                "Repair that first.",
            )
        changes = list(fact_changes.between(recorded, self.plan.facts.applied(recorded)))
        return compiler.bisect(resource, plain, again, changes)


class _Compiler:
    """Compiles the catalog of one node with other facts."""

    def __init__(self, rehearsal: Bisection, asked: Asked, watch: Watch) -> None:
        self._rehearsal, self._asked, self._watch = rehearsal, asked, watch
        self._count = 0
        self._known: dict[frozenset[str], list[Difference] | None] = {}
        """Return the changes of the resource if these facts are changed; None: it does not compile."""

    def documents(self, facts: Facts | None) -> RunDocuments:
        """Compile with some facts, or the recorded ones. Raises InspectorError if there is no answer."""
        rehearsal, of = self._rehearsal, self._asked
        road, role = rehearsal.plan.road, Role.PLAIN if facts is None else Role.CHANGED
        self._count += 1
        task = Task(
            f"{of.certname}#{self._count}", of,
            {role: Question(rehearsal.plan.target, road.request(of, rehearsal.plan.environment, facts))},
            road.credentials(of), road.identity(of), files=False,
        )  # fmt: skip
        compiled = compiling.compile_all(task, rehearsal._stop)
        if compiled.unreachable:
            raise InspectorError(f"There is {compiled.unreachable}.", "Try it again.")
        rehearsal._check_first(task, compiled)
        exchanges = compiled.exchanges[role]
        rehearsal._answers.add(exchanges)
        return answered.gathered(of, exchanges, f"compile {self._count}")

    def bisect(self, resource: str, plain: RunDocuments, again: RunDocuments, changes: list[Changed]) -> Bisected:
        """Find the facts on which a resource depends; ``plain`` and ``again`` have the recorded ones. Raises
        InspectorError."""
        recorded = self._asked.facts
        wanted = _lowered(resource)
        noise, noisy = Noise(), self._differences(plain, again)
        noise.learn(noisy)

        def changed(some: Sequence[Changed]) -> list[Difference] | None:
            key = frozenset(name for name, _ in some)
            if key not in self._known:
                self._watch(len(self._known), len(self._known) + len(changes), "compiling")
                after = self.documents(fact_changes.some(recorded, some))
                self._known[key] = None if after.without_catalog else [
                    each for each in self._differences(plain, after)
                    if wanted in map(_lowered, each.names) and not noise.covers(each)
                ]  # fmt: skip
            return self._known[key]

        everything = changed(changes) if changes else []
        if not everything and plain.catalog is not None and plain.catalog.find(resource) is None:
            raise InspectorError(f"{resource} is not in the catalog.", "Name a resource like 'File[/etc/motd]'.")
        if everything:
            found = smallest(changes, lambda some: bool(changed(some)))
        else:  # with all of them it does not compile, or they outweigh each other
            found = next(([change] for change in changes if changed([change])), [])
            if not found and everything is None:
                raise InspectorError(
                    f"With other values of {plural(len(changes), 'fact')} there is no catalog to compare.",
                    "Change fewer: --drop-fact and --fact name them.",
                )
        masks = Masks(facts=[recorded])
        facts = tuple(
            FactChange(
                name, masks.value(name, recorded.values.get(name)),
                None if value is msgspec.UNSET else masks.value(name, value),
            )
            for name, value in found
        )  # fmt: skip
        differences = tuple(changed(found) or ()) if found else ()
        left_out = tuple(each.address for each in noisy if wanted in map(_lowered, each.names))
        return Bisected(self._asked.certname, resource, facts, differences, left_out, len(changes), self._count)

    def _differences(self, before: RunDocuments, after: RunDocuments) -> list[Difference]:
        return comparison.answers(before, after, self._rehearsal.plan.choices, with_files=False).differences


def _lowered(ref: str) -> str:
    kind, bracket, title = ref.partition("[")
    return kind.lower() + bracket + title
