"""The terms of a filter as a user types them: ``-key:value``, ``key:"several words"``, ``'as it is'``, ``word``."""

from __future__ import annotations

from typing import NamedTuple

from inspector import regex

_SPACE = regex.compile(r"\s*", regex.DOTALL)
_KEY = regex.compile(r"([A-Za-z_]+):")
_DOUBLE = regex.compile(r'"((?:[^"\\]|\\.)*)"', regex.DOTALL)
_SINGLE = regex.compile("'([^']*)'", regex.DOTALL)
_BARE = regex.compile(r"\S*", regex.DOTALL)


class TypedTerm(NamedTuple):
    """A term as it was typed; its key and value are not checked yet."""

    begin: int
    end: int
    negated: bool
    key: str | None
    value: str
    """Without its quotes."""
    written: str
    """The value as it was typed."""
    closed: bool = True
    """Whether a value in quotes ends with one."""


def read(text: str, at: int) -> TypedTerm | None:
    """Return the term that begins at an offset; None if a quote is not where a value begins or ends."""
    at = begin = _end(_SPACE, text, at)
    negated = text[at : at + 1] in ("-", "!") and not text[at + 1 : at + 2].isspace() and at + 1 < len(text)
    at += negated
    key = _KEY.match(text, at)
    if key and text[key.end() : key.end() + 1] != ":":
        at = key.end()
    else:
        key = None
    value, end, closed = _value(text, at)
    if end < len(text) and not text[end].isspace():
        return None
    return TypedTerm(begin, end, negated, key[1] if key else None, value, text[at:end], closed)


def _value(text: str, at: int) -> tuple[str, int, bool]:
    """Return a value, its end, and whether it is closed."""
    match text[at : at + 1]:
        case '"':
            found = _DOUBLE.match(text, at)
            return (regex.sub(r"\\(.)", r"\1", found[1], regex.DOTALL), found.end(), True) if found else _open(text, at)
        case "'":
            found = _SINGLE.match(text, at)
            return (found[1], found.end(), True) if found else _open(text, at)
        case _:
            end = _end(_BARE, text, at)
            return text[at:end], end, True


def _open(text: str, at: int) -> tuple[str, int, bool]:
    return text[at + 1 :], len(text), False


def _end(pattern: regex.Pattern[str], text: str, at: int) -> int:
    found = pattern.match(text, at)
    return found.end() if found else at
