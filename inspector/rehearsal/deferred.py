"""Deferred values in an answer of v4, which has a text in the place of each: an agent gets them as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from inspector.explain.containment import key
from inspector.protocol.rich import MARK, MAX_DEPTH, VALUE

if TYPE_CHECKING:
    from inspector.protocol.documents import Catalog

_TEXT = "Deferred("


def restored(recorded: Catalog, answer: Catalog) -> tuple[Catalog, int]:
    """Return a catalog with the recorded Deferred values in the place of their texts, and how many: what is in them is
    not compared."""
    known = {key(resource.ref): resource.parameters for resource in recorded.resources}
    resources, count = [], 0
    for resource in answer.resources:
        parameters, found = _restored(known.get(key(resource.ref), {}), resource.parameters, 0)
        resources.append(msgspec.structs.replace(resource, parameters=parameters) if found else resource)
        count += found
    return (msgspec.structs.replace(answer, resources=resources), count) if count else (answer, 0)


def _restored(before: Any, after: Any, depth: int) -> tuple[Any, int]:
    """A value with those of a recorded one, and how many."""
    if depth > MAX_DEPTH:
        return after, 0
    match before, after:
        case {"__ptype": "Sensitive"}, _ if not (isinstance(after, dict) and after.get(MARK) == "Sensitive"):
            return _restored(before.get(VALUE), after, depth + 1)  # v4 lists the parameter as sensitive instead
        case {"__ptype": "Deferred"}, str() if after.startswith(_TEXT):
            return before, 1
        case dict(), dict():
            pairs = {name: _restored(before.get(name), value, depth + 1) for name, value in after.items()}
            return {name: value for name, (value, _) in pairs.items()}, sum(found for _, found in pairs.values())
        case list(), list() if len(before) == len(after):
            items = [_restored(one, other, depth + 1) for one, other in zip(before, after, strict=True)]
            return [value for value, _ in items], sum(found for _, found in items)
    return after, 0
