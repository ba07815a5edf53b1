"""The places of several captures, each with a clock of its own: before the CA, before each compiler, on the node.

How far two clocks are apart is measured by what both places recorded, and by what cannot have been otherwise:

- a connection from one proxy to the next is in both captures: what the first sent the second got later;
- within one run (transaction_uuid) the request for the node comes before the one for the catalog, and that before the
  report; an agent has its certificate before it presents it;
- a master stores a catalog or a report in PuppetDB between the agent's request and its answer;
- two places before the same master have its clock in common, by the dates of its answers, and two that one run
  passes the agent's, by the times in its facts and its report.

Each observation bounds the difference from one side or from both (``inspector.clocks.Offset``).
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import itertools
import math
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import msgspec

from inspector import clocks
from inspector.capture.store import Capture
from inspector.clocks import Offset
from inspector.errors import CaptureError
from inspector.model import Connection, Exchange, Gap, Handshake, Leg, Phase
from inspector.protocol import documents as d
from inspector.protocol.endpoints import match, transaction_uuid
from inspector.protocol.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from inspector.model import Present, Record, Request, Response
    from inspector.protocol.endpoints import Match

PLACE, PLACES, STANDS = "place", "places", " on "
"""The items of a capture's metadata: where its proxy stands; the places that were merged, with their clocks.
In the first one, between the address on which a proxy listens and its host."""
MOST = 50
"""Places whose clocks are compared; further ones are taken as they are."""
RUNS = 20_000
"""Runs, certificates and masters that are remembered while places are compared; later ones do not count."""
CONNECTIONS = 200_000
"""Connections between proxies that are looked for."""
LONGEST = 255
"""Characters of a place's name."""
REQUESTS = 100
"""Requests of a connection whose times are compared."""
BOTH, DATES, AGENTS, ORDER = (
    "what both recorded", "the dates of the same master", "the clocks of the same agents", "the order of requests",
)  # fmt: skip
"""By what clocks are compared, the most precise first."""
COUNTS = "the others are compared with its clock"
APPLIED = "Applied catalog in "
"""What an agent logs last, after all files are fetched."""
_ORDER = {Kind.NODE: 0, Kind.CATALOG: 1, Kind.REPORT: 2}
"""What an agent asks with its transaction_uuid, in this order."""
_STORED = {"replace catalog": Kind.CATALOG, "store report": Kind.REPORT}
"""What a master stores in PuppetDB before it answers such a request."""


class PlaceClock(msgspec.Struct, frozen=True):
    """A place of a merged capture, and how its clock was."""

    name: str
    """Where the proxy listens and on which host; of `run` and `tap` the host alone."""
    ahead: float
    """Seconds that its times were ahead, and are corrected by; 0: they are as they were recorded."""
    low: float | None
    """How far its clock was ahead of the others', at least, in seconds; null: not known."""
    high: float | None
    """At most; null: not known."""
    by: str | None
    """What its clock was compared by, and with which place; null: by nothing."""

    def __str__(self) -> str:
        if self.by is None:
            return f"{self.name}: its clock could not be compared"
        low, high = (math.inf * sign if bound is None else bound for bound, sign in ((self.low, -1), (self.high, 1)))
        if self.by == COUNTS:
            return f"{self.name}: {COUNTS}"
        if self.ahead:
            off = f"its clock was {_length(abs(self.ahead))} {'ahead' if self.ahead > 0 else 'behind'}"
            return f"{self.name}: {off} ({_between(low, high)}), which is corrected; by {self.by}"
        return f"{self.name}: its clock agrees ({_between(low, high)}); by {self.by}"


def _length(seconds: float) -> str:
    return f"{seconds:.3f} s" if seconds < 1 else f"{seconds:.1f} s"


def _between(low: float, high: float) -> str:
    if math.isinf(low) or math.isinf(high):
        return f"at least {low:+.3f} s" if math.isinf(high) else f"at most {high:+.3f} s"
    return f"{low:+.3f} to {high:+.3f} s"


def place_of(capture: Capture) -> str | None:
    """Return where a capture was recorded; None if it does not say so."""
    return capture.meta().get(PLACE, "")[:LONGEST] or None


def several(captures: Sequence[Path]) -> bool:
    """Whether captures are those of several proxies that stay where they are; one that cannot be read is of none. What
    `run` records beside a proxy is read by itself."""
    found = set[str]()
    for path in captures if len(captures) > 1 else ():
        with contextlib.suppress(CaptureError), Capture.open(path) as capture:
            found.add(place_of(capture) or "")
    return sum(STANDS in place for place in found) > 1


def recorded_now(captures: Sequence[Path], now: float) -> bool:
    """Whether a proxy writes one of some captures."""
    for path in captures:
        with contextlib.suppress(CaptureError), Capture.open(path) as capture:
            if capture.present(now).recording == "open":
                return True
    return False


def clocks_of(meta: dict[str, str]) -> list[PlaceClock]:
    """Return the places of a merged capture by its metadata; none if they cannot be read."""
    try:
        return msgspec.json.decode(meta.get(PLACES, "[]"), type=list[PlaceClock])
    except (msgspec.MsgspecError, UnicodeError):
        return []


# -- what is measured -----------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Course:
    """What passed on one connection: enough to find it in another capture, and to compare the times."""

    certificates: tuple[bytes, bytes]
    """Digests of the server's and of the client's certificate."""
    began: float
    content: bytes = b""
    """Digest of all requests in their order."""
    times: list[tuple[float, float]] = field(default_factory=list)
    masters: list[str] = field(default_factory=list)
    """The connection to the master that answered each; of an agent's connection only."""


type _Requests = Mapping[tuple[str, int], tuple[float, float]]
"""By place and position in a run (``_ORDER``): start and end of a request."""


class Link(NamedTuple):
    """A connection between two proxies, which both recorded."""

    outer: tuple[int, str]
    """The capture of the proxy nearer to the agent, and its connection to the other."""
    inner: tuple[int, str]
    masters: tuple[str, ...]
    """The connection of the inner proxy to the master that answered each request."""


@dataclass(slots=True)
class Comparison:
    """What the records of several captures say of the clocks of their places, and which connections are the same."""

    places: Sequence[str | None]
    """The place of each capture."""
    links: list[Link] = field(default_factory=list)
    _bounds: dict[tuple[str, str], dict[str, Offset]] = field(default_factory=dict)
    """By pair of places and kind of observation: how far the first one's clock is ahead of the other's."""
    _asked: dict[str, dict[tuple[str, int], tuple[float, float]]] = field(default_factory=dict)
    """By transaction_uuid: start and end of each place's requests of an order."""
    _stored: dict[str, dict[tuple[str, int], tuple[float, float]]] = field(default_factory=dict)
    """By transaction_uuid: start and end of the request that stored a catalog or a report, at each place."""
    _submitted: dict[str, tuple[str, str, float]] = field(default_factory=dict)
    """By certname: where a key was submitted, the key, and when that was answered."""
    _issued: dict[bytes, tuple[str, float]] = field(default_factory=dict)
    """By certificate: where and when its key was submitted."""
    _presented: dict[bytes, dict[str, float]] = field(default_factory=dict)
    """By an agent's certificate: when each place had it first."""
    _dates: dict[bytes, dict[str, Offset]] = field(default_factory=dict)
    """By a master's certificate: how far its clock is ahead of each place's."""
    _agents: dict[str, dict[str, Offset]] = field(default_factory=dict)
    """By transaction_uuid: how far the agent's clock is ahead of each place's."""
    _latest: dict[tuple[str, bytes], tuple[Phase, float]] = field(default_factory=dict)
    """By place and certificate: the phase of an agent's latest request, and when that was answered."""
    _courses: dict[tuple[int, str], _Course] = field(default_factory=dict)

    def add(self, capture: int, record: Record) -> None:
        """Add a record of a capture, in its order."""
        place = self.places[capture]
        if place is None or isinstance(record, Gap):
            return
        leg = record.agent if isinstance(record, Exchange) else record.leg
        if leg.side == "agent" and leg.peer_chain and leg.secured is not None:
            known = _room(self._presented, _digest(leg.peer_chain[0]))
            known.setdefault(place, leg.secured)
        if isinstance(record, Handshake):
            return
        self._follow(capture, record.agent, record)
        if record.master:
            self._follow(capture, record.master, record)
        response = record.response
        if response is None or record.error is not None:
            return
        date = clocks.of_date_header(response.header("date"), record.request.ended, response.started)
        if date and record.master and record.master.peer_chain:
            dates = _room(self._dates, _digest(record.master.peer_chain[0]))
            dates[place] = clocks.combined(dates.get(place), date) or date
        found = match(record.request.method, record.request.target)
        if found and found.endpoint.kind is Kind.PUPPETDB_COMMAND:
            self._store(place, record, found)
        elif found and response.status < 300:
            self._order(place, record, found)

    def _follow(self, capture: int, leg: Leg, exchange: Exchange) -> None:
        course = self._courses.get((capture, leg.id))
        if course is None:
            server, client = (leg.own_chain, leg.peer_chain) if leg.side == "agent" else (leg.peer_chain, leg.own_chain)
            if len(self._courses) >= CONNECTIONS or not server:
                return
            certificates = _digest(server[0]), _digest(client[0]) if client else b""
            course = self._courses[capture, leg.id] = _Course(certificates, leg.secured or exchange.time)
        request = exchange.request
        line = f"{request.method} {request.target}".encode(errors="replace")
        course.content = _digest(course.content + _digest(line) + _digest(request.body))
        if len(course.times) < REQUESTS:
            course.times.append((exchange.time, exchange.ended))
        if leg.side == "agent":
            course.masters.append(exchange.master.id if exchange.master else "")

    def _store(self, place: str, exchange: Exchange, found: Match) -> None:
        command = found.endpoint.request(exchange.request)
        if isinstance(command, d.Command) and command.command in _STORED and command.transaction_uuid:
            order = _ORDER[_STORED[command.command]]
            _room(self._stored, command.transaction_uuid)[place, order] = exchange.time, exchange.ended

    def _order(self, place: str, exchange: Exchange, found: Match) -> None:
        kind, endpoint = found.endpoint.kind, found.endpoint
        agent = place, _digest(exchange.agent.peer_chain[0]) if exchange.agent.peer_chain else b""
        before = self._latest.pop(agent, None)
        if before is not None or len(self._latest) < RUNS:
            self._latest[agent] = endpoint.phase, exchange.ended
        if kind in _ORDER:
            document = endpoint.request(exchange.request)
            if uuid := transaction_uuid(found, document):
                _room(self._asked, uuid)[place, _ORDER[kind]] = exchange.time, exchange.ended
                if ahead := _agents_clock(document, before, exchange.request.started):
                    _room(self._agents, uuid)[place] = ahead
        elif kind is Kind.CSR and found.certname:
            read = endpoint.request(exchange.request)
            if isinstance(read, d.CertificateRequest) and read.key and len(self._submitted) < RUNS:
                self._submitted[found.certname] = place, read.key, exchange.ended
        elif kind is Kind.CERTIFICATE and exchange.response and (asked := self._submitted.get(found.certname or "")):
            given = endpoint.response(exchange.response)
            # A certificate that was there before would be for another key, or its request would have been refused.
            if isinstance(given, d.Certificates) and given.certificates[0].key == asked[1] and asked[0] == place:
                _room(self._issued, _digest(given.certificates[0].der), (place, asked[2]))

    # -- what follows --------------------------------------------------------------------------------------

    def clocks(self) -> list[PlaceClock]:
        """Return how the clock of each place was, and find the connections that two captures have (``links``)."""
        for uuid, asked in self._asked.items():
            self._compare_run(asked, self._stored.get(uuid, {}))
        for certificate, (place, submitted) in self._issued.items():
            for other, secured in self._presented.get(certificate, {}).items():
                self._bound(place, other, Offset(submitted - secured, math.inf), ORDER)
        for by, known in ((DATES, self._dates), (AGENTS, self._agents)):
            for there in known.values():
                for (one, ahead), (other, also) in itertools.combinations(there.items(), 2):
                    self._bound(one, other, Offset(also.low - ahead.high, also.high - ahead.low), by)
        self._link()
        names = [name for name in dict.fromkeys(self.places) if name is not None]
        return _judged(names, {pair: _agreed(found) for pair, found in self._bounds.items()})

    def _compare_run(self, asked: _Requests, stored: _Requests) -> None:
        """Compare the places that one run passed, and those that PuppetDB's requests passed which it caused."""
        for (one, order), (began, answered) in asked.items():
            for (other, later), (started, _) in asked.items():
                if order < later:
                    self._bound(one, other, Offset(answered - started, math.inf), ORDER)
            for (other, same), (started, ended) in stored.items():
                if order == same:
                    self._bound(one, other, Offset(began - started, answered - ended), ORDER)

    def _link(self) -> None:
        sides: dict[tuple[object, ...], tuple[list[tuple[int, str]], list[tuple[int, str]]]] = {}
        for key, course in sorted(self._courses.items(), key=lambda item: item[1].began):
            what = course.certificates, course.content, len(course.times)
            sides.setdefault(what, ([], []))[bool(course.masters)].append(key)
        for outers, inners in sides.values():
            pairs = list(zip(outers, inners, strict=False)) if len(outers) == len(inners) else []
            for outer, inner in pairs if all(self.places[o[0]] != self.places[i[0]] for o, i in pairs) else ():
                there = self._courses[inner]
                self.links.append(Link(outer, inner, tuple(there.masters)))
                for (began, ended), (later, sooner) in zip(self._courses[outer].times, there.times, strict=False):
                    one, other = (self.places[capture] or "" for capture, _ in (outer, inner))
                    self._bound(one, other, Offset(began - later, ended - sooner), BOTH)

    def _bound(self, one: str, other: str, ahead: Offset, by: str) -> None:
        """Add an observation of how far a place's clock is ahead of another's."""
        if one == other or math.isnan(ahead.low) or math.isnan(ahead.high):
            return
        if other < one:
            one, other, ahead = other, one, Offset(-ahead.high, -ahead.low)
        known = self._bounds.setdefault((one, other), {})
        before = known.get(by, Offset(-math.inf, math.inf))
        known[by] = Offset(max(before.low, ahead.low), min(before.high, ahead.high))


def _agents_clock(document: d.Document | None, before: tuple[Phase, float] | None, now: float | None) -> Offset | None:
    """Return how far an agent's clock is ahead of a place's, by what it sends after an answer there."""
    if isinstance(document, d.CatalogRequest) and isinstance(document.facts, d.Facts):
        return clocks.of_timestamp(document.facts.timestamp, before[1] if before else None, now)
    if not isinstance(document, d.Report):
        return None
    written = next((line.time for line in reversed(document.logs) if line.message.startswith(APPLIED)), None)
    if written and before and before[0] in (Phase.CATALOG, Phase.FILES):
        return clocks.of_timestamp(written, before[1], now)
    return clocks.at_least(clocks.moment(document.time), now)


def _room[K, V](known: dict[K, V], key: K, new: V | None = None) -> V:
    """Return what is known by a key; where there is no room for another one, what is forgotten again."""
    if key in known:
        return known[key]
    value: Any = {} if new is None else new
    if len(known) < RUNS:
        known[key] = value
    return cast("V", value)


def _digest(data: bytes) -> bytes:
    return hashlib.sha256(data).digest()


def _agreed(found: Mapping[str, Offset]) -> tuple[Offset, str]:
    """Return what all observations of two clocks allow, and the kind that bounds it best. Where they contradict each
    other a clock was set meanwhile: it was between the one and the other."""
    ordered = {
        by: Offset(*sorted((found[by].low, found[by].high))) for by in (BOTH, DATES, AGENTS, ORDER) if by in found
    }
    best = min(ordered, key=lambda by: ordered[by].uncertainty)
    low = max(offset.low for offset in ordered.values())
    high = min(offset.high for offset in ordered.values())
    return (Offset(low, high) if low <= high else ordered[best]), best


type _Known = Mapping[tuple[str, str], tuple[Offset, str]]


def _judged(names: Sequence[str], known: _Known) -> list[PlaceClock]:
    """Return the clocks of places, by the one that most of the others agree with."""

    def agreeing(name: str) -> int:
        return sum(offset.low <= 0 <= offset.high for offset, _, _ in _measured(name, names, known).values())

    reference = max(names[:MOST], key=agreeing)  # the first one of them
    measured = _measured(reference, names[:MOST], known)
    found = []
    for name in names:
        if name == reference or name not in measured:
            found.append(PlaceClock(name, 0.0, None, None, COUNTS if name == reference else None))
            continue
        offset, by, other = measured[name]
        low, high = (bound if math.isfinite(bound) else None for bound in (offset.low, offset.high))
        nearest = next((bound for bound in (low, high) if bound is not None), 0.0)
        ahead = 0.0 if offset.low <= 0 <= offset.high else offset.seconds if offset.known else nearest
        ahead = ahead if abs(ahead) <= clocks.LAST else 0.0  # a damaged capture may have any times
        found.append(PlaceClock(name, ahead, low, high, f"{by} as at {other}"))
    return found


def _measured(reference: str, names: Sequence[str], known: _Known) -> dict[str, tuple[Offset, str, str]]:
    """Return how far the clock of each place is ahead of one: by the most precise way from place to place."""
    measured = {reference: (Offset(0.0, 0.0), "", "")}
    while True:
        ways = []
        for (one, other), (offset, by) in known.items():
            if other in measured and one not in measured:
                ways.append((offset.uncertainty, one, other, offset, by))
            elif one in measured and other not in measured:
                ways.append((offset.uncertainty, other, one, Offset(-offset.high, -offset.low), by))
        ways = [way for way in ways if way[1] in names]
        if not ways:
            del measured[reference]
            return measured
        _, name, other, offset, by = min(ways, key=lambda way: way[:3])
        there = measured[other][0]
        measured[name] = Offset(there.low + offset.low, there.high + offset.high), by, other


# -- what is corrected ----------------------------------------------------------------------------------------


def corrected[R: Exchange | Handshake | Gap](record: R, ahead: float) -> R:
    """Return a record as if the clock of its place, which was so many seconds ahead, had been right. Its connections
    are corrected by ``corrected_leg``."""
    if not ahead:
        return record
    if isinstance(record, Gap):
        return dataclasses.replace(record, time=record.time - ahead)
    if isinstance(record, Handshake):
        master = None if record.master_ahead is None else record.master_ahead + ahead
        return dataclasses.replace(record, time=record.time - ahead, master_ahead=master)
    response = _earlier(record.response, ahead, "started", "ended") if record.response else None
    record = dataclasses.replace(record, request=_earlier(record.request, ahead, "started", "ended"), response=response)
    return _earlier(record, ahead, "failed")


def corrected_leg(connection: Connection, ahead: float, place: str | None) -> Connection:
    """Return a connection with its place, as if the clock there had been right."""
    leg = dataclasses.replace(connection.leg, place=connection.leg.place or place)
    closed = connection.closed
    if ahead:
        leg = _earlier(leg, ahead, "connecting", "connected", "secured")
        closed = dataclasses.replace(closed, at=closed.at - ahead) if closed else None
    return Connection(leg, closed)


def corrected_present(present: Present, ahead: float, names: Mapping[str, str]) -> Present:
    """Return what is under way at a place as if the clock there had been right; ``names`` are the new names of
    connections that have others. Of a place whose clock was off nobody knows what is under way now."""
    if present.recording == "open" and ahead:
        present = dataclasses.replace(present, recording="cut off")
    return dataclasses.replace(
        present,
        time=present.time - ahead if present.time else 0.0,
        requests=tuple(
            dataclasses.replace(each, leg=names.get(each.leg, each.leg), time=each.time - ahead)
            for each in present.requests
        ),
        connections=tuple(
            dataclasses.replace(
                each,
                leg=names.get(each.leg, each.leg),
                connected=each.connected - ahead,
                last=each.last - ahead if each.last else 0.0,
            )
            for each in present.connections
        ),
    )


def _earlier[T: Exchange | Leg | Request | Response](value: T, ahead: float, *names: str) -> T:
    times = {name: time - ahead for name in names if (time := getattr(value, name)) is not None}
    return dataclasses.replace(value, **times)
