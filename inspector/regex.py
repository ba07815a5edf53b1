"""Regular expressions in linear time: RE2, with the part of the interface of ``re`` that this project uses.

Captured text is hostile. A backtracking engine needs exponential time for a few dozen bytes that somebody chose, holds
the interpreter's lock meanwhile, and cannot be interrupted. RE2 needs time linear in the text. So it has no
look-around and no back-references, and its ``\\w``, ``\\d``, ``\\s`` and ``\\b`` are ASCII; ``$`` and ``\\z`` are the
end of the text, and a repetition counts up to 1000. Offsets are those of the text as given, also beyond ASCII.

Instead of look-around, a group ``it`` is the match, and what surrounds it in the pattern is only required: it has no
number, and the next match may begin in what follows it. ``(?:^|[^0-9])(?P<it>[0-9]{4})(?:$|[^0-9])`` finds both years
in ``1999-2001``. Where it took no part, the whole is the match.

A pattern is compiled when it is first used: the modules have some hundred, of which a command uses a few.
"""

from __future__ import annotations

import functools
from enum import IntFlag
from typing import TYPE_CHECKING, Any

import re2  # type: ignore[import-untyped]

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

error = re2.error
"""A pattern that RE2 cannot take."""


class Flag(IntFlag):
    """Options of a pattern."""

    NONE = 0
    IGNORECASE = 1
    MULTILINE = 2
    DOTALL = 4


NONE, IGNORECASE, MULTILINE, DOTALL = Flag.NONE, Flag.IGNORECASE, Flag.MULTILINE, Flag.DOTALL
_LETTERS = {IGNORECASE: "i", MULTILINE: "m", DOTALL: "s"}
_ABSENT = (-1, -1)
_WITHIN = frozenset(bytes([byte]) for byte in range(0x80, 0xC0))
"""The bytes of a character in UTF-8 after its first one."""


class Match[AnyStr: (str, bytes)]:
    """Where a pattern matches a text, and its groups: by number, or by name."""

    __slots__ = ("_names", "_spans", "string")

    def __init__(self, string: AnyStr, spans: list[tuple[int, int]], names: dict[str, int]) -> None:
        self.string: AnyStr = string
        self._spans = spans
        self._names = names

    def span(self, group: int | str = 0) -> tuple[int, int]:
        """Return start and end of a group; -1 twice if it is not part of the match. Raises IndexError."""
        return self._spans[group if isinstance(group, int) else self._number(group)]

    def _number(self, name: str) -> int:
        try:
            return self._names[name]
        except KeyError:
            raise IndexError(f"no such group: {name}") from None

    def start(self, group: int | str = 0) -> int:
        """Return where a group starts."""
        return self.span(group)[0]

    def end(self, group: int | str = 0) -> int:
        """Return where a group ends."""
        return self.span(group)[1]

    def __getitem__(self, group: int | str) -> AnyStr | Any:
        """Return the text of a group; None if it is not part of the match. Raises IndexError."""
        begin, end = self.span(group)
        return None if begin < 0 else self.string[begin:end]

    def groups(self) -> tuple[Any, ...]:
        """Return the texts of all groups."""
        return tuple(self[number] for number in range(1, len(self._spans)))

    def groupdict(self) -> dict[str, Any]:
        """Return the texts of the named groups."""
        return {name: self[number] for name, number in self._names.items()}

    def parts(self) -> list[tuple[int, int, str]]:
        """Return start, end and name of each named group that is part of the match, in the order of the text."""
        found = ((self.span(name), name) for name in self._names)
        return sorted((begin, end, name) for (begin, end), name in found if begin >= 0)


class Pattern[AnyStr: (str, bytes)]:
    """A pattern. What uses it first raises ``error`` if RE2 cannot take it."""

    __slots__ = ("_compiled", "_flags", "_it", "_names", "_numbers", "pattern")

    _compiled: Any
    _it: int
    """The number of the group ``it`` in what is compiled; 0 without one."""
    _names: dict[str, int]
    _numbers: tuple[int, ...]
    """The groups' numbers in what is compiled, by those that they have here."""

    def __init__(self, pattern: AnyStr, flags: Flag = NONE) -> None:
        self.pattern: AnyStr = pattern
        self._flags = flags

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> object:
            """Compile it for what that sets."""
            if name not in ("_compiled", "_it", "_names", "_numbers"):
                raise AttributeError(name)
            self.check()
            return getattr(self, name)

    def check(self) -> None:
        """Compile it. Raises ``error``."""
        pattern = self.pattern
        letters = "".join(letter for flag, letter in _LETTERS.items() if flag in self._flags)
        options = re2.Options()
        options.log_errors = False
        prefix = f"(?{letters})" if letters else ""
        compiled: Any
        if isinstance(pattern, bytes):
            options.encoding = re2.Options.Encoding.LATIN1
            compiled = re2.compile(prefix.encode() + pattern, options)
        else:
            compiled = re2.compile(prefix + pattern, options)
        names = {name if isinstance(name, str) else name.decode(): at for name, at in compiled.groupindex.items()}
        self._it = names.pop("it", 0)
        self._numbers = (self._it, *(at for at in range(1, compiled.groups + 1) if at != self._it))
        self._names = {name: self._numbers.index(at) for name, at in names.items()}
        self._compiled = compiled

    def search(self, text: AnyStr, begin: int = 0) -> Match[AnyStr] | None:
        """Return the first match, at or after ``begin``."""
        if isinstance(text, str) and not text.isascii():
            return next(self._matches(None, text, begin), None)
        return self._made(text, self._compiled.search(text.encode() if isinstance(text, str) else text, begin))

    def match(self, text: AnyStr, begin: int = 0) -> Match[AnyStr] | None:
        """Return the match that starts at ``begin``. It reads the whole text: not for a loop over a long one."""
        return next(self._matches(self._compiled.match, text, begin), None)

    def fullmatch(self, text: AnyStr) -> Match[AnyStr] | None:
        """Return the match of the whole text."""
        if isinstance(text, str) and not text.isascii():
            found = next(self._matches(self._compiled.fullmatch, text, 0), None)
        else:
            found = self._made(text, self._compiled.fullmatch(text.encode() if isinstance(text, str) else text))
        return found if found and found.span() == (0, len(text)) else None

    def _made(self, text: AnyStr, found: Any) -> Match[AnyStr] | None:
        """Return a match of RE2 in a text whose offsets are those of its bytes."""
        if found is None:
            return None
        spans = [found.span(number) for number in self._numbers]
        if spans[0] == _ABSENT:
            spans[0] = found.span()
        return Match(text, spans, self._names)

    def finditer(self, text: AnyStr, begin: int = 0, end: int | None = None) -> Iterator[Match[AnyStr]]:
        """Yield the matches between two offsets, which do not overlap, from left to right."""
        return self._matches(None, text, begin, end)

    def _matches(
        self, anchored: Callable[..., Any] | None, text: AnyStr, begin: int, end: int | None = None
    ) -> Iterator[Match[AnyStr]]:
        """Yield the match that an anchored function of RE2 finds, or all matches."""
        data: bytes
        offsets: Callable[[list[tuple[int, int]]], list[tuple[int, int]]] = _unchanged
        if isinstance(text, bytes):
            data = text
        elif text.isascii():
            data = text.encode()
        else:
            # Half of a surrogate pair is not a character, but it may be in a text: it becomes one other character.
            data = text.encode("utf-8", "replace")
            begin = len(text[:begin].encode("utf-8", "replace"))
            end = None if end is None else len(text[:end].encode("utf-8", "replace"))
            offsets = _Offsets(data)
        for found in self._found(data, begin, end) if anchored is None else filter(None, [anchored(data, begin)]):
            spans = [found.span(number) for number in self._numbers]
            if spans[0] == _ABSENT:
                spans[0] = found.span()
            if offsets is not _unchanged and data[spans[0][0] : spans[0][0] + 1] in _WITHIN:
                continue  # an empty match within a character
            yield Match(text, offsets(spans), self._names)

    def _found(self, data: bytes, at: int, end: int | None) -> Iterator[Any]:
        if not self._it:
            yield from self._compiled.finditer(data, at, end)
        else:
            while at <= len(data) and (found := self._compiled.search(data, at, end)) is not None:
                yield found
                at = max(found.end(self._it) if found.end(self._it) >= 0 else found.end(), at + 1)

    def findall(self, text: AnyStr) -> list[Any]:
        """Return the texts of the matches: of the group if there is one, of the groups if there are more."""
        groups = len(self._numbers) - 1
        if groups == 0:
            return [found[0] for found in self.finditer(text)]
        return [found[1] if groups == 1 else found.groups() for found in self.finditer(text)]

    def split(self, text: AnyStr) -> list[AnyStr]:
        """Return the pieces between the matches."""
        pieces: list[AnyStr] = []
        end = 0
        for found in self.finditer(text):
            pieces.append(text[end : found.start()])
            end = found.end()
        pieces.append(text[end:])
        return pieces

    def sub(self, replacement: AnyStr | Callable[[Match[AnyStr]], AnyStr], text: AnyStr) -> AnyStr:
        """Replace the matches by a text, in which ``\\1`` or ``\\g<1>`` stand for a group, or by what a function
        returns."""
        replace = replacement if callable(replacement) else _template(replacement)
        pieces: list[AnyStr] = []
        end = 0
        for found in self.finditer(text):
            pieces += text[end : found.start()], replace(found)
            end = found.end()
        pieces.append(text[end:])
        return text[:0].join(pieces)


def _unchanged(spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
    return spans


class _Offsets:
    """Converts offsets in UTF-8 to offsets in text. Matches come in their order, so each byte is decoded once."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._last = (0, 0)

    def __call__(self, spans: list[tuple[int, int]]) -> list[tuple[int, int]]:
        known = dict([self._last])
        for offset in sorted({offset for span in spans if span != _ABSENT for offset in span}):
            at, characters = self._last
            self._last = offset, characters + len(self._data[at:offset].decode())
            known[offset] = self._last[1]
        return [span if span == _ABSENT else (known[span[0]], known[span[1]]) for span in spans]


_GROUP = re2.compile(r"\\(?:([1-9])|g<([0-9])>|(\\))")


@functools.lru_cache(maxsize=256)
def _template(template: Any) -> Callable[[Match[Any]], Any]:
    """Return a function that fills a template. Raises ValueError for a template with another escape."""
    empty = template[:0]
    data = template.encode() if isinstance(template, str) else template
    parts: list[Any] = []
    end = 0
    for found in _GROUP.finditer(data):
        parts += data[end : found.start()], int(found[1] or found[2] or 0) if not found[3] else b"\\"
        end = found.end()
    parts.append(data[end:])
    if any(b"\\" in between for between in parts[::2]):
        raise ValueError(f"unknown escape in {template!r}")
    pieces = [part.decode() if isinstance(part, bytes) and isinstance(template, str) else part for part in parts]

    def fill(found: Match[Any]) -> Any:
        return empty.join((found[piece] or empty) if isinstance(piece, int) else piece for piece in pieces)

    return fill


class Words:
    """Literal texts, all of which are looked for in one pass."""

    def __init__(self, words: Iterable[str]) -> None:
        self._words = tuple(words)
        self._found: Any = re2.Set.SearchSet()
        for word in self._words:
            self._found.Add(re2.escape(word))
        self._found.Compile()

    def within(self, text: str) -> tuple[str, ...]:
        """Return those that a text contains, in their own order."""
        found = self._found.Match(text.encode("utf-8", "surrogatepass"))
        return tuple(self._words[place] for place in sorted(found)) if found else ()


_compile: Any = functools.lru_cache(maxsize=512)(Pattern)


def compile[AnyStr: (str, bytes)](pattern: AnyStr, flags: Flag = NONE) -> Pattern[AnyStr]:  # noqa: A001 - as in re
    """Return a pattern, the same one for the same text."""
    compiled: Pattern[AnyStr] = _compile(pattern, flags)
    return compiled


def search[AnyStr: (str, bytes)](pattern: AnyStr, text: AnyStr, flags: Flag = NONE) -> Match[AnyStr] | None:
    """Return the first match of a pattern."""
    return compile(pattern, flags).search(text)


def match[AnyStr: (str, bytes)](pattern: AnyStr, text: AnyStr, flags: Flag = NONE) -> Match[AnyStr] | None:
    """Return the match of a pattern at the beginning of a text."""
    return compile(pattern, flags).match(text)


def fullmatch[AnyStr: (str, bytes)](pattern: AnyStr, text: AnyStr, flags: Flag = NONE) -> Match[AnyStr] | None:
    """Return the match of a pattern with a whole text."""
    return compile(pattern, flags).fullmatch(text)


def findall[AnyStr: (str, bytes)](pattern: AnyStr, text: AnyStr, flags: Flag = NONE) -> list[Any]:
    """Return the texts of the matches of a pattern."""
    return compile(pattern, flags).findall(text)


def split[AnyStr: (str, bytes)](pattern: AnyStr, text: AnyStr, flags: Flag = NONE) -> list[AnyStr]:
    """Return the pieces of a text between the matches of a pattern."""
    return compile(pattern, flags).split(text)


def sub[AnyStr: (str, bytes)](
    pattern: AnyStr, replacement: AnyStr | Callable[[Match[AnyStr]], AnyStr], text: AnyStr, flags: Flag = NONE
) -> AnyStr:
    """Replace the matches of a pattern."""
    replaced: AnyStr = compile(pattern, flags).sub(replacement, text)
    return replaced


def escape[AnyStr: (str, bytes)](text: AnyStr) -> AnyStr:
    """Return the pattern that matches just this text."""
    escaped: AnyStr = re2.escape(text)
    return escaped


@functools.lru_cache(maxsize=512)
def glob(pattern: str, flags: Flag = NONE) -> Pattern[str]:
    """Return the pattern of a shell's wildcards: ``*``, ``?``, ``[abc]``, ``[!a-z]``; use its ``fullmatch``."""
    pieces, at = [], 0
    while at < len(pattern):
        end = pattern.find("]", at + 2 + pattern.startswith("[!", at))
        match pattern[at]:
            case "*":
                pieces.append(".*")
            case "?":
                pieces.append(".")
            case "[" if end > 0:
                negated = pattern[at + 1] == "!"
                pieces.append(f"[{'^' if negated else ''}{_members(pattern[at + 1 + negated : end])}]")
                at = end
            case character:
                pieces.append(escape(character))
        at += 1
    return compile("".join(pieces), flags | DOTALL)


def _members(text: str) -> str:
    """Return what stands between brackets, escaped; a range that ends before it starts has no members."""
    pieces, at = [], 0
    while at < len(text):
        if text[at + 1 : at + 2] == "-" and at + 2 < len(text):
            if text[at] <= text[at + 2]:
                pieces.append(f"{escape(text[at])}-{escape(text[at + 2])}")
            at += 3
        else:
            pieces.append(escape(text[at]))
            at += 1
    return "".join(pieces) or r"\x{10FFFF}"  # no character
