"""What a master logged while it compiled, as v4 answers it: the same message on many nodes is one."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import msgspec

from inspector import regex
from inspector.compare.differences import NODE
from inspector.protocol import bodies, decode
from inspector.rehearsal.requests import V4

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspector.compare.documents import RunDocuments
    from inspector.compare.masks import Masks
    from inspector.model import Exchange

MOST = 1000
"""Messages of one compile."""
LONGEST = 2**16
"""Characters of a message."""
_OF_V4 = regex.compile(r".* contains an? .* value\. It will be converted to the String .*", regex.DOTALL)
"""What a catalog without rich data costs: an agent gets it with rich data, and the master does not log this."""
LEVELS = ("emerg", "alert", "crit", "err", "warning")
"""The worst first."""


class _Entry(msgspec.Struct):
    level: str = ""
    message: str = ""
    file: str | None = None
    line: int | None = None


class _Answer(msgspec.Struct):
    logs: list[_Entry] = []


class Logged(msgspec.Struct, frozen=True):
    """A message, and the nodes whose catalogs it is about."""

    level: str
    message: str
    """As of the first of them, with masks."""
    place: str
    """File and line; empty if they are not known."""
    nodes: list[str]


@dataclass(slots=True)
class Logs:
    """The messages so far."""

    _found: dict[tuple[str, str], Logged] = field(default_factory=dict)

    def add(self, of: RunDocuments, exchange: Exchange, masks: Masks) -> None:
        """Add what is in the answer to a node."""
        for entry in _entries(exchange):
            place = entry.file or ""
            if place and entry.line is not None:
                place = f"{place}:{entry.line}"
            message, place = masks.text(entry.message[:LONGEST]), masks.text(place)
            same = f"{message}\n{place}"
            for name, kind in sorted(of.own_names.items(), key=lambda item: len(item[0]), reverse=True):
                same = same.replace(name, NODE.format(kind))
            logged = self._found.setdefault((entry.level, same), Logged(entry.level, message, place, []))
            if of.name not in logged.nodes[-1:]:
                logged.nodes.append(of.name)

    def __iter__(self) -> Iterator[Logged]:
        """The worst first; of one level, those of most nodes."""
        order = {level: number for number, level in enumerate(LEVELS)}
        return iter(sorted(self._found.values(), key=lambda each: (order.get(each.level, 99), -len(each.nodes))))


def _entries(exchange: Exchange) -> list[_Entry]:
    response = exchange.response
    if exchange.request.target != V4 or response is None or (body := decode.content(response)) is None:
        return []
    try:
        found = bodies.structure(body, bodies.content_type(response), _Answer).logs[:MOST]
    except (bodies.Unreadable, msgspec.MsgspecError):
        return []
    return [entry for entry in found if not _OF_V4.fullmatch(entry.message)]
