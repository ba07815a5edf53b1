"""Patterns of what is not to be compared: ``File[/tmp/*]``, ``*[*]/mode``, ``facts:dhcp*``.

``*`` stands for any text and ``?`` for one character; brackets are those of resources. A pattern covers a difference if
it matches its address, or the address of the whole that it is part of. With a section before it, it is about that
section only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector import regex

if TYPE_CHECKING:
    from collections.abc import Iterable

_WILD = {"*": ".*", "?": "."}


class Patterns:
    """Some patterns, without distinction of case."""

    def __init__(self, texts: Iterable[str] = (), sections: Iterable[str] = ()) -> None:
        """``sections`` are those that a pattern may name."""
        names, self.texts = set(sections), tuple(texts)
        self._everywhere: list[regex.Pattern[str]] = []
        self._of: dict[str, list[regex.Pattern[str]]] = {}
        for text in self.texts:
            section, colon, rest = text.partition(":")
            named = bool(colon) and section.lower() in names
            pattern = _compiled(rest if named else text)
            (self._of.setdefault(section.lower(), []) if named else self._everywhere).append(pattern)

    def __bool__(self) -> bool:
        return bool(self._everywhere or self._of)

    def cover(self, section: str, name: str, part: str = "") -> bool:
        """Whether a pattern matches a part of what has a name, or all of it."""
        patterns = [*self._everywhere, *self._of.get(section, ())]
        addresses = (name, f"{name}/{part}") if part else (name,)
        return any(pattern.fullmatch(address) for pattern in patterns for address in addresses)


def _compiled(text: str) -> regex.Pattern[str]:
    pattern = "".join(_WILD.get(character) or regex.escape(character) for character in text.strip())
    return regex.compile(pattern, regex.IGNORECASE | regex.DOTALL)


def of_lines(text: str) -> list[str]:
    """The patterns in a file: one on each line, without empty lines and those that begin with ``#``."""
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]
