"""The regular expressions of an auth.conf, Java's or Ruby's, as patterns of RE2.

Only what means the same is translated. Anything else (look-around, back-references, possessive repetitions, ...) is
``NotDecided``: executed by another engine it would take any time, or match something else. So is a text in which an
expression could find another end of a line or another letter than RE2 does.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import lru_cache
from typing import Literal

from inspector import regex

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
            regex.compile(translated).check()
        except regex.error:
            reader.obstacle = "the expression is too large"
    return Pattern(
        text, reader.groups, reader.obstacle, translated, reader.ends, reader.letters, reader.begins, reader.repeats
    )


# -- the reader ------------------------------------------------------------------------------------------------

type Engine = Literal["java", "ruby"]

_CONTROLS = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "a": "\a", "e": "\x1b"}
_CLASSES = {"d": "0-9", "w": "0-9A-Za-z_", "s": r"\t-\r "}
_DOT = {"java": r"[^\n\r\x{85}\x{2028}\x{2029}]", "ruby": r"[^\n]"}
"""The characters that a dot matches."""
_NO_ESCAPE = frozenset("gijlmoqyCEFIJKLMOTUY")
"""Letters that have no meaning after a backslash in Java."""
_HEXADECIMAL = regex.compile(r"[0-9a-fA-F]+")
_REPEATED = regex.compile(r"\{([0-9]+)(?:(,)([0-9]*))?\}")
_BRACES = regex.compile(r"\{[^{}]*\}")
_NAMED = regex.compile(r"\(\?<[A-Za-z][A-Za-z0-9]*>")
_FLAGS = regex.compile(r"\(\?([a-zA-Z]*)(?:-([a-zA-Z]*))?([:)])")


class Invalid(ValueError):
    """The master cannot read the expression."""


class Unreadable(ValueError):
    """From here on the expression cannot be read, for this reason."""


@dataclass(slots=True)
class Reader:
    """Reads an expression from left to right."""

    text: str
    engine: Engine
    at: int = 0
    pieces: list[str] = field(default_factory=list)
    groups: int = 0
    obstacle: str = ""
    ends: bool = False
    letters: bool = False
    begins: bool = False
    repeats: bool = False
    opened: list[int] = field(default_factory=lambda: [0])
    """For each open group: how many groups there were before it."""
    closed: int | None = None
    """How many groups there were before the one that ends here; None: none ends here."""
    dots: list[bool] = field(default_factory=lambda: [False])
    """For each open group: whether a dot matches the end of a line."""

    def _hinders(self, obstacle: str) -> None:
        self.obstacle = self.obstacle or obstacle

    def read(self) -> None:
        text = self.text
        repeatable = False
        while self.at < len(text):
            character = text[self.at]
            if character not in "*+?{":
                self.closed = None
            match character:
                case "(":
                    repeatable = self._open()
                case ")":
                    if len(self.dots) == 1:
                        raise Invalid("a parenthesis is closed that was not opened")
                    self.dots.pop()
                    self.closed = self.opened.pop()
                    self._take(")")
                    repeatable = True
                case "|":
                    self._take("|")
                    repeatable = False
                case "*" | "+" | "?":
                    self._repetition(character, repeatable=repeatable)
                    repeatable = False
                case "{":
                    repeatable = self._counted(repeatable=repeatable)
                case "[":
                    self._class()
                    repeatable = True
                case "\\":
                    self._escape()
                    repeatable = True
                case _:
                    self._simple(character)
                    repeatable = True
        if len(self.dots) > 1:
            raise Invalid("a parenthesis is not closed")

    def _take(self, piece: str, length: int = 1) -> None:
        self.pieces.append(piece)
        self.at += length

    def _simple(self, character: str) -> None:
        if character == ".":
            self._take("(?s:.)" if self.dots[-1] else _DOT[self.engine])
        elif character == "^":
            self.begins = self.begins or self.engine == "ruby"
            self._take("^")
        elif character == "$":
            self.ends = True
            self._take("$")
        else:
            self._take(_literal(character))

    # -- groups ----------------------------------------------------------------------------------

    def _open(self) -> bool:
        """Read what opens a group, or sets flags; return whether a repetition may follow."""
        if not self.text.startswith("(?", self.at):
            self._group("(", 1, counts=True)
            return False
        rest = self.text[self.at : self.at + 100]
        if found := _NAMED.match(rest):
            self._group("(", found.end(), counts=True)
            return False
        if not (found := _FLAGS.match(rest)):
            # Look-around, an atomic group, a comment of Ruby's: its content is read for the groups within.
            self._hinders("the regular expression has look-around, or another group that RE2 does not know")
            self._group("(?:", 4 if rest[2:4] in ("<=", "<!") else 3)
            return False
        return self._flags(found[1], found[2] or "", found.end(), opens=found[3] == ":")

    def _group(self, piece: str, length: int, *, counts: bool = False) -> None:
        self.opened.append(self.groups)
        self.groups += counts
        self.dots.append(self.dots[-1])
        self._take(piece, length)

    def _flags(self, on: str, off: str, length: int, *, opens: bool) -> bool:
        if "x" in on + off:
            raise Unreadable("the regular expression has comments (x)")
        dotall = "s" if self.engine == "java" else "m"
        if set(on + off) - {"i", dotall, "x"}:
            self._hinders(f"the regular expression has flags (?{on}{'-' * bool(off)}{off}) that RE2 does not know")
        if "i" in on + off:
            self.letters = True
            if not self.text.isascii():
                self._hinders("the regular expression ignores the case of characters beyond ASCII")
        dots = (self.dots[-1] or dotall in on) and dotall not in off
        flags = f"(?{'i' if 'i' in on else ''}{'-i' if 'i' in off else ''}"
        if opens:
            self._group(f"{flags}:", length)
            self.dots[-1] = dots
        else:
            self.dots[-1] = dots
            self._take(f"{flags})" if flags != "(?" else "", length)
        return False

    # -- repetitions -----------------------------------------------------------------------------

    def _repetition(self, sign: str, *, repeatable: bool) -> None:
        if not repeatable:
            if self.engine == "java" or not self.pieces:
                raise Invalid(f"nothing stands before {sign!r} to be repeated")
            self._hinders("the regular expression repeats a repetition")
        self._take(sign)
        self._greed(again=sign != "?")

    def _counted(self, *, repeatable: bool) -> bool:
        found = _REPEATED.match(self.text[self.at : self.at + 30])
        if not found:
            if self.engine == "java":
                raise Invalid("a brace begins no repetition")
            self._hinders("a brace begins no repetition")
            self._take(_literal("{"))
            return True
        if not repeatable:
            self._hinders("nothing stands before a repetition")
        least, most = int(found[1]), int(found[3] or found[1])
        if found[3] and most < least:
            if self.engine == "java":
                raise Invalid("a repetition has a minimum above its maximum")
            self._hinders("a repetition has a minimum above its maximum")
        self._take(found[0], found.end())
        self._greed(again=True)
        return False

    def _greed(self, *, again: bool) -> None:
        """Read what may follow a repetition, of more than one time or not."""
        if again and self.closed is not None and self.closed < self.groups:
            self.repeats = True
        if self.text.startswith("?", self.at):
            self._take("?")
        elif self.text.startswith("+", self.at):
            self._hinders("the regular expression has a possessive repetition")
            self.at += 1

    # -- characters ------------------------------------------------------------------------------

    def _escape(self) -> None:
        letter = self.text[self.at + 1 : self.at + 2]
        if not letter:
            raise Invalid("a backslash stands at its end")
        if letter == "Q" and self.engine == "java":
            end = self.text.find("\\E", self.at)
            quoted = self.text[self.at + 2 : end if end >= 0 else None]
            self._take("".join(map(_literal, quoted)), len(quoted) + 2 + (2 if end >= 0 else 0))
        elif letter in "dw":
            self._take(f"[{_CLASSES[letter]}]", 2)
        elif letter in "DW":
            self._take(f"[^{_CLASSES[letter.lower()]}]", 2)
        elif letter in "sS":
            self._take(f"[{'^' if letter == 'S' else ''}{_CLASSES['s']}]", 2)
        elif letter in "Az":
            self._take(f"\\{letter}", 2)
        elif letter == "Z":
            self.ends = True
            self._take(r"\z", 2)
        elif letter in "bB":
            self.letters = True
            self._take(f"\\{letter}", 2)
        else:
            self._take(_literal(self._escaped(letter)), 0)

    def _escaped(self, letter: str) -> str:
        """Go past an escape, and return the character that it stands for."""
        self.at += 2
        if letter in _CONTROLS:
            return _CONTROLS[letter]
        if letter in "xu" and (digits := self._digits(2 if letter == "x" else 4)):
            return chr(int(digits, 16))
        if letter.isascii() and letter.isalnum():
            if self.engine == "java" and letter in _NO_ESCAPE:
                raise Invalid(f"\\{letter} has no meaning")
            self._hinders(f"the regular expression has \\{letter}, which RE2 does not know")
            if found := _BRACES.match(self.text[self.at : self.at + 100]):
                self.at += found.end()
        return letter

    def _digits(self, number: int) -> str:
        digits = self.text[self.at : self.at + number]
        if len(digits) < number or not _HEXADECIMAL.fullmatch(digits):
            return ""
        self.at += number
        return digits

    def _class(self) -> None:
        """Read the characters between brackets."""
        self.at += 1
        negated = self.text.startswith("^", self.at)
        self.at += negated
        members: list[str] = []
        last = ""
        if self.text.startswith("]", self.at):
            raise Unreadable("a list of characters begins with a bracket")
        while (character := self.text[self.at : self.at + 1]) != "]":
            if not character:
                raise Invalid("a bracket is not closed")
            if character == "[" or self.text.startswith("&&", self.at):
                raise Unreadable("the regular expression joins lists of characters")
            if character == "-" and last and self.text[self.at + 1 : self.at + 2] not in ("]", "", "["):
                self.at += 1
                members[-1] = self._range(last)
                last = ""
                continue
            last = self._member()
            members.append(_literal(last) if len(last) == 1 else last[1:])
            if len(last) > 1:
                last = ""
        self.at += 1
        self.pieces.append(f"[{'^' if negated else ''}{''.join(members)}]")

    def _range(self, first: str) -> str:
        last = self._member()
        if len(last) > 1:
            self._hinders("a range of characters ends with a class")
            return ""
        if first > last:
            raise Invalid(f"{first}-{last} is no range of characters")
        return f"{_literal(first)}-{_literal(last)}"

    def _member(self) -> str:
        """Go past one member of a class; return its character, or ``=`` and the class that it stands for."""
        character = self.text[self.at]
        if character != "\\":
            self.at += 1
            return character
        letter = self.text[self.at + 1 : self.at + 2]
        if not letter:
            raise Invalid("a backslash stands at its end")
        if letter in _CLASSES:
            self.at += 2
            return f"={_CLASSES[letter]}"
        if letter in "DW":
            self.at += 2
            return f"=\\{letter}"
        if letter == "b" and self.engine == "ruby":
            self.at += 2
            return "\b"
        return self._escaped(letter)


def _literal(character: str) -> str:
    """Return the pattern of one character, also within brackets."""
    if character.isalnum() and character.isascii():
        return character
    return f"\\x{{{ord(character):x}}}"
