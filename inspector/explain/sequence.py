"""The lines of a sequence diagram of a run: requests, answers, and the certificates at both ends of a connection."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inspector.explain.timeline import Entry

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable


@dataclass(frozen=True)
class ResponseArrow(Entry):
    """The arrow back: a separate line, at the moment when the exchange ended."""

    @property
    def key(self) -> Hashable:
        return ("answer", self.seq)


@dataclass(frozen=True)
class HandshakeLine(Entry):
    """The certificates shown at both ends, before the first exchange of a connection."""

    @property
    def key(self) -> Hashable:
        return ("handshake", self.seq)


def arranged(timeline: Iterable[Entry]) -> list[Entry]:
    """The entries of a run, with a line for each answer: after its request, before anything else that begins then."""
    lines: list[tuple[float, float, Entry]] = []
    known: set[str | None] = {None}
    for place, entry in enumerate(timeline):
        lines.append((entry.began, place, entry))
        brief = entry.brief
        if entry.kind != "record" or brief is None or brief.kind != "exchange":
            continue
        if {brief.leg, brief.master} - known and (brief.presented or brief.master_presented):
            line = HandshakeLine("record", entry.seq, brief, entry.began, entry.began, entry.text)
            lines.append((entry.began, place - 0.5, line))
        known |= {brief.leg, brief.master}
        answer = ResponseArrow("record", entry.seq, brief, entry.ended, entry.ended, entry.text)
        lines.append((entry.ended, place + 0.5, answer))
    return [entry for _, _, entry in sorted(lines, key=lambda line: line[:2])]
