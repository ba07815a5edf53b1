"""Puppet's rich data: values that JSON and msgpack can't carry, marked by ``__ptype`` (protocol 3.2).

Decoding a body leaves them as they are, which is fast; ``read`` turns a value into what a view can show.
"""

from __future__ import annotations

import base64
import binascii
from typing import Any

import msgspec

MARK, VALUE = "__ptype", "__pvalue"


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
                return "Sensitive [value redacted]"
            case None:
                return self.type.lower()
            case bytes() as data:
                return f"Binary({len(data)} bytes)"
            case {"name": str(name), "arguments": list(arguments)} if self.type == "Deferred":
                return f"Deferred({name}({', '.join(map(str, arguments))}))"
            case value:
                return f"{self.type}({value})"


def read(value: Any) -> Any:
    """A decoded value with every ``__ptype`` in it as ``Rich``. What is malformed stays as it was sent."""
    if isinstance(value, list):
        return [read(item) for item in value]
    if not isinstance(value, dict):
        return value
    if MARK not in value:
        return {key: read(item) for key, item in value.items()}
    kind = value[MARK]
    if VALUE in value:
        return _valued(kind, value[VALUE])
    attributes = {key: read(item) for key, item in value.items() if key != MARK}
    return Rich(_name(kind), attributes or None)


def _name(kind: Any) -> str:
    # A type that the agent may not know is sent as an object itself.
    return kind if isinstance(kind, str) else str(kind.get("name", "Object")) if isinstance(kind, dict) else str(kind)


def _valued(kind: Any, value: Any) -> Rich:
    if kind == "Binary" and isinstance(value, str):
        try:
            return Rich("Binary", base64.b64decode(value, validate=True))
        except (binascii.Error, ValueError):
            return Rich("Binary", value)
    if kind == "Hash" and isinstance(value, list):
        flat = read(value)
        if all(isinstance(item, list) and len(item) == 2 for item in flat):
            return Rich("Hash", flat)
        return Rich("Hash", [flat[at : at + 2] for at in range(0, len(flat), 2)])
    return Rich(_name(kind), read(value))


def secrets(value: Any) -> bool:
    """True if a Sensitive is anywhere in a decoded value."""
    if isinstance(value, list):
        return any(secrets(item) for item in value)
    if isinstance(value, dict):
        return value.get(MARK) == "Sensitive" or any(secrets(item) for item in value.values())
    return False
