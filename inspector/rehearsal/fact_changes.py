"""Facts that are left out or changed before they are sent: the difference is what depends on them."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec

from inspector import regex
from inspector.compare import meaning
from inspector.errors import InspectorError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from inspector.protocol.documents import Facts

SEPARATOR = "."
"""Between the names in the path of a structured fact."""
_DEEPEST = 50


@dataclass(frozen=True, slots=True)
class FactChanges:
    """The changes of the facts of each node."""

    without_legacy: bool = False
    """Whether the flat facts are left out that 8.x does not send."""
    given: tuple[tuple[str, Any], ...] = ()
    """Paths and values."""
    dropped: tuple[str, ...] = ()
    """Shell patterns of paths."""

    def __bool__(self) -> bool:
        return bool(self.without_legacy or self.given or self.dropped)

    def __str__(self) -> str:
        parts = ["without legacy facts"] if self.without_legacy else []
        parts += [f"without {pattern}" for pattern in self.dropped]
        parts += [f"{path} = {json.dumps(value, ensure_ascii=False)}" for path, value in self.given]
        return ", ".join(parts)

    @property
    def each(self) -> Iterator[FactChanges]:
        """Each change alone."""
        if self.without_legacy:
            yield FactChanges(without_legacy=True)
        yield from (FactChanges(dropped=(pattern,)) for pattern in self.dropped)
        yield from (FactChanges(given=(one,)) for one in self.given)

    def applied(self, facts: Facts) -> Facts:
        """Return the facts with these changes."""
        values = dict(facts.values)
        if self.without_legacy:
            for name in facts.legacy:
                del values[name]
        if self.dropped:
            patterns = [regex.glob(pattern) for pattern in self.dropped]
            values = _without(values, patterns, "", 0)
        for path, value in self.given:
            values = _with(values, path.split(SEPARATOR) if path not in values else [path], value)
        return msgspec.structs.replace(facts, values=values)


def given(text: str) -> tuple[str, Any]:
    """Return the path and the value of ``NAME=VALUE``; the value is JSON, or else text. Raises InspectorError."""
    path, equals, value = text.partition("=")
    names = path.split(SEPARATOR)
    if not equals or not all(names) or len(names) > _DEEPEST:
        raise InspectorError(f"{text!r} gives no fact a value.", "Use the form NAME=VALUE, or os.family=Debian.")
    try:
        return path, msgspec.json.decode(value.encode())
    except (msgspec.DecodeError, RecursionError):
        return path, value


def _without(values: dict[str, Any], patterns: list[regex.Pattern[str]], prefix: str, depth: int) -> dict[str, Any]:
    left: dict[str, Any] = {}
    for name, value in values.items():
        path = f"{prefix}{name}"
        if any(pattern.fullmatch(path) for pattern in patterns):
            continue
        if isinstance(value, dict) and depth < _DEEPEST:
            left[name] = _without(value, patterns, path + SEPARATOR, depth + 1)
        else:
            left[name] = value
    return left


def _with(values: dict[str, Any], names: list[str], value: Any) -> dict[str, Any]:
    first, *others = names
    if others:
        inner = values.get(first)
        value = _with(inner if isinstance(inner, dict) else {}, others, value)
    return {**values, first: value}


def between(before: Facts, after: Facts) -> Iterator[tuple[str, Any]]:
    """Yield each fact that differs, with its value after; ``msgspec.UNSET``: it is not there."""
    for name in {**before.values, **after.values}:
        value = after.values.get(name, msgspec.UNSET)
        if name not in before.values or meaning.encoded(before.values[name]) != meaning.encoded(value):
            yield name, value


def some(before: Facts, changes: Iterable[tuple[str, Any]]) -> Facts:
    """Return facts with some of the changes that ``between`` found."""
    values = dict(before.values)
    for name, value in changes:
        if value is msgspec.UNSET:
            values.pop(name, None)
        else:
            values[name] = value
    return msgspec.structs.replace(before, values=values)
