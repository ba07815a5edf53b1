"""The one book of messages of agents, masters and their tools, with causes, a check and a fix.

``explain MESSAGE``, the verdicts of runs and the doctor take what a message means, and what heals it, from here. They
are written in ``inspector/messages/*.yaml``, and compiled (``make docs``). A message is found in what a user
pastes from a log or a terminal.

A known message is found by its stable part. Prefixes, names, paths, quotes, colours and line breaks do not matter, nor
do spaces: a terminal breaks lines within words. What is pasted is bounded, and searched in linear time.
"""

from __future__ import annotations

import math
from functools import cache
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from inspector import installation, regex
from inspector.model import Visible
from inspector.remembering import remembered
from inspector.rules.fixes import BLANK, Step

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inspector.rules.fixes import Fix

LIMIT = 20_000
"""Characters of what is pasted that are read."""
NEAREST = 3
"""Messages that are offered if none fits."""


class KnownError(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """A message, or several with the same meaning."""

    texts: tuple[str, ...]
    """The stable parts. ``X`` stands for a part that varies, ``NAME`` for a certname and ``HOST`` for a server."""
    meaning: str
    causes: tuple[str, ...]
    """The most frequent one first."""
    check: tuple[Step, ...]
    """What shows the cause and changes nothing, with the placeholders of ``inspector.rules.puppet_commands``."""
    fix: tuple[Step, ...]
    """With the same placeholders."""
    rules: tuple[str, ...] = ()
    """Those that explain how an agent comes to print the message."""
    visible: Visible | None = None
    """None: local to the agent or the master, not visible in the traffic."""
    old: bool | None = None
    """True: only agents up to version 5 print it; False: only later ones; None: both."""
    frame: bool = False
    """It surrounds or follows the reason: any other message that is found, too, says more."""
    first: bool = False
    """It says whose message it is, so it comes before any other that is found, too: the words of TLS in it are about
    that party, and not about agent and master."""


@cache
def book() -> tuple[KnownError, ...]:
    """Return every known message; read once."""
    return msgspec.json.decode(installation.messages(), type=tuple[KnownError, ...])


class ErrorMatch(NamedTuple):
    """The known message that a pasted text contains."""

    known: KnownError
    name: str | None
    """The certname in the text."""
    host: str | None
    """The server in the text."""
    text: str
    """The message as it was pasted, without what surrounds it."""


_COLOUR = regex.compile(r"(?:\x1b|\^\[|#033)\[[0-9;]*[A-Za-z]|\[[0-9;]+m")
_QUOTES = regex.compile("['\"`\u2018\u2019\u201c\u201d]")
_IGNORED = regex.compile("[\\s'\"`\u2018\u2019\u201c\u201d]+")
_LEVEL = r"(?:Error|Warning|Notice|Info|Debug|err|warning|notice|info|debug)"
_START = regex.compile(rf"^(?:\S.{{0,100}}[\])0-9Z:] )?(?:(?P<level>{_LEVEL}):|puppet[a-z-]*\[[0-9]+\]:)\s")
"""How a line begins that is a new message, in a terminal or in a log."""
_PLACEHOLDER = regex.compile(r"\b(?:NAME|HOST|X)\b")
_VALUE = r"(?:https?://|/?CN=)?([^\s/:,;()\[\]]+)[^\s()\[\]]*?"
_ELSEWHERE = {"NAME": r"\bon node ([A-Za-z0-9._-]+)", "HOST": r"\bhttps://([A-Za-z0-9._-]+)"}
"""Where the value of a placeholder stands in many messages, around the reason."""
_PATH = r"(/[A-Za-z0-9._/-]{1,200}\.(?:pp|epp|erb|ya?ml|eyaml|rb|json))"
_BLANKS = {
    "<file>": regex.compile(rf"(?:\((?:file: )|\bat |\bin file |\bin |\()['\"]?{_PATH}(?:, line|:[0-9]|, )"),
    "<environment>": regex.compile(r"(?:/environments/|\benvironment '?)([A-Za-z0-9_]{1,64})\b"),
    "<port>": regex.compile(
        r"https?://[A-Za-z0-9.-]+:([0-9]{2,5})\b|connection to [A-Za-z0-9.-]+:([0-9]{2,5})\b"
        r"|peeraddr=[0-9A-Fa-f.:\[\]]+:([0-9]{2,5})\b|\bport ([0-9]{2,5})\b|\bon ([0-9]{2,5}) at route"
    ),
    "<service>": regex.compile(r"\bfor /?CN=([A-Za-z0-9.-]+)|https?://([A-Za-z0-9.-]+)"),
    "<module directory>": regex.compile(r"(/[A-Za-z0-9._/-]{1,200}/modules/[a-z][a-z0-9_]{0,64})/"),
    "<module>": regex.compile(r"/modules/([a-z][a-z0-9_]{0,64})/"),
}
"""What a message names, by the blank of a command that it fills."""
_WORD = regex.compile(r"[a-z0-9_/.:-]*[a-z0-9]")


def plain(pasted: str) -> str:
    """Return the part of a pasted text that is read, without colours."""
    return _COLOUR.sub("", pasted[:LIMIT])


def find(pasted: str) -> ErrorMatch | None:
    """Return the known message in a pasted text; None if it contains none.

    Errors come before other levels, and reasons before what surrounds them. Among the reasons in one message the
    longest text counts, among what surrounds a reason the innermost.
    """
    text = plain(pasted)
    parts = _parts(text)
    frame = None
    # A line that is broken before "Error:" is no new message, so the whole text comes last.
    for part in (*parts, text):
        best = _best(part)
        found = ErrorMatch(best, _value(best, "NAME", part), _value(best, "HOST", part), part) if best else None
        if found and not found.known.frame:
            return found
        frame = frame or found
    return frame


@remembered(1024)
def reason(printed: str) -> ErrorMatch | None:
    """Return the known reason in one message of an answer or a report; None if it names none: what only surrounds a
    reason explains nothing."""
    text = plain(printed)
    best = _best(text)
    if best is None or best.frame:
        return None
    return ErrorMatch(best, _value(best, "NAME", text), _value(best, "HOST", text), text)


def filled(fix: Fix, text: str) -> Fix:
    """Return a fix whose blanks (``<file>``) hold what the message names, as far as that is safe in a command."""
    found = {blank: match for blank, pattern in _BLANKS.items() if (match := pattern.search(text))}
    named_there = {blank: next(filter(None, match.groups())) for blank, match in found.items()}
    values = {blank: value for blank, value in named_there.items() if "/." not in value}

    def named(clause: str) -> str:
        return BLANK.sub(lambda blank: values.get(blank[0], blank[0]), clause)

    return tuple(msgspec.structs.replace(step, text=named(step.text), command=named(step.command)) for step in fix)


def _parts(text: str) -> list[str]:
    """Return the messages of a log, errors first."""
    parts: list[tuple[bool, list[str]]] = []
    for line in text.splitlines():
        start = _START.match(line)
        if start or not parts:
            level = start["level"] if start else None
            parts.append((level is not None and not level.lower().startswith("err"), []))
        parts[-1][1].append(line)
    return ["\n".join(lines) for _, lines in sorted(parts, key=lambda part: part[0])]


def _best(text: str) -> KnownError | None:
    """Return the message with the longest stable part in the text; if there are frames only, the innermost one."""
    compared = _compared(text)
    best, rank = None, (False, False, 0)
    for known in book():
        for stable in known.texts:
            pieces, length = _pieces(stable)
            if (start := _start(pieces, compared)) is None:
                continue
            # A frame may be all that the text is, so it counts from its first character on.
            new = (known.first, not known.frame, start + 1 if known.frame else length)
            if new > rank:
                best, rank = known, new
    return best


def _compared(text: str) -> str:
    return _IGNORED.sub("", text).lower()


@cache
def _pieces(stable: str) -> tuple[tuple[str, ...], int]:
    """Return the fixed pieces of a stable part, and how many characters they have."""
    pieces = tuple(_compared(piece) for piece in _PLACEHOLDER.split(stable))
    return pieces, sum(map(len, pieces))


def _start(pieces: tuple[str, ...], text: str) -> int | None:
    """Return where a text contains pieces in their order; None if it does not."""
    start = at = text.find(pieces[0])
    for before, piece in pairwise(pieces):
        if at < 0:
            return None
        at = text.find(piece, at + len(before))
    return None if at < 0 else start


def _value(known: KnownError, placeholder: str, text: str) -> str | None:
    """Return the part of the text at the message's ``NAME`` or ``HOST``."""
    text = _QUOTES.sub("", text)
    for stable in known.texts:
        before, found, after = _QUOTES.sub("", stable).partition(placeholder)
        if found:
            # The words next to it are enough: pasted lines may be incomplete.
            ahead, behind = before.removesuffix("CN=").split(" ")[-3:], after.rstrip(".").split(" ")[:3]
            pattern = _spaced(ahead) + _VALUE + _spaced(behind)
            if value := regex.search(pattern, text, regex.IGNORECASE):
                return value[1]
    elsewhere = regex.search(_ELSEWHERE[placeholder], text)
    return elsewhere[1] if elsewhere else None


def _spaced(words: list[str]) -> str:
    """Return a pattern of words with any spaces between them, and anything at their placeholders."""
    return r"\s+".join(r"\S*?".join(map(regex.escape, _PLACEHOLDER.split(word))) for word in words)


def nearest(pasted: str) -> list[str]:
    """Return the stable parts of the messages that share most words with a pasted text, the nearest first.

    The fewer messages contain a word, the more it counts. What varies is written as ``...``.
    """
    words = _words(plain(pasted))
    messages = book()
    vocabularies = [_vocabulary(known.texts) for known in messages]
    count = {word: sum(word in vocabulary for vocabulary in vocabularies) for word in words}
    weight = {word: math.log(len(messages) / number) for word, number in count.items() if number}
    scored: list[tuple[float, str]] = []
    for known, vocabulary in zip(messages, vocabularies, strict=True):
        if words.isdisjoint(vocabulary):
            continue
        score, stable = max((_sum(weight, words & _fixed_words(one)), one) for one in known.texts)
        if score >= 1:
            scored.append((score, stable))
    scored.sort(key=lambda pair: -pair[0])
    return [_PLACEHOLDER.sub("...", _QUOTES.sub("", stable)) for _, stable in scored[:NEAREST]]


def _sum(weight: dict[str, float], words: Iterable[str]) -> float:
    return sum(weight[word] for word in words)


@cache
def _vocabulary(texts: tuple[str, ...]) -> frozenset[str]:
    return frozenset().union(*map(_fixed_words, texts))


@cache
def _fixed_words(stable: str) -> frozenset[str]:
    return frozenset(_words(_PLACEHOLDER.sub(" ", stable)))


_FILLERS = {
    "a", "an", "and", "at", "be", "by", "error", "for", "from", "in", "info", "is", "it", "its", "not", "notice", "of",
    "on", "or", "the", "this", "to", "was", "warning", "with", "you",
}  # fmt: skip
"""Words that say nothing about a message."""


def _words(text: str) -> set[str]:
    found = {word.strip(".:-/") for word in _WORD.findall(_QUOTES.sub("", text).lower())}
    return found - _FILLERS - {""}
