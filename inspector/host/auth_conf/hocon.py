"""Read HOCON and keep the line of every value: the part of the format that files of puppetserver use.

It reads as typesafe-config does: comments, keys with dots, values that are joined, objects that are merged.
``include``, ``${...}`` and ``+=`` take in what stands elsewhere: they are refused, so a text costs linear time.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal, NamedTuple

from inspector import regex

if TYPE_CHECKING:
    from collections.abc import Iterator

DEPTH = 100
"""Levels of nesting; an auth.conf has 6."""

type Value = Scalar | list[Node] | dict[str, Node]


@dataclass(slots=True)
class Node:
    """A value and where it stands."""

    value: Value
    line: int
    whole: bool = False
    """An object that took the place of a text or a list: no earlier object is merged with it."""


def parse(text: str) -> dict[str, Node]:
    """Return the root object of a text. Raises Malformed."""
    return _Parser(list(tokens(text))).root()


@dataclass(slots=True)
class _Parser:
    tokens: list[Token]
    at: int = 0
    depth: int = 0

    def root(self) -> dict[str, Node]:
        first = self._next_significant()
        if first.kind == "[":
            raise Malformed(first.line, "the file is a list")
        if first.kind == "{":
            self.at += 1
            fields = self._fields("}")
        else:
            fields = self._fields("end")
        last = self._next_significant()
        if last.kind != "end":
            raise self._unexpected(last)
        return fields

    def _next_significant(self) -> Token:
        """Go to the next token that is neither space nor the end of a line, and return it."""
        while self.tokens[self.at].kind in ("space", "newline"):
            self.at += 1
        return self.tokens[self.at]

    def _next_on_line(self) -> Token:
        while self.tokens[self.at].kind == "space":
            self.at += 1
        return self.tokens[self.at]

    def _unexpected(self, token: Token) -> Malformed:
        if token.kind == "end":
            return Malformed(token.line, "the file ends within an object or a list")
        what = "the end of the line" if token.kind == "newline" else repr(token.text[:40])
        return Malformed(token.line, f"{what} is not expected here")

    def _separated(self, close: Kind) -> bool:
        """Go past what separates two items: a comma, or the end of a line. Return whether it was there."""
        start = self.at
        comma = False
        while True:
            token = self.tokens[self.at]
            if token.kind == "," and not comma:
                comma = True
            elif token.kind not in ("space", "newline"):
                break
            self.at += 1
        lines = any(token.kind == "newline" for token in self.tokens[start : self.at])
        return comma or lines or self.tokens[self.at].kind == close

    def _fields(self, close: Kind) -> dict[str, Node]:
        """Read the fields of an object up to its end, and go past that."""
        fields: dict[str, Node] = {}
        self._next_significant()
        while self.tokens[self.at].kind != close:
            self._field(fields)
            if not self._separated(close):
                raise self._unexpected(self.tokens[self.at])
        if close != "end":
            self.at += 1
        return fields

    def _field(self, fields: dict[str, Node]) -> None:
        first = self.tokens[self.at]
        if first.kind == "text" and first.text == "include":
            raise Malformed(first.line, "include takes in another file, which is not followed")
        path = self._key()
        token = self._next_significant()
        if token.kind == "{":
            node = self._nested(token)
        elif token.kind in ("=", ":"):
            self.at += 1
            self._next_significant()
            node = self._value(first.line)
        else:
            raise self._unexpected(token)
        *above, last = path
        if self.depth + len(above) > DEPTH:
            raise Malformed(first.line, f"it is nested deeper than {DEPTH} levels")
        for key in reversed(above):
            node, last = Node({last: node}, first.line), key
        _put(fields, last, node)

    def _key(self) -> list[str]:
        """Read a key: the names that its dots separate."""
        tokens = []
        while self.tokens[self.at].kind in ("text", "quoted", "value", "space"):
            tokens.append(self.tokens[self.at])
            self.at += 1
        while tokens and tokens[-1].kind == "space":
            tokens.pop()
        if not tokens:
            raise self._unexpected(self.tokens[self.at])
        names, quoted = [""], [False]
        for token in tokens:
            pieces = [token.text] if token.kind == "quoted" else token.text.split(".")
            names[-1] += pieces[0]
            quoted[-1] |= token.kind == "quoted"
            names += pieces[1:]
            quoted += [False] * (len(pieces) - 1)
        if any(not name and not has for name, has in zip(names, quoted, strict=True)):
            raise Malformed(tokens[0].line, "a key has an empty part")
        return names

    def _value(self, line: int) -> Node:
        """Read a value: all that stands up to the end of its line, joined."""
        parts: list[Token | Node] = []
        while True:
            token = self.tokens[self.at]
            if token.kind in ("{", "["):
                parts.append(self._nested(token))
                continue
            if token.kind not in ("text", "quoted", "value", "space"):
                break
            parts.append(token)
            self.at += 1
        while parts and isinstance(parts[-1], Token) and parts[-1].kind == "space":
            parts.pop()
        if not parts:
            raise self._unexpected(self.tokens[self.at])
        return _joined(parts, line)

    def _nested(self, token: Token) -> Node:
        self.depth += 1
        if self.depth > DEPTH:
            raise Malformed(token.line, f"it is nested deeper than {DEPTH} levels")
        self.at += 1
        value: Value = self._fields("}") if token.kind == "{" else self._items()
        self.depth -= 1
        return Node(value, token.line)

    def _items(self) -> list[Node]:
        items = []
        token = self._next_significant()
        while token.kind != "]":
            items.append(self._value(token.line))
            if not self._separated("]"):
                raise self._unexpected(self.tokens[self.at])
            token = self.tokens[self.at]
        self.at += 1
        return items


def _joined(parts: list[Token | Node], line: int) -> Node:
    """Return the value of what stands side by side: objects are merged, lists appended, all else is one text.

    A text without quotes after an object or a list is taken for space, as by typesafe-config.
    """
    first, *more = parts
    if isinstance(first, Node):
        for part in more:
            if isinstance(part, Node):
                first = _appended(first, part)
            elif part.kind not in ("text", "space"):
                raise Malformed(line, "a text and an object or a list stand side by side")
        return first
    if not more:
        return Node(first.value, first.line)
    if any(isinstance(part, Node) for part in more):
        raise Malformed(line, "a text and an object or a list stand side by side")
    return Node("".join(part.text for part in parts if isinstance(part, Token)), first.line)


def _appended(first: Node, second: Node) -> Node:
    if isinstance(first.value, dict) and isinstance(second.value, dict):
        return _merged(first, second)
    if not (isinstance(first.value, list) and isinstance(second.value, list)):
        raise Malformed(second.line, "an object and a list stand side by side")
    first.value.extend(second.value)
    return first


def _put(fields: dict[str, Node], key: str, node: Node) -> None:
    before = fields.get(key)
    fields[key] = _merged(before, node) if before else node


def _merged(before: Node, after: Node) -> Node:
    """Return a value that was given twice: objects are merged, otherwise the later one counts."""
    if not isinstance(after.value, dict) or after.whole:
        return after
    if not isinstance(before.value, dict):
        after.whole = True
        return after
    for key, node in after.value.items():
        _put(before.value, key, node)
    return before


# -- tokens, as typesafe-config divides a text -----------------------------------------------------------------

type Scalar = str | int | float | bool | None


class Malformed(ValueError):
    """The text is not HOCON, or needs what this module does not read."""

    def __init__(self, line: int, reason: str) -> None:
        super().__init__(f"line {line}: {reason}")
        self.line, self.reason = line, reason


type Kind = Literal["text", "quoted", "value", "space", "newline", "end", "{", "}", "[", "]", ",", "=", ":"]


class Token(NamedTuple):
    kind: Kind
    text: str
    """As it stands in the file; of a quoted string, its content."""
    value: Scalar
    line: int


_SPACE = "\u0009\u000b\u000c\u000d\u001c-\u001f \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
_PLAIN = rf'[^/{_SPACE}\n$"{{}}\[\]:=,+#`^?!@*&\\]'
"""A character that needs no quotes; a slash may stand before it, but two slashes begin a comment."""
_TOKEN = regex.compile(
    rf"(?P<space>[{_SPACE}]+)"
    r"|(?P<newline>\n)"
    r"|(?P<comment>(?:#|//)[^\n]*)"
    r'|(?P<triple>"""(?s:.*?)"""+)|(?P<open>""")'
    r'|(?P<quoted>"(?:[^"\\\x00-\x1f\x7f-\x{9f}]|\\(?s:.))*")'
    r"|(?P<substitution>\$\{)|(?P<appended>\+=)"
    r"|(?P<sign>[{}\[\],=:])"
    r"|(?P<number>[0-9-][0-9eE+.-]*)"
    rf"|(?P<text>true|false|null|(?:{_PLAIN}|/{_PLAIN})+|/)"
)
_ESCAPE = regex.compile(r'\\(?:(["\\/bfnrt])|u([0-9a-fA-F]{4})|(?s:.))')
_ESCAPES = {'"': '"', "\\": "\\", "/": "/", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_WHOLE = regex.compile(r"[+-]?[0-9]+")
_FRACTION = regex.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_SIGNS: dict[str, Kind] = {"{": "{", "}": "}", "[": "[", "]": "]", ",": ",", "=": "=", ":": ":"}
_WORDS: dict[str, bool | None] = {"true": True, "false": False, "null": None}
_LONG = 2**63


def tokens(text: str) -> Iterator[Token]:
    """Yield the tokens of a text. Raises Malformed."""
    line, end = 1, 0
    for found in _TOKEN.finditer(text):
        if found.start() != end:
            break
        end = found.end()
        whole: str = found[0]
        groups = found.groupdict()
        kind = next(name for name, part in groups.items() if part is not None)
        match kind:
            case "comment":
                pass
            case "space":
                yield Token("space", whole, None, line)
            case "newline":
                yield Token("newline", whole, None, line)
            case "triple":
                yield Token("quoted", whole[3:-3], whole[3:-3], line)
            case "quoted":
                content = _unescaped(whole[1:-1], line)
                yield Token("quoted", content, content, line)
            case "open":
                raise Malformed(line, "a string between three quotes does not end")
            case "substitution":
                raise Malformed(line, "${...} takes a value from elsewhere, which is not followed")
            case "appended":
                raise Malformed(line, "+= takes in an earlier value, which is not followed")
            case "sign":
                yield Token(_SIGNS[whole], whole, None, line)
            case "number":
                yield _number(whole, line)
            case _ if whole in _WORDS:
                yield Token("value", whole, _WORDS[whole], line)
            case _:
                yield Token("text", whole, whole, line)
        line += whole.count("\n")
    if end < len(text):
        if text[end] == '"':
            raise Malformed(line, "a string does not end on its line")
        raise Malformed(line, f"{text[end]!r} must stand within quotes")
    yield Token("end", "", None, line)


def _number(text: str, line: int) -> Token:
    """Return the token of what looks like a number; typesafe-config takes for text what is none."""
    if _WHOLE.fullmatch(text) and -_LONG <= int(text[:25]) < _LONG and len(text) < 25:
        return Token("value", text, int(text), line)
    if _FRACTION.fullmatch(text) and not _WHOLE.fullmatch(text) and len(text) < 50:
        number = float(text)
        return Token("value", text, int(number) if number.is_integer() else number, line)
    if "+" in text:
        raise Malformed(line, "'+' must stand within quotes")
    return Token("text", text, text, line)


def _unescaped(text: str, line: int) -> str:
    def character(found: regex.Match[str]) -> str:
        if found[1]:
            return _ESCAPES[found[1]]
        if found[2]:
            return chr(int(found[2], 16))
        raise Malformed(line, f"{found[0]!r} is no escape within a string")

    return _ESCAPE.sub(character, text) if "\\" in text else text
