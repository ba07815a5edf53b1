"""Puppet's rich data: values that JSON and msgpack cannot represent, marked by ``__ptype``: docs/protocol.md#rich-data.

Decoding a body leaves them unchanged, which is fast; ``read`` converts a value for display.
"""

from __future__ import annotations

import base64
import binascii
from itertools import islice
from typing import TYPE_CHECKING, Any

import msgspec

from inspector import regex

if TYPE_CHECKING:
    from collections.abc import Iterator

MARK, VALUE = "__ptype", "__pvalue"
REDACTED = "Sensitive [value redacted]"
MAX_DEPTH = 200
"""Maximum depth; deeper values stay as sent."""
MAX_REFERRED = 10_000
"""Maximum number of values that all LocalRefs of a value expand to: a few of them can double repeatedly."""
MAX_PATH = 1000
"""Maximum length of a LocalRef."""

_STEP = regex.compile(
    r"""\[(?:(-?\d{1,9})|(null|true|false)|'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)")\]|\.([A-Za-z_]\w*)"""
)
_KEYS = {"null": None, "true": True, "false": False}
_NOWHERE: Any = object()


class Rich(msgspec.Struct, frozen=True):
    """A value with a Puppet type: Sensitive, Binary, Timestamp, Timespan, SemVer, Regexp, Deferred, URI, ..."""

    type: str
    value: Any = None
    """Binary: the bytes. Hash: pairs, as its keys need not be strings. Deferred and objects: their
    attributes. Default: None. Others: as Puppet writes them."""

    @property
    def sensitive(self) -> bool:
        return self.type == "Sensitive"

    def __str__(self) -> str:
        match self.value:
            case _ if self.sensitive:
                return REDACTED
            case None:
                return self.type.lower()
            case bytes() as data:
                return f"Binary({len(data)} bytes)"
            case {"name": str(name), "arguments": list(arguments)} if self.type == "Deferred":
                return f"Deferred({name}({', '.join(map(str, arguments))}))"
            case value:
                return f"{self.type}({value})"


def read(value: Any, root: Any = None) -> Any:
    """Return a decoded value with every ``__ptype`` in it as ``Rich``. Malformed values stay as sent.

    A LocalRef is replaced by its target, resolved from ``root`` (the parameters of a resource; by default the value
    itself), unless the target does not exist, contains the LocalRef itself, or is too large.
    """
    return _Reader(value if root is None else root).read(value, 0)


class _Reader:
    def __init__(self, root: Any) -> None:
        self.root = root
        self.left = MAX_REFERRED
        self.open: list[Any] = []
        """Collections that are being read: a collection must not be read within itself."""

    def read(self, value: Any, depth: int) -> Any:
        if not isinstance(value, list | dict) or depth > MAX_DEPTH:
            return value
        self.open.append(value)
        try:
            return self._collection(value, depth + 1)
        finally:
            self.open.pop()

    def _collection(self, value: list[Any] | dict[str, Any], depth: int) -> Any:
        if isinstance(value, list):
            return [self.read(item, depth) for item in value]
        if MARK not in value:
            return {key: self.read(item, depth) for key, item in value.items()}
        kind = value[MARK]
        if VALUE in value:
            return self._valued(kind, value[VALUE], depth)
        attributes = {key: self.read(item, depth) for key, item in value.items() if key != MARK}
        return Rich(_name(kind), attributes or None)

    def _valued(self, kind: Any, value: Any, depth: int) -> Any:
        if kind == "Binary" and isinstance(value, str):
            try:
                return Rich("Binary", base64.b64decode(value, validate=True))
            except (binascii.Error, ValueError):
                return Rich("Binary", value)
        if kind == "Hash" and isinstance(value, list):
            return Rich("Hash", _pairs(self.read(value, depth)))
        if kind == "LocalRef" and isinstance(value, str):
            found = self._referred(value)
            return Rich("LocalRef", value) if found is _NOWHERE else self.read(found, depth)
        return Rich(_name(kind), self.read(value, depth))

    def _referred(self, path: str) -> Any:
        """The target of ``$['a'][0]``; ``_NOWHERE`` if it cannot be resolved."""
        if not path.startswith("$") or len(path) > MAX_PATH or self.left <= 0:
            return _NOWHERE
        found, at = self.root, 1
        while at < len(path):
            step = _STEP.match(path, at)
            found = self._step(found, step) if step else _NOWHERE
            if step is None or found is _NOWHERE:
                return _NOWHERE
            at = step.end()
        if self.left <= 0 or any(value is found for value in self.open):
            return _NOWHERE
        self.left -= _size(found, self.left)
        return found if self.left >= 0 else _NOWHERE

    def _step(self, value: Any, step: regex.Match[str]) -> Any:
        number, word, *quoted, name = step.groups()
        text = next((regex.sub(r"\\(.)", r"\1", value) for value in quoted if value is not None), name)
        key = int(number) if number else _KEYS[word] if word else text
        # The path goes through the marked values: an agent resolves it in its own values, not in the sent form.
        while isinstance(value, dict) and value.get(MARK) == "Sensitive":
            value = value.get(VALUE)
        if isinstance(value, dict) and value.get(MARK) == "Hash" and isinstance(value.get(VALUE), list):
            self.left -= len(value[VALUE])
            pairs = _pairs(value[VALUE])
            return next((pair[1] for pair in pairs if len(pair) == 2 and pair[0] == key), _NOWHERE)
        if isinstance(value, dict) and isinstance(key, str) and key in value:
            return value[key]
        if isinstance(value, list) and type(key) is int and 0 <= key < len(value):
            return value[key]
        return _NOWHERE


def _name(kind: Any) -> str:
    # A type that the agent may not know is itself sent as an object.
    return kind if isinstance(kind, str) else str(kind.get("name", "Object")) if isinstance(kind, dict) else str(kind)


def _pairs(items: list[Any]) -> list[list[Any]]:
    if all(isinstance(item, list) and len(item) == 2 for item in items):
        return items
    return [items[at : at + 2] for at in range(0, len(items), 2)]


def _within(value: Any) -> Iterator[Any]:
    """Iterate over a decoded value and everything in it."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        yield value
        if isinstance(value, list | dict):
            waiting += value if isinstance(value, list) else value.values()


def _size(value: Any, most: int) -> int:
    """Count the values in a value, up to one more than ``most``."""
    return sum(1 for _ in islice(_within(value), most + 1))


def secrets(value: Any) -> bool:
    """True if a Sensitive is anywhere in a decoded value."""
    return any(isinstance(value, dict) and value.get(MARK) == "Sensitive" for value in _within(value))


def deferred(value: Any) -> bool:
    """True if a Deferred is anywhere in a decoded value."""
    return any(isinstance(value, dict) and value.get(MARK) == "Deferred" for value in _within(value))


def readable(secret: Any) -> bool:
    """True if part of a secret value is readable: not an empty value, nor one that the agent computes itself."""
    waiting = [(secret, True)]
    while waiting:
        value, sent = waiting.pop()
        if isinstance(value, dict):
            sent = {"Deferred": False, "Sensitive": True}.get(str(value.get(MARK)), sent)
            waiting += [(item, sent) for key, item in value.items() if key != MARK]
        elif isinstance(value, list):
            waiting += [(item, sent) for item in value]
        elif sent and value not in (None, "", REDACTED):
            return True
    return False
