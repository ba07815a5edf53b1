"""A recording that began late, ended early, arrived in another order, or was made together with another one."""

from __future__ import annotations

import dataclasses
from email.utils import formatdate
from typing import TYPE_CHECKING

from inspector.analysis.analyzer import Analyzer
from inspector.clocks import http_date
from inspector.model import Exchange, Gap, Handshake, Severity
from tests.support.conversations import numbered

if TYPE_CHECKING:
    import random
    from collections.abc import Iterable, Sequence

    from inspector.model import Leg, Message, Record

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


def together(one: Sequence[Record], other: Sequence[Record]) -> list[Record]:
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
