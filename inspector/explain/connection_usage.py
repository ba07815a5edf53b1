"""The connections of one run: the agent's, and below each the connections to the master that served it."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING, Literal, NamedTuple

from inspector.protocol import x509

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from inspector.model import Closed, Connection, Leg, Phase, Side
    from inspector.summaries.summary import Brief, Party

type BarCell = Literal["none", "handshake", "life", "failed"] | Phase
"""The content of a cell of a connection's bar; a phase means a request."""


class RequestTimes(NamedTuple):
    """One request on a connection."""

    seq: int
    began: float
    ended: float
    phase: Phase


@dataclass(slots=True)
class ConnectionUse:
    """One connection, agent to proxy or proxy to master, with its requests."""

    id: str
    side: Side
    agent: str
    """The agent's connection that it served; its own id for an agent's connection."""
    leg: Leg | None
    """None: not in the capture."""
    closed: Closed | None = None
    requests: list[RequestTimes] = field(default_factory=list)
    failed: Brief | None = None
    """The handshake that failed on it."""
    identities: dict[str, None] = field(default_factory=dict)
    """Certnames of the identities used towards the master."""
    unused_because: str | None = None
    """Why no identity was used though the agent has a certificate."""

    @property
    def opened(self) -> float:
        """The time of its first event."""
        leg = self.leg
        moment = (leg.connecting or leg.connected or leg.secured) if leg else None
        if moment is not None:
            return moment
        return self.failed.time if self.failed else self.requests[0].began if self.requests else 0.0

    @property
    def ended(self) -> float:
        """When it was closed, or the time of its last event."""
        moments = [self.opened, *(request.ended for request in self.requests)]
        if self.failed:
            moments.append(self.failed.ended)
        return self.closed.at if self.closed else max(moments)

    @property
    def tcp(self) -> float | None:
        """Seconds to connect; unknown for the agent's connections."""
        leg = self.leg
        return leg.connected - leg.connecting if leg and leg.connected and leg.connecting else None

    @property
    def tls(self) -> float | None:
        """Seconds of the handshake."""
        leg = self.leg
        return leg.secured - leg.connected if leg and leg.secured and leg.connected else None

    @property
    def idle(self) -> list[float]:
        """Seconds of silence between requests, and before it was closed."""
        ends = [max(0.0, after.began - before.ended) for before, after in pairwise(self.requests)]
        if self.requests and self.closed:
            ends.append(max(0.0, self.closed.at - self.requests[-1].ended))
        return ends

    @property
    def shown(self) -> str | None:
        """The subject of the certificate presented by the peer; None: none."""
        return _subject(self.leg.peer_chain) if self.leg else None

    @property
    def presented(self) -> str | None:
        """The subject of the certificate presented by the proxy; None: none."""
        return _subject(self.leg.own_chain) if self.leg else None

    @property
    def closer(self) -> Party | None:
        """Who closed it; None: not known, or it is still open."""
        if self.closed is None or self.closed.by is None:
            return None
        return "proxy" if self.closed.by == "proxy" else self.side

    @property
    def seq(self) -> int | None:
        """The first record about it."""
        seqs = [request.seq for request in self.requests] + ([self.failed.seq] if self.failed else [])
        return min(seqs, default=None)


class ConnectionTotals(NamedTuple):
    """Totals of all connections of a run."""

    agent: int
    master: int
    requests: int
    failed: int
    tls: float
    """Seconds of all the agent's handshakes together."""


def connections(briefs: Iterable[Brief], known: Mapping[str, Connection]) -> list[ConnectionUse]:
    """The connections of a run, in the order in which they were first used."""
    found: dict[str, ConnectionUse] = {}
    master: dict[str, dict[str, ConnectionUse]] = {}
    for brief in briefs:
        if brief.kind == "gap" or (brief.leg or brief.master) is None:
            continue
        if brief.kind == "handshake":
            _fail(brief, known, found)
            continue
        request = RequestTimes(brief.seq, brief.times.request_began or brief.time, brief.ended, brief.phase)
        agent = brief.leg or ""
        if brief.leg:
            _use(found, agent, "agent", agent, known).requests.append(request)
        if brief.master:
            served = master.setdefault(agent, {})
            leg = _use(served, brief.master, "master", agent or brief.master, known)
            # The request to the master starts only when the connection is ready.
            ready = (leg.leg.secured or leg.leg.connected) if leg.leg else None
            leg.requests.append(request._replace(began=min(request.ended, max(request.began, ready or 0.0))))
            if brief.identity:
                leg.identities[brief.identity] = None
            leg.unused_because = leg.unused_because or brief.identity_missing
    ordered: list[ConnectionUse] = []
    for ident, used in found.items():
        ordered += [used, *master.pop(ident, {}).values()]
    for served in master.values():
        ordered += served.values()
    return ordered


def totals(uses: Iterable[ConnectionUse]) -> ConnectionTotals:
    """Compute the totals."""
    legs = list(uses)
    mine = [leg for leg in legs if leg.side == "agent"]
    requests = {request.seq for leg in legs for request in leg.requests}
    failed = sum(leg.failed is not None for leg in legs)
    return ConnectionTotals(
        len(mine), len(legs) - len(mine), len(requests), failed, sum(leg.tls or 0.0 for leg in mine)
    )


def ids(briefs: Iterable[Brief]) -> set[str]:
    """The connections named in records."""
    return {ident for brief in briefs for ident in (brief.leg, brief.master) if ident}


def bar(used: ConnectionUse, began: float, ended: float, width: int) -> list[BarCell]:
    """A connection's activity between two times, one cell per interval; requests take precedence over silence."""
    cells: list[BarCell] = ["none"] * width
    scale = width / max(ended - began, 1e-6)

    def paint(start: float, end: float, part: BarCell) -> None:
        first = max(0, min(width - 1, int((start - began) * scale)))
        last = max(first, min(width - 1, int((end - began) * scale - 1e-9)))
        cells[first : last + 1] = [part] * (last + 1 - first)

    if width > 0:
        paint(used.opened, used.ended, "life")
        if used.leg and used.leg.secured:
            paint(used.opened, used.leg.secured, "handshake")
        for request in used.requests:
            paint(request.began, request.ended, request.phase)
        if used.failed:
            paint(used.failed.time, used.failed.time, "failed")
    return cells


def _use(
    into: dict[str, ConnectionUse], ident: str, side: Side, agent: str, known: Mapping[str, Connection]
) -> ConnectionUse:
    if ident not in into:
        connection = known.get(ident)
        into[ident] = ConnectionUse(
            ident, side, agent, connection.leg if connection else None, connection.closed if connection else None
        )
    return into[ident]


def _fail(brief: Brief, known: Mapping[str, Connection], into: dict[str, ConnectionUse]) -> None:
    ident = brief.leg or ""
    connection = known.get(ident)
    # Without its leg: only an agent's handshake contains an address, or the time when the agent connected.
    agents = bool(brief.address or brief.times.agent_connected)
    side: Side = connection.leg.side if connection else "agent" if agents else "master"
    _use(into, ident, side, ident, known).failed = brief


def _subject(chain: tuple[bytes, ...]) -> str | None:
    if not chain:
        return None
    try:
        certificate = x509.read_der(chain[0])
    except x509.Malformed:
        return "a certificate that cannot be read"
    return certificate.common_name or certificate.subject
