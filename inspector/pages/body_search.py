"""Where a text stands in a record: in its target, its headers, its bodies, with what stands around it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

from inspector import regex
from inspector.model import Place
from inspector.privacy import redact
from inspector.summaries import filters

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspector.model import Record

PIECE = 2**18
"""Characters that are searched at once: no key waits for longer."""
AROUND = 80
"""Characters that are shown before and behind what was found."""
PLACES = 5
"""What is shown of one body: the first lines in which it was found."""


class Hit(NamedTuple):
    """One match."""

    seq: int
    time: float
    where: str
    before: str
    found: str
    behind: str

    @property
    def place(self) -> Place:
        """Where it is displayed: the text around it identifies it, unless a view formats that text differently."""
        needle = (
            regex.split(r'[",]', self.before)[-1].lstrip() + self.found + regex.split(r'[",]', self.behind)[0].rstrip()
        )
        side, _, part = self.where.partition(" ")
        match side:
            case "target":
                return Place("request", "headers", needle, self.found)
            case "request" | "response":
                return Place(side, "body" if part == "body" else "headers", needle, self.found)
            case "TLS":
                return Place("tls", "", needle, self.found)
        return Place("meaning", "", needle, self.found)


class Needle:
    """The text to find, ignoring case; JSON may contain it with escapes."""

    def __init__(self, text: str) -> None:
        written = dict.fromkeys((text, json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]))
        self._folded = tuple(form.casefold() for form in written)
        self._exact = regex.compile("|".join(regex.escape(form) for form in written), regex.IGNORECASE)
        self._overlap = max(map(len, written)) * 3  # folded it may be longer

    def places(self, text: str) -> Iterator[tuple[int, int]]:
        """Its start and end in a text; approximate if only case folding finds it."""
        last = -1
        for begin in range(0, max(1, len(text)), PIECE):
            piece = text[begin : begin + PIECE + self._overlap]
            folded = piece.casefold()
            if not any(form in folded for form in self._folded):
                continue
            exact = [(found.start() + begin, found.end() + begin) for found in self._exact.finditer(piece)]
            if not exact:
                near = min(place for form in self._folded if (place := folded.find(form)) >= 0)
                exact = [(begin + min(near, len(piece)), begin + min(near + self._overlap // 3, len(piece)))]
            for first, end in exact:
                if first > last:  # not again what is in the overlap
                    last = first
                    yield first, end


def hits(record: Record, needle: Needle) -> Iterator[Hit]:
    """The matches of a text in a record: one per line, in the most readable form; none in secrets."""
    if next(_hits(record, needle), None) is None:
        return
    yield from _hits(redact.redacted(record), needle)


def _hits(record: Record, needle: Needle) -> Iterator[Hit]:
    for where, forms in filters.texts(record):
        for text in forms:
            found = list(_lines(text, needle))
            if found:
                yield from (Hit(record.seq, record.time, where, *around) for around in found)
                break


def _lines(text: str, needle: Needle) -> Iterator[tuple[str, str, str]]:
    shown, after = 0, 0
    for first, end in needle.places(text):
        if first < after:
            continue
        if shown == PLACES:
            return
        shown += 1
        # A line can be a whole catalog: only what is near is looked at.
        before = text[max(0, first - AROUND) : first].rpartition("\n")[2]
        behind = text[end : end + AROUND].partition("\n")[0]
        yield before, text[first:end], behind
        after = end + len(behind)
