"""Values by what they mean: equal ones may be written in another format.

What PSON and plain JSON have no type for is a text there: a Binary is its Base64, a Timestamp its own text, the keys of
a mapping are texts (docs/protocol.md#rich-data). A Deferred is none of these: in PSON the agent gets its definition.
"""

from __future__ import annotations

import base64
from typing import Any

import msgspec

from inspector.protocol.rich import MAX_DEPTH, Rich

_WRITTEN = frozenset({"Timestamp", "Timespan", "SemVer", "SemVerRange", "Regexp", "URI", "Symbol"})
"""Types of values that are sent as their text."""


def encoded(value: Any) -> bytes:
    """A decoded value as JSON: equal bytes mean equal values."""
    return msgspec.json.encode(value, enc_hook=str)


def same(before: Any, after: Any, depth: int = 0) -> bool:
    """Whether two values, in which rich data was read, mean the same; whether one is marked as sensitive is ignored."""
    before, after = bare(before), bare(after)
    if depth > MAX_DEPTH:
        return encoded(before) == encoded(after)
    match before, after:
        case dict(), dict():
            return _same_mapping(before, after, depth)
        case list(), list():
            return len(before) == len(after) and all(
                same(old, new, depth + 1) for old, new in zip(before, after, strict=True)
            )
        case Rich(), Rich() if before.type == after.type:
            return same(before.value, after.value, depth + 1)
        case (Rich() as read, other) | (other, Rich() as read):
            return _written(read, other, depth)
        case (bool(), _) | (_, bool()):
            return before is after
        case int() | float(), int() | float():
            return before == after
    return type(before) is type(after) and bool(before == after)


def bare(value: Any) -> Any:
    """A value without the marks that it is sensitive; a mapping with texts as keys as such."""
    while isinstance(value, Rich) and value.sensitive:
        value = value.value
    if isinstance(value, Rich) and value.type == "Hash" and isinstance(value.value, list):
        pairs = [pair for pair in value.value if isinstance(pair, list) and len(pair) == 2]
        found = {_key(key): item for key, item in pairs}
        return found if len(found) == len(value.value) else value  # two keys are the same text, or it is no Hash
    return value


def _key(key: Any) -> str:
    if isinstance(key, bool) or key is None:
        return {True: "true", False: "false", None: ""}[key]
    return key if isinstance(key, str) else str(key)


def _same_mapping(before: dict[str, Any], after: dict[str, Any], depth: int) -> bool:
    # undef is the same as no value.
    names = {*before, *after}
    return all(same(before.get(name), after.get(name), depth + 1) for name in names)


def _written(read: Rich, other: Any, depth: int) -> bool:
    """Whether a rich value and one of another kind are the same value, as formats without rich data write it."""
    if not isinstance(other, str):
        return False
    if read.type == "Binary" and isinstance(read.value, bytes):
        return base64.b64encode(read.value).decode() == "".join(other.split())
    if read.type == "Default":
        return other == "default"
    return read.type in _WRITTEN and same(read.value, other, depth + 1)


def plain(value: Any, depth: int = 0) -> Any:
    """A value in which rich data was read as a JSON-able structure."""
    value = bare(value)
    if depth > MAX_DEPTH:
        return "..."
    match value:
        case dict():
            return {str(key): plain(item, depth + 1) for key, item in value.items()}
        case list():
            return [plain(item, depth + 1) for item in value]
        case Rich(value=bytes() as data):
            return {"__ptype": value.type, "__pvalue": base64.b64encode(data).decode()}
        case Rich(value=None):
            return {"__ptype": value.type}
        case Rich():
            return {"__ptype": value.type, "__pvalue": plain(value.value, depth + 1)}
        case None | bool() | int() | str():
            return value
        case float() if value == value and abs(value) != float("inf"):
            return value
    return str(value)
