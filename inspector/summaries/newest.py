"""What the newest records of a large capture show of nodes by themselves, before all of it was read.

Only what the rest cannot change is answered: how the latest run of a node ended, if it is over and began within these
records, and its cause, if its own records show it. Whether a node is silent, since when something holds, what is over
and what other nodes show needs the rest.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from inspector.capture.store import Capture
from inspector.model import Exchange
from inspector.protocol.kinds import Kind
from inspector.runs.commands import PLUGIN_FACTS
from inspector.runs.history import Ledger
from inspector.runs.run import listing
from inspector.runs.snapshot import RunState
from inspector.summaries import conclusions
from inspector.summaries.indexed import IndexedCapture
from inspector.summaries.judgement import Recorded, judge, state_after
from inspector.summaries.reading import Reader
from inspector.text import plural

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.analysis.analyzer import Step
    from inspector.summaries.summary import RunBrief

NEWEST = 4_000
"""Records that are read and analyzed within about a second."""
MANY = 20_000
"""Records that take longer than a user wants to wait: of fewer nothing is answered before."""
MOST = 10
"""Causes that are named, each with a node."""
_FIRST = (Kind.CA_BUNDLE, Kind.NODE, Kind.ENVIRONMENT_CHECK)
"""What an agent asks for once, at the beginning of a run or of what follows the certificates."""


class Newest(NamedTuple):
    """What the newest records show."""

    records: int
    of: int
    """Records of the whole capture."""
    well: list[RunBrief]
    """The latest runs of nodes that completed without an error."""
    bad: list[RunBrief]
    """Those that did not; with a verdict if their own records show why."""

    @property
    def lines(self) -> list[str]:
        """What is answered, in words; none if nothing is."""
        if not (self.well or self.bad):
            return []
        completed = plural(len(self.well), "node completed its latest run", "nodes completed their latest runs")
        alike: dict[str, list[RunBrief]] = {}
        for run in self.bad:
            alike.setdefault(run.cause or run.outcome, []).append(run)
        causes = [f"  {_ending(runs[0])}{_others(len(runs) - 1)}" for runs in alike.values()]
        did_not = f", {len(self.bad):,} did not:" if self.bad else "."
        return [
            f"The newest {self.records:,} of {self.of:,} records show: {completed} without an error{did_not}",
            *causes[:MOST],
            *([f"  ... and {len(causes) - MOST} more causes"] if len(causes) > MOST else []),
            "All of it is being read.",
        ]


class Beginnings:
    """The records with which a run surely begins, or what follows an agent's certificates, among records that are read
    from the middle of a capture: an agent's first request, on a connection that was not there before."""

    def __init__(self) -> None:
        self._start: float | None = None
        """When the first of these records began."""
        self._seqs: set[int] = set()

    def __contains__(self, seq: int) -> bool:
        return seq in self._seqs

    def add(self, step: Step) -> None:
        """Add the next record."""
        record = step.record
        if self._start is None:
            self._start = record.time
        if not isinstance(record, Exchange) or step.match is None:
            return
        kind, connected = step.match.endpoint.kind, record.agent.connected
        first = kind in _FIRST or (kind is Kind.PLUGIN_LISTING and listing(step.match) == PLUGIN_FACTS)
        if first and connected is not None and connected >= self._start:
            self._seqs.add(record.seq)


def of_large(path: Path, now: float) -> Newest | None:
    """Return what the newest records of a capture show; None if all of it is read as soon: it has an index or is
    small. ``now`` is the present. Raises CaptureError."""
    with IndexedCapture.whole(path) as indexed:
        if indexed is not None:
            return None
    with Capture.open(path) as capture:
        return of_records(capture, now, NEWEST) if _length(capture) > MANY else None


def of_records(capture: Capture, now: float, number: int) -> Newest:
    """Return what so many records at the end of a capture show. Raises CaptureError."""
    reader = Reader(capture.path, Ledger())
    length = _length(capture)
    after = capture.last - min(number, length)
    beginnings = Beginnings()
    for record in capture.records(after):
        beginnings.add(reader.take(record))
    found = reader.finish()
    first = {run.brief.number: run.seqs[0] for run in found.runs}
    judgement = judge([Recorded(found.briefs, capture.path, capture.present(now), found.apart)], now)
    newest = Newest(min(number, length), length, [], [])
    for node in judgement.nodes.values():
        latest = node.runs[-1].run
        if latest.certname != node.name or latest.state is not RunState.OVER or first[latest.number] not in beginnings:
            continue
        verdict = latest.verdict
        into = newest.bad if state_after(latest).bad else newest.well
        if verdict is not None and (verdict.cause is None or verdict.evidence is not None):
            latest = msgspec.structs.replace(latest, verdict=None, why=None)
        into.append(latest)
    return newest


def _length(capture: Capture) -> int:
    """How many records there are. One that continues another capture does not begin with the first number; counting
    them would read all of it."""
    return capture.last - capture.first + 1 if capture.last else 0


def _others(number: int) -> str:
    return f" (and {plural(number, 'more node')})" if number else ""


def _ending(run: RunBrief) -> str:
    verdict = run.verdict
    if verdict is None:
        return f"{run.name} {conclusions.OUTCOMES[run.outcome]}"
    return f"{verdict.lead}: {verdict.cause} {verdict.reason}"
