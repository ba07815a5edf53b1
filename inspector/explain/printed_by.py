"""Who prints a message, in words: program, file, phase, and the request that it is about."""

from __future__ import annotations

from functools import cache
from itertools import groupby
from typing import TYPE_CHECKING

from inspector import installation
from inspector.analysis.origins import Origins

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from inspector.analysis.origins import Found, Origin

_SHOWN = 3
"""Places, and files of one place, that are named."""
_LEVELS = {
    "critical error": "a critical error", "error": "an error", "warning": "a warning", "notice": "a notice",
    "info": "an info message", "debug": "a debug message", "help": "help text", "output": "output",
}  # fmt: skip


def printed_by(message: str) -> str:
    """Return who prints a message, or the messages within each other in it, which are numbered; empty if that is not
    known."""
    return in_words(_origins().find(message))


@cache
def _origins() -> Origins:
    """The fingerprints; read once, and only if a message is explained."""
    return Origins(installation.origins())


def in_words(found: Sequence[Found]) -> str:
    """Return who prints the messages that were found in a text; several are numbered in the text's order."""
    sentences = [_of_message(each.origins) for each in found]
    if len(sentences) < 2:
        return "".join(sentences)
    return " ".join(f"{number}. {sentence}" for number, sentence in enumerate(sentences, 1))


def _of_message(origins: Iterable[Origin]) -> str:
    """Return the places that print one message: commands last, and those with most files first."""

    def where(origin: Origin) -> tuple[str, str, str]:
        return origin.printer, origin.phase, origin.between

    groups = [list(group) for _, group in groupby(sorted(origins, key=where), where)]
    groups.sort(key=lambda group: ("command" in group[0].printer, -len({origin.file for origin in group})))
    places = list(map(_of_place, groups))
    return _listed(places, "; or by ", "; and by {} more") + "."


def _of_place(origins: Sequence[Origin]) -> str:
    place = origins[0]
    files = {origin.file: None for origin in origins}
    levels = sorted({_LEVELS[origin.level] for origin in origins if origin.level})
    level = f", as {' or '.join(levels)}," if levels else ""
    named = _listed(list(files), ", ", " and {} more")
    return f"{place.printer} ({named}){level} {place.phase}; {place.between}"


def _listed(items: list[str], joint: str, more: str) -> str:
    """Return the first items, and how many more there are."""
    rest = len(items) - _SHOWN
    return joint.join(items[:_SHOWN]) + (more.format(rest) if rest > 0 else "")
