"""Differences: one type for all that may differ between two runs, and a list of them."""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from enum import StrEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal

from inspector import regex
from inspector.compare import meaning, text_diff

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from inspector.compare.masks import Masks

type Change = Literal["added", "removed", "changed"]
NODE = "\x00{}\x00"
"""What takes the place of an agent's own name of some kind where differences of several agents are compared."""


class Section(StrEnum):
    """What may differ, in the order in which it is shown."""

    RUN = "run"
    """Outcome, versions, environment, addresses, certificates, TLS, server."""
    FINDINGS = "findings"
    CATALOG = "catalog"
    FILES = "files"
    """What file resources and plugins get from the master."""
    FACTS = "facts"
    REQUESTS = "requests"
    REPORT = "report"


@dataclass(frozen=True, slots=True)
class Difference:
    """One thing that differs. Values are JSON-able, with masks."""

    section: Section
    name: str
    """What differs: a resource, the path of a fact, a file, a request."""
    part: str
    """The part of it, e.g. a parameter; empty: all of it."""
    change: Change
    before: Any
    """None: not there."""
    after: Any
    places: tuple[str, ...] = ()
    """Where the manifest has it, before and after, if that is known."""
    lines: tuple[str, ...] = ()
    """Of texts of several lines: what was taken out and added."""
    note: str = ""
    names: frozenset[str] = field(default=frozenset(), repr=False)
    """Its name as it is, and the former one of a resource that was renamed: to find it by, not to be shown."""
    identity: str = field(default="", repr=False)
    """Equal for the same difference of another agent, whose name may be in it. It does not reveal the values."""

    @property
    def address(self) -> str:
        """Name and part."""
        return f"{self.name}/{self.part}" if self.part else self.name


class Differences:
    """The differences found so far, without those that are ignored."""

    def __init__(
        self, masks: Masks, ignored: Patterns | None = None, names: Mapping[str, str] = MappingProxyType({})
    ) -> None:
        """``names`` are those of the agent itself, each with its kind."""
        self.found: list[Difference] = []
        self.ignored: Counter[Section] = Counter()
        """How many of each section were left out."""
        self._masks, self._patterns = masks, ignored or Patterns()
        longest = sorted(names, key=len, reverse=True)
        self._names = [(name.encode(), NODE.format(names[name]).encode()) for name in longest]

    def ignores(self, section: Section, name: str, part: str = "") -> bool:
        """Whether something is not to be compared."""
        return bool(self._patterns) and self._patterns.cover(section, name, part)

    def add(
        self,
        section: Section,
        name: str,
        part: str = "",
        before: Any = None,
        after: Any = None,
        *,
        named: str = "",
        sensitive: bool = False,
        places: tuple[str, ...] = (),
        note: str = "",
        change: Change | None = None,
        means: Any = None,
        texts: tuple[str, str] | None = None,
        formerly: str = "",
    ) -> None:
        """Add a difference of two values, in which rich data was read. ``named`` is the name by which a value may be a
        secret (default: that of the part). ``means`` distinguishes it from others if the values do not. ``texts`` are
        compared line by line (default: the values, if they are texts of several lines). ``formerly`` is the name of a
        resource before it was renamed."""
        if self.ignores(section, name, part):
            self.ignored[section] += 1
            return
        label = named or part or name
        old, new = (self._masks.value(label, value, sensitive=sensitive) for value in (before, after))
        lines: tuple[str, ...] = ()
        if texts is not None:
            lines = tuple(text_diff.unified(*map(self._masks.text, texts)))
        elif isinstance(old, str) and isinstance(new, str) and "\n" in old.strip("\n") + new.strip("\n"):
            lines = tuple(text_diff.unified(old, new))
        note = self._masks.text(note)
        if before is not None and after is not None and meaning.encoded(old) == meaning.encoded(new):
            note = note or "differs in what is masked"
        kind: Change = change or ("added" if before is None else "removed" if after is None else "changed")
        identity = self._identity(section, name, part, kind, means or [meaning.plain(before), meaning.plain(after)])
        where = tuple(dict.fromkeys(filter(None, places)))
        self.found.append(
            Difference(
                section,
                self._masks.text(name),
                part,
                kind,
                old,
                new,
                where,
                lines,
                note,
                frozenset((name, formerly or name)),
                identity,
            )
        )

    def _identity(self, *what: Any) -> str:
        text = meaning.encoded(what)
        for name, stands in self._names:
            text = text.replace(name, stands)
        return hashlib.sha256(text).hexdigest()


# -- what is not to be compared ----------------------------------------------------------------------------

_WILD = {"*": ".*", "?": "."}


class Patterns:
    """Patterns of what is not to be compared, without distinction of case: ``File[/tmp/*]``, ``*[*]/mode``,
    ``facts:dhcp*``.

    ``*`` stands for any text and ``?`` for one character; brackets are those of resources. A pattern covers a
    difference if it matches its address, or the address of the whole that it is part of. With a section before it, it
    is about that section only.
    """

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


def patterns_in(text: str) -> list[str]:
    """The patterns in a file: one on each line, without empty lines and those that begin with ``#``."""
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]
