"""A run whose parts were recorded in three places, each with a clock of its own."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

from inspector.capture.places import PLACE, corrected, corrected_leg
from inspector.capture.store import Capture
from inspector.model import Connection, Exchange, Phase
from inspector.protocol import endpoints
from tests.support import places as material
from tests.support.captures import keep
from tests.support.records import read, unnumbered

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from inspector.model import Record

CA, ONE, TWO = "ca:8140 on ca.example", "one:8140 on one.example", "two:8140 on two.example"


def sampled() -> list[Record]:
    """The records of a fresh agent's first run."""
    return unnumbered(read(material.SAMPLES / "first-run.sqlite"))


def phase_of(record: Record) -> Phase:
    assert isinstance(record, Exchange)
    found = endpoints.match(record.request.method, record.request.target)
    assert found
    return found.endpoint.phase


def off(record: Record, ahead: float) -> Record:
    """A record as a place has it whose clock is ahead by so many seconds."""
    wrong = corrected(record, -ahead)
    if isinstance(wrong, Exchange):
        legs = [corrected_leg(Connection(leg), -ahead, None).leg for leg in wrong.legs]
        return dataclasses.replace(wrong, agent=legs[0], master=legs[1] if wrong.master else None)
    return wrong


def recorded(path: Path, place: str, records: Sequence[Record]) -> Path:
    with Capture.create(path) as capture:
        capture.set_meta([(PLACE, place)])
        keep(capture, *records)
    return path


def apart(folder: Path, ahead: float) -> list[Path]:
    """A first run of which the CA's part, that up to the catalog, and the rest were recorded in three places. The
    clock of the last one is ahead."""
    parts: dict[str, list[Record]] = {CA: [], ONE: [], TWO: []}
    for record in sampled():
        phase = phase_of(record)
        late = phase in (Phase.FILES, Phase.REPORT)
        assert isinstance(record, Exchange)
        place = CA if phase is Phase.CERTIFICATES else TWO if late else ONE
        # A connection has one proxy.
        ends = [dataclasses.replace(leg, id=f"{place[:3]}-{leg.id}") for leg in record.legs]
        record = dataclasses.replace(record, agent=ends[0], master=ends[1] if record.master else None)
        parts[place].append(off(record, ahead if late else 0.0))
    return [recorded(folder / f"{place[:3].strip(':')}.sqlite", place, records) for place, records in parts.items()]
