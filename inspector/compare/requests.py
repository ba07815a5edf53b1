"""The requests of two runs: which were added or left out, what was answered otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.compare.differences import Section
from inspector.text import plural

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inspector.compare.differences import Differences
    from inspector.compare.documents import RequestMade

type _Made = dict[str, list[RequestMade]]


def compare(before: Iterable[RequestMade], after: Iterable[RequestMade], found: Differences) -> None:
    """Add the differences between the requests of two runs, by their phases."""
    old, new = _by_name(before), _by_name(after)
    phases = dict.fromkeys(made[0].phase for made in (*old.values(), *new.values()))
    order = {phase: place for place, phase in enumerate(phases)}
    for name in sorted({**old, **new}, key=lambda name: order[(old.get(name) or new[name])[0].phase]):
        one, other = old.get(name, []), new.get(name, [])
        note = str((one or other)[0].phase)
        if not one or not other:
            text = _answers(one or other)
            found.add(Section.REQUESTS, name, "", text if one else None, text if other else None, note=note)
            continue
        for part, was, now in (
            ("status", _statuses(one), _statuses(other)),
            ("format", _formats(one), _formats(other)),
            ("number", str(len(one)), str(len(other))),
        ):
            if was != now and not (part == "format" and _statuses(one) != _statuses(other)):
                found.add(Section.REQUESTS, name, part, was, now, note=note)


def _by_name(requests: Iterable[RequestMade]) -> _Made:
    found: _Made = {}
    for request in requests:
        found.setdefault(request.name, []).append(request)
    return found


def _statuses(made: list[RequestMade]) -> str:
    """The different statuses, in the order in which they came."""
    return ", ".join(dict.fromkeys(str(request.status or "no response") for request in made))


def _formats(made: list[RequestMade]) -> str:
    return ", ".join(sorted({request.media or "none" for request in made}))


def _answers(made: list[RequestMade]) -> str:
    return _statuses(made) if len(made) == 1 else f"{plural(len(made), 'time')}, {_statuses(made)}"
