"""YAML as written by Ruby (reports of 2.7 and early 3.x, their facts), read as untrusted input.

Objects become mappings, symbols and binary text become strings; nothing is ever instantiated. Values are built from the
parser's events, without recursion. Nesting or references beyond what real agents send stop the parser at once.
"""

from __future__ import annotations

import base64
import binascii
import math
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from inspector import regex
from inspector.remembering import remembered

if TYPE_CHECKING:
    import yaml

MAX_BYTES = 16 * 2**20
"""Maximum bytes: for hostile text the parser's events take some 100 bytes per byte, one after the other."""
MAX_DEPTH = 200
MAX_EVENTS = 600_000
"""Maximum number of the parser's events, some 2 us each. A real report has one per 16 bytes: 10 MB of it can be
read."""
MAX_NODES = 1_000_000
"""Maximum number of values after aliases are expanded (600 bytes can expand to 10**9)."""
MAX_NUMBER = 100
"""Maximum length of a number."""


class Refused(ValueError):
    """Not YAML, or YAML that no real agent sends."""


_WORDS: dict[str, bool | None] = {
    written: value
    for words, value in (("~ null", None), ("true yes on", True), ("false no off", False))
    for word in words.split()
    for written in (word, word.capitalize(), word.upper())
} | {"": None}
_INTEGER = regex.compile(r"[-+]?(?:(0b)[01_]+|(0x)[0-9a-fA-F_]+|(0)[0-7_]+|0|[1-9][0-9_]*)")
_FLOAT = regex.compile(r"[-+]?(?:[0-9][0-9_]*\.[0-9_]*|\.[0-9][0-9_]*)(?:[eE][-+]?[0-9]+)?")
_ENDLESS = {f"{sign}.{word}": float(sign + word) for sign in ("", "+", "-") for word in ("inf", "Inf", "INF")} | {
    f".{word}": math.nan for word in ("nan", "NaN", "NAN")
}
_TYPES = frozenset(f"tag:yaml.org,2002:{entry}" for entry in ("null", "bool", "int", "float"))
_BINARY = frozenset({"!binary", "tag:yaml.org,2002:binary"})


@remembered(4096)
def _plain(text: str) -> Any:
    """A plain scalar: null, a truth value, a number, a symbol, or else text.

    Times stay text: Ruby's have nine digits and a space, which no library preserves. Numbers to base 60 (``1:30``) also
    stay text: Ruby does not write them.
    """
    if text in _WORDS:
        return _WORDS[text]
    first = text[0]
    if first in "0123456789+-.":
        return _number(text) if len(text) <= MAX_NUMBER else text
    return text[1:] if first == ":" and len(text) > 1 and not text[1].isspace() else text


def _number(text: str) -> Any:
    digits = text.replace("_", "")
    if "." in text:
        return float(digits) if _FLOAT.fullmatch(text) else _ENDLESS.get(text, text)
    if found := _INTEGER.fullmatch(text):
        base = 2 if found[1] else 16 if found[2] else 8 if found[3] else 10
        with suppress(ValueError):  # only underscores
            return int(digits, base)
    return text


def _scalar(event: yaml.ScalarEvent) -> Any:
    tag, text = event.tag, event.value
    if tag is None or tag == "!":
        return _plain(text) if event.implicit[0] else text
    if tag in _BINARY:
        try:
            data = base64.b64decode(text.encode())
        except (binascii.Error, ValueError) as error:
            raise Refused(f"binary text that is no Base64: {error}") from error
        try:
            return data.decode()
        except UnicodeDecodeError:
            return data.decode("latin-1")  # as in PSON: nothing is lost
    return _plain(text) if tag in _TYPES else text


def typed(event: yaml.ScalarEvent) -> bool | float | None:
    """Return the number or the truth value that a scalar without quotes is; None if it is something else."""
    value = _plain(event.value) if event.implicit[0] and event.tag in (None, "!") else None
    return value if isinstance(value, bool | int | float) else None


def load(body: bytes) -> Any:
    """Return a document's value as plain dicts, lists and scalars; ``body`` must be UTF-8. Raises Refused."""
    import yaml  # few agents write it

    if len(body) > MAX_BYTES:
        raise Refused(f"{len(body)} bytes of YAML, more than {MAX_BYTES} are not read")
    try:
        value = _Builder().build(body)
    except yaml.YAMLError as error:
        raise Refused(f"no YAML: {' '.join(str(error).split())}") from error
    if isinstance(value, dict):
        # The colon of a symbol and the @ of an instance variable are Ruby syntax, not part of the name.
        return {str(key).lstrip(":@"): item for key, item in value.items()}
    return value


_MISSING: Any = object()


class _Builder:
    """Builds the value of one document from its events."""

    def __init__(self) -> None:
        self.top: Any = _MISSING
        self.nodes = 0
        self.anchors: dict[str | None, tuple[Any, int]] = {}
        """The value of each anchor, and its number of values."""
        self.open: list[tuple[dict[Any, Any] | list[Any], str | None, int, str | None]] = []
        """Open collections: value, anchor, nodes before it, tag."""
        self.keys: list[Any] = []
        """The pending key of each open collection."""

    def build(self, body: bytes) -> Any:
        import yaml

        for events, event in enumerate(yaml.parse(body, Loader=yaml.CSafeLoader)):
            if isinstance(event, yaml.ScalarEvent):
                self.nodes += 1
                value = _scalar(event)
                if event.anchor is not None:
                    self.anchors[event.anchor] = value, 1
                self._add(value)
            elif isinstance(event, yaml.CollectionStartEvent):
                new: dict[Any, Any] | list[Any] = {} if isinstance(event, yaml.MappingStartEvent) else []
                self.anchors.pop(event.anchor, None)
                self.open.append((new, event.anchor, self.nodes, event.tag))
                self.keys.append(_MISSING)
                if len(self.open) > MAX_DEPTH:
                    raise Refused(f"the YAML is nested too deeply: more than {MAX_DEPTH} levels")
            elif isinstance(event, yaml.CollectionEndEvent):
                self._end()
            elif isinstance(event, yaml.AliasEvent):
                self._alias(event.anchor)
            elif isinstance(event, yaml.DocumentStartEvent) and self.top is not _MISSING:
                raise Refused("more than one YAML document")
            if events >= MAX_EVENTS or self.nodes > MAX_NODES:
                raise Refused("the YAML has too many values or refers to itself too often")
        return None if self.top is _MISSING else self.top

    def _end(self) -> None:
        made, anchor, before, tag = self.open.pop()
        self.keys.pop()
        self.nodes += 1
        value = _object(tag, made) if tag else made
        if anchor is not None:
            self.anchors[anchor] = value, self.nodes - before
        self._add(value)

    def _alias(self, anchor: str | None) -> None:
        if anchor not in self.anchors:
            raise Refused(f"the YAML refers to itself, or to {anchor!r}, which is nowhere")
        value, size = self.anchors[anchor]
        self.nodes += size
        self._add(value)

    def _add(self, value: Any) -> None:
        if not self.open:
            self.top = value
            return
        parent = self.open[-1][0]
        if isinstance(parent, list):
            parent.append(value)
            return
        key = self.keys[-1]
        if key is _MISSING:
            if isinstance(value, dict | list):
                raise Refused("the YAML has a mapping whose key is no scalar")
            self.keys[-1] = value
            return
        if key == "<<" and (merged := _merged(value)) is not None:
            self.nodes += len(merged)
            for name, item in merged.items():
                parent.setdefault(name, item)
        else:
            parent[key] = value
        self.keys[-1] = _MISSING


def _merged(value: Any) -> dict[Any, Any] | None:
    if isinstance(value, dict):
        return value
    if isinstance(value, list) and all(isinstance(entry, dict) for entry in value):
        return {key: item for entry in reversed(value) for key, item in entry.items()}
    return None


def _object(tag: str, value: dict[Any, Any] | list[Any]) -> Any:
    """Convert an object: Ruby's sets become lists (a report's tags), subclasses of String text, others mappings."""
    if isinstance(value, list):
        return value
    if tag.startswith("!ruby/string"):
        return next((item for key, item in value.items() if key in ("str", "=") and isinstance(item, str)), value)
    if tag.endswith(("/set", ":Set", ":Puppet::Util::TagSet")):
        members = value.get("hash", value)
        return list(members) if isinstance(members, dict) else value
    return value
