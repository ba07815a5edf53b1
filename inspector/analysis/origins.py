"""Where a message is printed: the programs, files and phases whose templates a text contains.

The templates of agents, masters and their tools are stored as fingerprints (``inspector/messages/origins.msgpack``):
hashes of the fixed words between their placeholders. ``python -m tests.origins`` makes them of the public sources.

Where a template has few words that are fixed, other programs may print them, too. It is found only where a message of
Puppet begins: at the beginning of what is pasted, or behind a colon if something else shows that the line is Puppet's.

A text is bounded, and searched in linear time: every run of its words, up to the longest that is hashed, is looked up.
"""

from __future__ import annotations

import hashlib
import zlib
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from inspector import regex

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

LIMIT = 4_000
"""Characters of a text that are read."""
RUN = 12
"""Words of a fixed part that are hashed together; a longer part is several."""
GAP = 40
"""Words between two fixed parts: the value of a placeholder is not longer."""
VALUE = 4
"""Words, separated by spaces, of a value at the end of what a person typed, if the template has few fixed words."""
FOUND = 3
"""Messages within each other that are returned."""
_PLACES = 8
"""Places in a text where one template is tried."""
_KEY, _PIECE = 6, 3
"""Bytes of the hash that finds a template, and of those that confirm it."""
_WORD = regex.compile("[a-z0-9_]+")
_NO_QUOTES = dict.fromkeys(map(ord, "'\"`\u2018\u2019\u201c\u201d"))
_RENAMED = {"openvox": "puppet", "openvoxdb": "puppetdb", "openvoxserver": "puppetserver", "openfact": "facter"}
"""Words of OpenVox, and those of Puppet in the same place."""
_COLOUR = regex.compile(r"(?:\x1b|\^\[|#033)\[[0-9;]*[A-Za-z]")
_LEVEL = r"(?:Error|Warning|Notice|Info|Debug|err|warning|notice|info|debug)"
_PREFIX = regex.compile(
    r"^\s*(?:.{0,100}\b(?:puppet|openvox|facter|openfact)[a-z-]*\[[0-9]+\]: "
    rf"|{_LEVEL}: "
    r"|[0-9-]{10}[ T][0-9:.,]+(?:Z| [+-][0-9]{4})? .{1,300}? \((?:err|warning|notice|info|debug|crit|alert|emerg)\): "
    r"|\[?[0-9-]{10}[ T][0-9:.,]+(?:Z|[+-][0-9:]{4,6})? \[?(?:ERROR|WARN|INFO|DEBUG|FATAL) *\]? \[[^\]]*\] \[[^\]]+\] "
    r"|\[[^\]]{1,40}\] (?:ERROR|WARN|INFO|DEBUG|FATAL) +(?:Facter|OpenFact)[A-Za-z:]* +- )+"
)
"""What precedes a message in a terminal and in the logs of Puppet's programs."""
_OTHER_LOG = regex.compile(
    r"^\W?\s*[0-9]|^[A-Z][a-z]{2} +[0-9]|^[^\s:]{1,40}\[[0-9]+\]:|^\[|^<"
    r"|^(?:ERROR|WARN|WARNING|INFO|DEBUG|TRACE|NOTICE|FATAL|CRITICAL|SEVERE)\b"
)
"""How a line of another program's log begins."""
_AFTER = regex.compile(r"[:;(\])>\n] *$")
"""What precedes a message within another one."""


class Origin(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A place in a program that prints a message."""

    printer: str
    """Who prints it: ``the agent's configurer``."""
    file: str
    level: str
    """``error``, ``warning``, ...; empty: not known."""
    phase: str
    """When, and about what."""
    between: str
    """Which request it is about, or that it is about none."""


class Template(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The fingerprint of a template."""

    key: bytes
    """The hash of its longest fixed part, or of the first words of it."""
    number: int
    """Which of the parts that is."""
    pieces: bytes
    """The fixed parts in order: the number of words, and a short hash, of each."""
    sure: bool
    """It is found anywhere: no other program has as many words in common with it."""
    opens: bool
    """It begins with a value."""
    ends: bool
    """It ends with its last fixed part."""
    origins: tuple[int, ...]
    """Numbers of its origins."""


class Book(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """All templates, and where they are printed."""

    words: tuple[str, ...]
    """The printers, files, levels, phases."""
    origins: tuple[tuple[int, int, int, int, int], ...]
    """The fields of each ``Origin``, as numbers of words."""
    templates: tuple[Template, ...]


class Found(NamedTuple):
    """A message in a text."""

    start: int
    """The number of its first fixed word."""
    origins: tuple[Origin, ...]


def encoded(book: Book) -> bytes:
    """Return the content of the file."""
    return zlib.compress(msgspec.msgpack.encode(book), 9)


class Origins:
    """The origins of messages, to look up."""

    def __init__(self, stored: bytes) -> None:
        """Read what ``encoded`` returned."""
        self.book = msgspec.msgpack.decode(zlib.decompress(stored), type=Book)
        self.templates: dict[bytes, list[Template]] = {}
        for each in self.book.templates:
            self.templates.setdefault(each.key, []).append(each)

    def find(self, pasted: str) -> tuple[Found, ...]:
        """Return the messages in a text, in their order; of several lines of a log those of the first that has any.

        The more fixed words a template has, the more it counts; another one that claims a word of it is none. Templates
        of the same words are one message with several origins.
        """
        text = _COLOUR.sub("", pasted[:LIMIT])
        for part in _parts(text):
            if found := self._in(part):
                return found
        # A terminal breaks lines within words.
        return self._in("".join(text.splitlines())) if "\n" in text else ()

    def _in(self, part: str) -> tuple[Found, ...]:
        return tuple(
            Found(
                start, tuple(Origin(*(self.book.words[word] for word in self.book.origins[each])) for each in numbers)
            )
            for start, numbers in _Text(part).messages(self.templates)
        )


def template(parts: Sequence[str], *, sure: bool, origins: tuple[int, ...]) -> Template | None:
    """Return the fingerprint of a template's text, split at its placeholders; None if it has no two words in a row.

    A word that a placeholder touches is not fixed.
    """
    fixed = fixed_words(parts)
    runs = [words[at : at + RUN] for words in fixed for at in range(0, len(words), RUN)]
    if max(map(len, runs), default=0) < 2:
        return None
    longest = max(range(len(runs)), key=lambda number: len(runs[number]))
    return Template(
        _hash(runs[longest]), longest, b"".join(bytes([len(run)]) + _hash(run)[:_PIECE] for run in runs), sure,
        not fixed[0], bool(fixed[-1]), origins,
    )  # fmt: skip


def fixed_words(parts: Sequence[str]) -> list[list[str]]:
    """Return the words of each part of a template as they are compared, without those that a placeholder touches."""
    last = len(parts) - 1
    fixed = []
    for number, part in enumerate(map(_unquoted, parts)):
        words = [
            word
            for word, start, end in _words(part)
            if not (number > 0 and start == 0) and not (number < last and end == len(part))
        ]
        fixed.append(words)
    return fixed


def _unquoted(text: str) -> str:
    """Return a text in lower case without quotes: one in "can't" ends no word."""
    return text.translate(_NO_QUOTES).lower()


def _words(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the words of a text in lower case, and where they stand."""
    for found in _WORD.finditer(text):
        yield _RENAMED.get(found[0], found[0]), found.start(), found.end()


def _hash(words: Sequence[str]) -> bytes:
    return hashlib.blake2b(" ".join(words).encode(), digest_size=_KEY).digest()


# -- finding ----------------------------------------------------------------------------------------------


def _parts(text: str) -> list[str]:
    """Return the messages of a log: each line that begins as one does, with the lines that follow it."""
    parts: list[list[str]] = [[]]
    of_others = False
    for line in text.splitlines():
        of_puppet = _PREFIX.match(line) is not None
        # A message of Puppet may have lines that begin with a number: steps of a fix.
        if not parts[-1] or of_puppet or (of_others and _OTHER_LOG.match(line)):
            parts.append([])
            of_others = not of_puppet and _OTHER_LOG.match(line) is not None
        parts[-1].append(line)
    return ["\n".join(lines) for lines in parts if lines]


class _Match(NamedTuple):
    """A template in a text."""

    runs: tuple[tuple[int, int], ...]
    """Number of the first word, and of the word behind the last one, of each fixed part."""
    template: Template

    def size(self, start: int) -> int:
        """Return the number of fixed words from a word on."""
        return sum(max(0, end - max(start, begin)) for begin, end in self.runs)


class _Text:
    """A message as it was pasted."""

    def __init__(self, text: str) -> None:
        prefix = _PREFIX.match(text)
        self.of_puppet = prefix is not None
        self.of_others = not prefix and _OTHER_LOG.match(text) is not None
        self.text = _unquoted(text)
        self.words = list(_words(self.text))
        before = _unquoted(prefix[0]) if prefix else ""
        self.start = sum(start < len(before) for _, start, _ in self.words)
        """The number of the word that the message begins with; the prefix may belong to it."""
        self.hashes: dict[int, list[bytes]] = {}

    def messages(self, templates: Mapping[bytes, Sequence[Template]]) -> list[tuple[int, tuple[int, ...]]]:
        """Return the messages: the number of the first fixed word, and the numbers of the origins."""
        matches = [match for candidate in self._candidates(templates) if (match := self._match(*candidate))]
        if any(match.template.sure for match in matches):
            self.of_puppet = True
        taken: set[int] = set()
        chosen: dict[tuple[tuple[int, int], ...], dict[int, None]] = {}
        for match in sorted(matches, key=lambda match: (-match.size(self.start), not match.template.sure)):
            if not (match.template.sure or self._begins(match)):
                continue
            covered = {word for start, end in match.runs for word in range(start, end)}
            if match.runs in chosen or (len(chosen) < FOUND and taken.isdisjoint(covered)):
                chosen.setdefault(match.runs, {}).update(dict.fromkeys(match.template.origins))
                taken |= covered
        return [(runs[0][0], tuple(numbers)) for runs, numbers in sorted(chosen.items())]

    def _candidates(self, templates: Mapping[bytes, Sequence[Template]]) -> Iterator[tuple[Template, list[int]]]:
        """Yield the templates whose longest part is in the text, with the first places of it."""
        places: dict[bytes, list[int]] = {}
        for length in range(2, RUN + 1):
            for at, key in enumerate(self._of_length(length)):
                if key in templates:
                    places.setdefault(key, []).append(at)
        for key, found in places.items():
            for candidate in templates[key]:
                yield candidate, found[:_PLACES]

    def _of_length(self, length: int) -> list[bytes]:
        """Return the hash of each run of so many words."""
        if length not in self.hashes:
            words = [word for word, _, _ in self.words]
            self.hashes[length] = [_hash(words[at : at + length]) for at in range(len(words) - length + 1)]
        return self.hashes[length]

    def _match(self, candidate: Template, places: list[int]) -> _Match | None:
        """Return a template whose other parts stand before and behind its longest one, each nearest to the next."""
        step = 1 + _PIECE
        pieces = [(candidate.pieces[at], candidate.pieces[at + 1 : at + step])
                  for at in range(0, len(candidate.pieces), step)]  # fmt: skip
        for place in places:
            runs = [(place, place + pieces[candidate.number][0])]
            for length, hashed in pieces[candidate.number + 1 :]:
                start = self._next(length, hashed, range(runs[-1][1], runs[-1][1] + GAP))
                if start is None:
                    break
                runs.append((start, start + length))
            for length, hashed in reversed(pieces[: candidate.number]):
                latest = runs[0][0] - length
                start = self._next(length, hashed, range(latest, latest - GAP, -1))
                if start is None:
                    break
                runs.insert(0, (start, start + length))
            if len(runs) == len(pieces):
                return _Match(tuple(runs), candidate)
        return None

    def _next(self, length: int, hashed: bytes, places: range) -> int | None:
        hashes = self._of_length(length)
        return next((at for at in places if 0 <= at < len(hashes) and hashes[at][:_PIECE] == hashed), None)

    def _begins(self, match: _Match) -> bool:
        """Whether a message with few fixed words begins, and ends, where one of Puppet does."""
        if self.of_others and not self.of_puppet:
            return False
        first, last = match.runs[0][0], match.runs[-1][1]
        before, behind = self.text[: self.words[first][1]], self.text[self.words[last - 1][2] :]
        if match.template.opens:
            if not self.of_puppet and (len(before.split()) > VALUE or ": " in before):
                return False
        elif first not in (0, self.start) and not (self.of_puppet and _AFTER.search(before[-4:])):
            return False
        if match.template.ends:
            is_end = behind.lstrip(" .!?")[:1] in ("", "\n", "(", "[")
            return is_end or (self.of_puppet and behind[:1] in (":", ";", ",", ")"))
        return self.of_puppet or len(behind.split()) <= VALUE
