"""The timeline of a run: its records, the agent's silent times and the starts of phases. Also the time spent within
one record, and the axis on which everything is drawn."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Literal

from inspector.model import Phase, Severity
from inspector.protocol import kinds
from inspector.runs.run import PAUSE
from inspector.summaries import wording
from inspector.text import clean, plural, seconds

if TYPE_CHECKING:
    from collections.abc import Hashable, Iterable, Iterator, Sequence

    from inspector.explain.master_log.measured import MasterTime
    from inspector.runs.snapshot import Wait
    from inspector.summaries.summary import Brief, RunBrief
    from inspector.summaries.under_way import UnderWay

type EntryKind = Literal["record", "silence", "phase", "open", "fold"]
"""``open`` is a request that is not answered, ``fold`` are many records in one line."""
type Work = Literal[
    "connect", "tls", "sending", "waiting", "receiving", "proxy", "network", "queue", "serve", "compile"
]
"""The activities within the time of a record; ``proxy`` is the proxy's own share. The last four are what ``waiting``
was, as far as a master's logs say it."""
type Silence = Wait | Literal["request"]
"""Time before the certificate was requested is counted separately from waiting for it (``request``)."""

SILENCES: dict[Silence, str] = {
    "request": "generates its key and its request",
    "certificate": "waits for its certificate",
    "facts": "gathers facts",
    "applying": "applies the catalog",
    "other": "silence: cause unknown",
}
"""The agent's activity while nothing is on the wire."""
_REQUESTS = (kinds.Kind.CSR, kinds.Kind.CSR_LOOKUP)
"""The first requests of an agent that has just created its key."""
FRESH = 30.0
"""Maximum seconds between opening a connection and its first request here: an older connection was opened for
another run."""
FOLDED = {
    kinds.Kind.PLUGIN_CONTENT: "plugin",
    kinds.Kind.FILE_METADATA: "file request",
    kinds.Kind.FILE_CONTENT: "file request",
    kinds.Kind.STATIC_CONTENT: "file request",
}
"""Requests of which a run has hundreds, and what many of them in a row are called."""
FEWEST = 20
"""Records of one kind in a row from which they are folded into one line."""
SLOW = 2.0
"""Seconds from which one of them is named, and a silence between them is not folded."""
SILENT_SHARE = 0.5
"""A silence longer than everything else is drawn as long as this share of everything else."""


@dataclass(frozen=True)
class Entry:
    """One event of a run."""

    kind: EntryKind
    seq: int | None
    """The record's number; None for a silence and for a phase."""
    brief: Brief | None
    """The record; of a phase, the record with which it begins; None for a silence."""
    began: float
    ended: float
    text: str
    """A description, without control characters."""

    @property
    def key(self) -> Hashable:
        """Identifies the entry within the run: a record's number, or kind and start."""
        return self.seq if self.seq is not None else (self.kind, self.began)


@dataclass(frozen=True)
class Piece:
    """A part of a record's time."""

    kind: Work
    began: float
    ended: float


def entries(run: RunBrief, briefs: Iterable[Brief]) -> list[Entry]:
    """A run's records in the order in which they began, with the agent's silent times and a note where a phase begins.

    The silent times are those of ``Run.waits``, with one exception: an agent whose handshake failed, or that has not
    requested a certificate yet, is not waiting for a certificate.
    """
    result: list[Entry] = []
    last: Brief | None = None
    phase: Phase | None = None
    noted: Phase | None = None
    ended = -math.inf
    usable: bool | None = None  # whether the latest response was a catalog
    requested = False  # whether the certificate was requested
    for brief in sorted(briefs, key=lambda brief: (_finite(brief.time, run.started), brief.seq)):
        time = _finite(brief.time, run.started)
        upto = max(time, _finite(brief.ended, time))
        pause = time - ended
        if math.isfinite(pause) and pause >= PAUSE:
            refused = "handshake" in (brief.kind, last.kind if last else None)
            what: Silence = "other" if refused else _silence(phase, brief.phase, usable=usable)
            if what == "certificate" and not requested and not _polls(last, brief):
                what = "request" if brief.request_kind in _REQUESTS else "other"
            result.append(Entry("silence", None, None, ended, time, SILENCES[what]))
        begins = brief.phase is not Phase.OTHER and brief.phase is not noted
        # A handshake that fails in the middle of a run does not start the certificates phase again.
        if begins and (brief.kind == "exchange" or noted is None):
            noted = brief.phase
            result.append(Entry("phase", None, brief, time, time, str(noted)))
        result.append(Entry("record", brief.seq, brief, time, upto, _words(brief, run.certname)))
        ended = max(ended, upto)
        last, phase = brief, brief.phase if brief.phase is not Phase.OTHER else phase
        # A lookup that succeeds: the request was sent before this run.
        requested |= brief.request_kind is kinds.Kind.CSR or (
            brief.request_kind is kinds.Kind.CSR_LOOKUP and brief.status == 200
        )
        if brief.request_kind is kinds.Kind.CATALOG:
            usable = brief.status is not None and 200 <= brief.status < 300
    return result


def under_way(run: RunBrief, doing: UnderWay[RunBrief]) -> list[Entry]:
    """What comes after the records of a run that is not over: the agent's silence, and the request under way."""
    began = max(run.ended, doing.since)
    until = max(began, doing.since + doing.seconds)
    if doing.request is None:
        return [Entry("silence", None, None, began, until, doing.activity)]
    before = SILENCES[_silence(run.phase, doing.phase, usable=run.activity != "uncompiled")]
    pause = [Entry("silence", None, None, run.ended, began, before)] if began - run.ended >= PAUSE else []
    return [*pause, Entry("open", None, None, began, until, doing.activity)]


@dataclass(frozen=True)
class Fold(Entry):
    """Many requests of one kind in a row, in one line."""

    inside: tuple[Entry, ...] = ()
    """Its lines, and those of the silences between them."""

    @property
    def briefs(self) -> list[Brief]:
        """Its records."""
        return [*{entry.brief.seq: entry.brief for entry in self.inside if entry.brief}.values()]

    @property
    def took(self) -> float:
        """Seconds that its records took, without the silences."""
        return sum(brief.duration for brief in self.briefs)


def folds(timeline: Iterable[Entry]) -> Iterator[Fold]:
    """Fold what a run has hundreds of, as far as nothing is wrong with it: those lines stay."""
    row: list[Entry] = []
    what = ""
    for entry in (*timeline, None):
        alike = _folded(entry)
        if entry is not None and what and (alike == what or _pauses(entry)):
            row.append(entry)
            continue
        while row and row[-1].kind == "silence":
            row.pop()
        if len({each.seq for each in row if each.seq is not None}) >= FEWEST:
            yield _fold(row, what)
        row, what = ([entry], alike) if entry is not None and alike else ([], "")


def _fold(row: list[Entry], what: str) -> Fold:
    took = {entry.brief.seq: entry.brief.duration for entry in row if entry.brief}
    slowest = max(took.values())
    words = plural(len(took), what) + (f", the slowest {seconds(slowest)}" if slowest >= SLOW else "")
    return Fold("fold", None, None, row[0].began, max(entry.ended for entry in row), words, tuple(row))


def _pauses(entry: Entry) -> bool:
    return entry.kind == "silence" and entry.ended - entry.began < SLOW


def _folded(entry: Entry | None) -> str:
    """What a line is folded into; empty: it stays."""
    brief = entry.brief if entry is not None and entry.kind == "record" else None
    if brief is None or brief.request_kind is None or brief.status not in range(200, 300):
        return ""
    wrong = any(sign.severity is Severity.ERROR for sign in brief.signs)
    return "" if wrong else FOLDED.get(brief.request_kind, "")


def _finite(time: float, instead: float) -> float:
    return time if math.isfinite(time) else instead


def _polls(last: Brief | None, brief: Brief) -> bool:
    """Whether the agent polls for its certificate: the request was sent before the capture of the run began."""
    return last is not None and last.request_kind is brief.request_kind is kinds.Kind.CERTIFICATE


def _silence(before: Phase | None, after: Phase, *, usable: bool | None) -> Wait:
    if before is after is Phase.CERTIFICATES:
        return "certificate"
    if after is Phase.CATALOG:
        return "facts"
    if before in (Phase.CATALOG, Phase.FILES) and after in (Phase.FILES, Phase.REPORT):
        return "other" if usable is False else "applying"
    return "other"


def _words(brief: Brief, certname: str | None) -> str:
    match brief.kind:
        case "exchange":
            return f"{clean(brief.method)} {wording.path_of(brief, certname, 400)}"
        case "handshake":
            return f"TLS refused: {wording.refusal(brief.reason, brief.alert, brief.alert_by)}"
        case "gap":
            return f"gap: {clean(brief.reason)}"


# -- time within one record ---------------------------------------------------------------------------------


def opening(entries: Iterable[Entry]) -> dict[int, tuple[bool, bool]]:
    """Whether each record is the first of its run on the agent's connection, and on the master's."""
    legs: set[str] = set()
    return {entry.brief.seq: opens(entry.brief, legs) for entry in entries if entry.kind == "record" and entry.brief}


def opens(brief: Brief, legs: set[str]) -> tuple[bool, bool]:
    """Whether a record is the first on the agent's connection, and on the master's. ``legs`` are the connections of
    earlier records of its run; those of this one are added."""
    return (
        _first(brief.leg, legs) and not _old(brief.time, brief.times.agent_connected),
        _first(brief.master, legs) and not _old(brief.time, brief.times.master_connected),
    )


def _old(time: float, connected: float | None) -> bool:
    return connected is not None and time - connected > FRESH


def _first(leg: str | None, legs: set[str]) -> bool:
    if leg is None or leg in legs:
        return False
    legs.add(leg)
    return True


def pieces(
    brief: Brief, *, opens_agent_leg: bool, opens_master_leg: bool, master: MasterTime | None = None
) -> list[Piece]:
    """The parts of a record's time, in order and without overlap; where two overlap, the earlier one wins.

    Connecting and TLS appear only at a connection's first exchange. Of the agent's connection only the time when it was
    accepted is known. The agent's own time between TLS and its request is not a part. ``master``, from its logs,
    divides the time of waiting for it.
    """
    times = brief.times
    known: list[tuple[Work, float | None, float | None]] = []
    if brief.kind == "handshake":
        known.append(("tls", _or(times.agent_connected, times.master_connected), brief.ended))
    if brief.kind != "exchange":
        return _laid(known)
    end = _or(times.response_ended, brief.ended)
    begun = _or(times.request_began, brief.time)
    whole = _or(times.request_ended, begun)
    if opens_agent_leg:
        known.append(("tls", times.agent_connected, times.agent_secured))
    known.append(("sending", begun, whole))
    if opens_master_leg:
        reached = times.master_connected
        known.append(("connect", times.master_connecting, _or(reached, end)))
        # A connection without encryption but with a response had no TLS.
        secured = _or(times.master_secured, None if brief.status is not None else end)
        known.append(("tls", reached, secured))
    moments = (whole, times.master_connected, times.master_secured)
    ready = max((at for at in moments if at is not None and math.isfinite(at)), default=None)
    answered = times.response_began
    if brief.master is not None or brief.status is not None:
        known.append(("waiting", ready, _or(answered, end)))
    known.append(("receiving", answered, end))
    laid = _laid(known)
    if master:
        laid = _divided(laid, master)
    if begun is None or end is None or not math.isfinite(begun) or not math.isfinite(end):
        return laid
    return _filled(laid, begun, end)


def _or(time: float | None, other: float | None) -> float | None:
    return time if time is not None and math.isfinite(time) else other


def _laid(known: list[tuple[Work, float | None, float | None]]) -> list[Piece]:
    """The parts whose start and end are known; none begins before the previous one ended."""
    spans = [
        (began, ended, kind)
        for kind, began, ended in known
        if began is not None and ended is not None and math.isfinite(began) and math.isfinite(ended)
    ]
    result: list[Piece] = []
    at = -math.inf
    for began, ended, kind in sorted(spans, key=lambda span: span[0]):
        if ended > max(began, at):
            result.append(Piece(kind, max(began, at), ended))
            at = ended
    return result


def _divided(laid: list[Piece], master: MasterTime) -> list[Piece]:
    """Divide the time of waiting into what a master's logs say that it was."""
    receiving = sum(piece.ended - piece.began for piece in laid if piece.kind == "receiving")
    result: list[Piece] = []
    for piece in laid:
        if piece.kind != "waiting":
            result.append(piece)
            continue
        at = piece.began
        for kind, took in master.parts(piece.ended - piece.began, receiving):
            result.append(Piece(kind, at, min(at + took, piece.ended)))
            at = result[-1].ended
        if result and at > piece.began:
            result[-1] = Piece(result[-1].kind, result[-1].began, piece.ended)  # what rounding left
    return result


def _filled(laid: list[Piece], began: float, ended: float) -> list[Piece]:
    """Assign the unexplained time between the request's first byte and the response's last byte to the proxy."""
    result: list[Piece] = []
    at = began
    for piece in laid:
        if piece.began > at:
            result.append(Piece("proxy", at, piece.began))
        result.append(piece)
        at = max(at, piece.ended)
    if ended > at:
        result.append(Piece("proxy", at, ended))
    return result


# -- the axis -----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Axis:
    """Maps times to positions from 0 to 1: linear, except that a silence longer than everything else is shortened."""

    _moments: list[float] = field(default_factory=list)
    _places: list[float] = field(default_factory=list)
    shortened: list[tuple[float, float]] = field(default_factory=list)
    """The silences (start and end) that are not to scale."""

    @classmethod
    def of(cls, spans: Iterable[tuple[float, float]]) -> Axis:
        """The axis for events in these spans of time."""
        busy: list[tuple[float, float]] = []
        for began, ended in sorted(span for span in spans if all(map(math.isfinite, span))):
            if busy and began <= busy[-1][1]:
                busy[-1] = busy[-1][0], max(busy[-1][1], ended)
            else:
                busy.append((began, max(began, ended)))
        if not busy:
            return cls()
        gaps = [after[0] - before[1] for before, after in pairwise(busy)]
        work = sum(ended - began for began, ended in busy)
        most = _most(gaps, work * SILENT_SHARE) if 0 < work < sum(gaps) else math.inf
        moments, lengths, shortened = [busy[0][0]], [0.0], []
        for at, (began, ended) in enumerate(busy):
            if at:
                moments.append(began)
                lengths.append(lengths[-1] + min(gaps[at - 1], most))
                if gaps[at - 1] > most:
                    shortened.append((busy[at - 1][1], began))
            moments.append(ended)
            lengths.append(lengths[-1] + ended - began)
        whole = lengths[-1] or 1.0
        return cls(moments, [length / whole for length in lengths], shortened)

    def place(self, moment: float) -> float:
        """The position of a time, from 0 to 1; times beyond the ends are at the ends."""
        return _between(self._moments, self._places, moment)

    def moment(self, place: float) -> float:
        """The time at a position."""
        return _between(self._places, self._moments, place)

    def short(self, began: float, ended: float) -> bool:
        """Whether a silence in this span is not to scale."""
        at = bisect_right(self.shortened, (ended, -math.inf)) - 1
        return at >= 0 and self.shortened[at][1] > began


def _most(gaps: Sequence[float], room: float) -> float:
    """The length to which gaps must be shortened so that their sum does not exceed this."""
    left = len(gaps)
    for gap in sorted(gaps):
        if gap * left >= room:
            return room / left
        room, left = room - gap, left - 1
    return math.inf


def _between(given: Sequence[float], wanted: Sequence[float], value: float) -> float:
    if not given:
        return 0.0
    at = bisect_right(given, value)
    if at == 0:
        return wanted[0]
    if at == len(given):
        return wanted[-1]
    low, high = given[at - 1], given[at]
    return wanted[at - 1] + (wanted[at] - wanted[at - 1]) * (value - low) / (high - low)


# -- lines of a sequence diagram ---------------------------------------------------------------------------


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
