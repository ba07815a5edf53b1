"""The regular expressions of an auth.conf, Java's or Ruby's, as patterns of RE2.

Only what means the same is translated. Anything else (look-around, back-references, possessive repetitions, ...) is
``NotDecided``: executed by another engine it would take any time, or match something else. So is a text in which an
expression could find another end of a line or another letter than RE2 does.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from inspector import regex
from inspector.host.auth_conf.expression_reader import Invalid, Reader, Unreadable

if TYPE_CHECKING:
    from inspector.host.auth_conf.expression_reader import Engine

__all__ = ["Invalid", "NotDecided", "Pattern", "read"]

_LINE_ENDS = frozenset("\n\r\x85\u2028\u2029")


class NotDecided(ValueError):
    """Whether the expression matches cannot be decided here, for this reason."""


@dataclass(frozen=True, slots=True)
class Pattern:
    """An expression of an auth.conf."""

    text: str
    groups: int | None
    """How many groups it has; None: it was not read to its end."""
    obstacle: str = ""
    """Why it cannot be executed; empty if it can."""
    translated: str = ""
    ends: bool = False
    """Whether it looks at ends of lines."""
    letters: bool = False
    """Whether it depends on what a letter is."""
    begins: bool = False
    """Whether it looks at the beginning of a line that need not be the first one."""
    repeats: bool = False
    """Whether it repeats groups."""

    def search(self, text: str, *, groups: bool = True) -> tuple[str | None, ...] | None:
        """Return the groups of the first match; None if there is none. Raises NotDecided, without ``groups`` not
        because of them."""
        if self.obstacle:
            raise NotDecided(self.obstacle)
        if groups and self.repeats:
            raise NotDecided("which part a repeated group matches depends on the regular expression engine")
        if self.letters and not text.isascii():
            raise NotDecided("another regular expression engine may take other characters for letters")
        if (self.ends and not _LINE_ENDS.isdisjoint(text)) or (self.begins and "\n" in text):
            raise NotDecided("another regular expression engine may see other ends of lines")
        found = regex.compile(self.translated).search(text)
        return found.groups() if found else None


@lru_cache(maxsize=256)
def read(text: str, engine: Engine) -> Pattern:
    """Return an expression, to be executed. Raises Invalid if the engine does not take it."""
    reader = Reader(text, engine)
    try:
        reader.read()
    except Unreadable as reason:
        return Pattern(text, None, str(reason))
    translated = "".join(reader.pieces)
    if not reader.obstacle:
        try:
            regex.compile(translated)
        except regex.error:
            reader.obstacle = "the expression is too large"
    return Pattern(
        text, reader.groups, reader.obstacle, translated, reader.ends, reader.letters, reader.begins, reader.repeats
    )
