"""A stored capture, record by record: it is read to its end first, so that all is known that its records show."""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING

import msgspec
from msgspec import UNSET, UnsetType

from inspector.analysis.analyzer import Analyzer
from inspector.capture.store import Capture
from inspector.columns import Count, Number, Utc
from inspector.model import Phase, Severity
from inspector.progress import unwatched, watched
from inspector.summaries import conclusions, filters, reading, summary, wording
from inspector.summaries.filtering import Filtering
from inspector.summaries.filters import Candidate
from inspector.summaries.indexed import IndexedCapture
from inspector.summaries.summary import RecordKind
from inspector.text import utc

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from inspector.model import Finding
    from inspector.progress import Watch
    from inspector.runs.run import Run
    from inspector.summaries.summary import Brief, RunBrief, RunLike

LISTING = "listing record"
NUMBER = 7
"""Columns of a record's number."""


def lines(brief: Brief, run: RunLike | None, width: int | None) -> list[str]:
    """A record's lines, preceded by its number, which ``show`` accepts, for a terminal of some width; one line in a
    pipe."""
    prefix, below = f"{brief.seq:>5}  ", " " * NUMBER
    if width is None:
        return [f"{prefix}{wording.line(brief, run)}"]
    first, *others = wording.lines(brief, run, width - len(prefix))
    return [f"{prefix}{first}", *(f"{below}{line}" for line in others)]


def total(path: Path) -> int:
    """How many records a capture has. Raises CaptureError."""
    with Capture.open(path) as capture:
        return capture.count()


def listed(
    path: Path, text: str = "", watch: Watch = unwatched, listing: Watch = unwatched
) -> Iterator[tuple[Brief, RunBrief | None]]:
    """The records that match a filter, with their runs. Raises InspectorError.

    ``watch`` is called while the capture is read, without yielding anything, ``listing`` between the records.
    """
    filters.parse(text)  # a mistake in it is reported at once
    with IndexedCapture.whole(path) as indexed:
        if indexed is not None:
            for read in Filtering(indexed).read_briefs(text):
                listing(read.done, read.total, LISTING)
                for brief in read.found:
                    yield brief, indexed.owner_of(brief)
            return
    yield from _listed(path, text, watch, listing)


def _listed(path: Path, text: str, watch: Watch, listing: Watch) -> Iterator[tuple[Brief, RunBrief | None]]:
    """The same without an index. The run and the findings of a record are only known at the end: until then each record
    is stored in brief."""
    chosen = filters.parse(text, reading.latest(path))
    analyzer = Analyzer()
    items: list[tuple[Brief, Run | None]] = []
    with Capture.open(path) as capture:
        for step in analyzer.steps(watched(capture.records(), watch, capture.count())):
            items.append((summary.brief_of(step), step.run))
        analyzer.finish()
        # A run without a certname may have become part of another run since.
        runs = {run: run.joined or run for _, run in items if run}
        briefs = {run: conclusions.of_run(run) for run in dict.fromkeys(runs.values())}
        owners = {brief.seq: briefs[runs[run]] for brief, run in items if run}
        signs: dict[int, dict[Finding, None]] = {}
        for owner in briefs.values():
            for found in owner.findings:
                for seq in summary.marked(found, owner.number, owners):
                    signs.setdefault(seq, {})[found] = None
        for brief, _ in watched(items, listing, len(items), LISTING):
            placed = owners.get(brief.seq)
            brief.signs = summary.signs_of(signs.pop(brief.seq, ()))
            line = functools.partial(wording.line, brief, placed)
            if chosen.matches_step(Candidate(brief, placed, line, functools.partial(capture.record, brief.seq))):
                yield brief, placed


class Exchanged(msgspec.Struct):
    """Sizes of bodies."""

    sent: Count
    """Size of the request's body as on the wire, including bytes that were passed on but not recorded."""
    received: Count
    """Size of the response's body, counted in the same way."""


class Row(msgspec.Struct, kw_only=True):
    """A record in brief."""

    capture: str | UnsetType = UNSET
    """The path of the capture that contains the record, as it was named; ``follow`` has none."""
    seq: Number
    """The record's number."""
    kind: RecordKind
    """exchange: a request and its answer; handshake: one that failed; gap: traffic that could not be recorded."""
    time: Utc
    """When it began."""
    run: Number | None
    """The number of its run; null if it belongs to no run."""
    certname: str | None
    """The agent's certname, null if it is not known."""
    phase: Phase
    """The phase of an agent run, as the Puppet documentation numbers them: certificates (P1-P5), node (P6), plugins
    (P7-P8), catalog (P9), files (P10, including the filebucket), report (P11-P12); other: probes, tools and requests
    that are not Puppet's."""
    method: str | None
    """The HTTP method; null if it is not an exchange."""
    path: str | None
    """The path without its query, as sent (Latin-1); null if it is not an exchange."""
    status: int | None
    """The HTTP status; null without an answer."""
    bytes: Exchanged | None
    """null if it is not an exchange."""
    ms: float | None
    """From the first byte to the last, in milliseconds; null if it is not an exchange."""
    reason: str | None
    """Why there is no answer, why the handshake failed, or what could not be recorded."""
    not_analyzed: str | None
    """Why the record was not analyzed, or not completely; null if it was."""
    injected: str | None
    """The fault that the proxy injected on purpose (docs/faults.md); null if none was."""
    findings: list[PlainSign]
    """The findings with this record as evidence."""


class PlainSign(msgspec.Struct):
    """A finding for which a record is evidence."""

    rule: str
    """The rule's id; never reused for another rule."""
    severity: Severity
    """error: the protocol forbids it or the run fails because of it; warning: it works, but a healthy agent and master
    do not do it; notice: worth knowing."""


def row(record: Brief, run: RunBrief | None, capture: Path | None = None) -> Row:
    """A record in brief (docs/json/list.schema.json)."""
    exchange = record.kind == "exchange"
    return Row(
        capture=UNSET if capture is None else str(capture),
        seq=record.seq,
        kind=record.kind,
        time=utc(record.time),
        run=(run.number or None) if run else None,
        certname=(run.certname if run else None) or record.certname,
        phase=record.phase,
        method=record.method if exchange else None,
        path=record.target.partition("?")[0] if exchange else None,
        status=record.status,
        bytes=Exchanged(record.sent, record.received) if exchange else None,
        ms=round(record.duration * 1000, 3) if exchange else None,
        reason=record.reason or None,
        not_analyzed=record.unanalyzed or None,
        injected=record.injected or None,
        findings=[PlainSign(sign.rule, sign.severity) for sign in record.signs],
    )
