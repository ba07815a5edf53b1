"""A recording that began late, ended early or arrived in another order shows nothing that breaks but what the whole one
shows, and two recordings made together show what both show.

Times are in the records: what overlaps may arrive in either order. What is cut off ends as "unfinished", which is no
error of anybody.
"""

from __future__ import annotations

import dataclasses
import itertools
import random
from email.utils import formatdate
from typing import TYPE_CHECKING

import pytest

from inspector.analysis.analyzer import Analyzer
from inspector.clocks import SKEW, http_date
from inspector.model import Exchange, Gap, Handshake, Severity
from inspector.protocol.endpoints import match
from tests.support.conversations import numbered
from tests.support.recorded import RECORDINGS, SAMPLES, name_of, records_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from inspector.model import Leg, Message, Record

SEED = 20261123
CAPTURES = [
    *(pytest.param(path, id=name_of(path)) for path in SAMPLES),
    *(pytest.param(path, id=name_of(path), marks=pytest.mark.slow) for path in RECORDINGS),
]
CUTS = 20
"""Places where a recording is cut; a short one is cut everywhere."""
ORDERS = 5


# -- what may become of a recording ------------------------------------------------------------------------

type Errors = frozenset[tuple[str | None, str]]
"""The certname of a run, and the rule of an error in it."""


def errors(records: Iterable[Record]) -> Errors:
    """Return what breaks in some records."""
    analyzer = Analyzer()
    for record in records:
        assert analyzer.feed(record).trouble == []
    return frozenset(
        (run.certname, finding.rule)
        for run in analyzer.finish()
        for finding in run.findings
        if finding.severity is Severity.ERROR
    )


def shuffled(records: Sequence[Record], chance: random.Random) -> list[Record]:
    """Return records in an order in which a recorder may have got them: what ended before another began comes first."""
    waiting, order = list(records), []
    while waiting:
        # Nothing that is under way when the first one ends can have been preceded by that.
        first_end = min(record.ended for record in waiting)
        ready = [record for record in waiting if record.time <= first_end]
        order.append(chance.choice(ready))
        waiting.remove(order[-1])
    return numbered(order)


def moved(records: Sequence[Record], seconds: float, tag: str) -> list[Record]:
    """Return records of another time, with connections of their own from an address of their own."""
    return [_moved(record, seconds, tag) for record in records]


def joined(one: Sequence[Record], other: Sequence[Record]) -> list[Record]:
    """Return two recordings as one, in the order of arrival."""
    return numbered(sorted([*one, *other], key=lambda record: record.ended))


def _moved(record: Record, seconds: float, tag: str) -> Record:
    match record:
        case Exchange():
            return dataclasses.replace(
                record,
                failed=_later(record.failed, seconds),
                agent=_leg(record.agent, seconds, tag),
                master=record.master and _leg(record.master, seconds, tag),
                request=_message(record.request, seconds),
                response=record.response and _message(record.response, seconds),
            )
        case Handshake():
            return dataclasses.replace(record, time=record.time + seconds, leg=_leg(record.leg, seconds, tag))
        case Gap():
            return dataclasses.replace(record, time=record.time + seconds)


def _leg(leg: Leg, seconds: float, tag: str) -> Leg:
    return dataclasses.replace(
        leg,
        id=f"{tag}{leg.id}",
        address=f"{tag}{leg.address}" if leg.side == "agent" and leg.address else leg.address,
        connecting=_later(leg.connecting, seconds),
        connected=_later(leg.connected, seconds),
        secured=_later(leg.secured, seconds),
    )


def _message[M: Message](message: M, seconds: float) -> M:
    headers = tuple(
        (name, formatdate(date + seconds, usegmt=True))
        if name.lower() == "date" and (date := http_date(value)) is not None
        else (name, value)
        for name, value in message.headers
    )
    started, ended = _later(message.started, seconds), _later(message.ended, seconds)
    return dataclasses.replace(message, headers=headers, started=started, ended=ended)


def _later(time: float | None, seconds: float) -> float | None:
    return None if time is None else time + seconds


# -- and what is shown of it then ---------------------------------------------------------------------------


def cuts(records: Sequence[Record]) -> list[int]:
    """Return where a recording is cut."""
    places = range(len(records))
    return sorted(random.Random(SEED).sample(places, min(CUTS, len(places))))  # noqa: S311 - the same on every day


@pytest.mark.parametrize("capture", CAPTURES)
def test_a_part_shows_no_error_that_the_whole_does_not_show(capture: Path) -> None:
    records = records_of(capture)
    whole = errors(records)
    for cut in cuts(records):
        early, late = errors(records[:cut]), errors(records[cut:])
        assert (cut, (early | late) - whole) == (cut, frozenset())


@pytest.mark.parametrize("capture", CAPTURES)
def test_what_overlaps_may_arrive_in_any_order(capture: Path) -> None:
    records = records_of(capture)
    whole = errors(records)
    for seed in range(ORDERS):
        chance = random.Random(seed)  # noqa: S311
        assert errors(shuffled(records, chance)) == whole


def pairs() -> Iterator[tuple[Path, Path]]:
    """Return samples of different nodes, which were recorded within the minute: no clock in them seems wrong."""
    for one, other in itertools.combinations(SAMPLES, 2):
        if names(records_of(one)).isdisjoint(names(records_of(other))):
            yield one, other


def names(records: Sequence[Record]) -> set[str]:
    """Return the certnames of the errors and of the requests of a recording."""
    requests = (match(r.request.method, r.request.target) for r in records if hasattr(r, "request"))
    named = {found.certname for found in requests if found and found.certname}
    return named | {certname for certname, _ in errors(records) if certname}


@pytest.mark.parametrize(("one", "other"), [pytest.param(*pair, id="+".join(map(name_of, pair))) for pair in pairs()])
def test_two_recordings_made_together_show_what_both_show(one: Path, other: Path) -> None:
    first, second = records_of(one), records_of(other)
    both = errors(first) | errors(second)
    begins = second[0].time - first[0].time
    assert abs(begins) < SKEW
    chance = random.Random(SEED)  # noqa: S311
    for _ in range(ORDERS):
        lasts = max(record.ended for record in first) - first[0].time
        later = moved(second, chance.uniform(0, lasts) - begins, "b")
        assert errors(joined(moved(first, 0, "a"), later)) == both
