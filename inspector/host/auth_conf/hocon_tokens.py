"""The tokens of HOCON, as typesafe-config divides a text, each with its line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

from inspector import regex

if TYPE_CHECKING:
    from collections.abc import Iterator

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
