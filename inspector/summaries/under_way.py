"""Whether a run is over, and what an agent does meanwhile: from its records, and from what is under way.

A run is over when there is evidence of it: its report, its agent's next run, or that its agent was silent for longer
than what it was doing can take, with no connection open. Until then nothing says how it ended. Pure: ``now`` is handed
in.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from inspector.model import Phase
from inspector.protocol import endpoints
from inspector.protocol.kinds import Access, Kind
from inspector.runs.snapshot import RunState
from inspector.text import clean, lasting

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from inspector.model import OpenConnection, OpenRequest, Present
    from inspector.runs.snapshot import Activity, RunSnapshot


RUN_TIMEOUT = 3600.0
"""Seconds after which an agent ends its run itself (the setting ``runtimeout`` of 6 and later)."""
PATIENCE: Mapping[Activity, float] = {
    "key": 60.0,  # an RSA key of 4096 bits on a small machine
    "certificate": 660.0,  # it asks again every two minutes (waitforcert), at some sites every ten
    "facts": RUN_TIMEOUT,
    "applying": RUN_TIMEOUT,
    "uncompiled": RUN_TIMEOUT,
    "retry": 1860.0,  # Retry-After is obeyed up to half an hour
    "refused": 5.0,  # it tries its next server at once, or ends
    "other": 120.0,  # http_connect_timeout
}
"""Seconds of silence that each activity can take where nothing is known of the agent."""
CALL = 5.0
"""The same after a call of a tool."""
TIMES = 3.0
"""An agent may take this many times as long as it ever did."""
LEAST = 60.0
"""Seconds that it may take at least, then."""
SETTLED = 5.0
"""Seconds after which an agent without a certificate waits for a signature: an autosigning CA signs at once."""
LATE = 1.0
"""Seconds after a run's latest record in which an exchange may have ended: of a later one the record is not here yet.
"""
FRESH = 60.0
"""Seconds for which an agent's new connection is taken for one whose first record is not here yet: it opens one to ask
something."""

ACTIVITIES: Mapping[Activity, str] = {
    "key": "generates its key",
    "certificate": "waits for its certificate",
    "facts": "gathers facts",
    "applying": "applies its catalog",
    "uncompiled": "is silent since it got no catalog",
    "retry": "waits before it asks again",
    "refused": "is silent since a handshake failed",
    "other": "is silent",
}
"""What an agent does while nothing is on the wire."""
_UNKNOWN = frozenset({"uncompiled", "refused", "other"})
"""Activities of which nothing is known."""

_ASKING: Mapping[Kind, str] = {
    Kind.CA_BUNDLE: "downloads the CA",
    Kind.CRL: "downloads the CRL",
    Kind.CSR: "sends its certificate request",
    Kind.CERTIFICATE: "asks for its certificate",
    Kind.NODE: "asks for its node",
    Kind.CATALOG: "waits for its catalog",
    Kind.REPORT: "sends its report",
}
"""What is under way while the master has not answered a request of this kind: whether the master works on it, or hangs,
nobody sees."""


@dataclass(slots=True)
class Habit:
    """How long an agent's runs took so far: ``facts``, ``applying`` and so on, and ``catalog``, its compilation."""

    last: dict[str, float] = field(default_factory=dict)
    """In the latest run that shows it."""
    most: dict[str, float] = field(default_factory=dict)

    def add(self, run: RunSnapshot) -> None:
        """Add a run that is over."""
        took = {str(wait): seconds for wait, seconds in run.waits.items()}
        if run.compile_time:
            took["catalog"] = run.compile_time
        self.last |= took
        self.most |= {what: max(seconds, self.most.get(what, 0.0)) for what, seconds in took.items()}


NO_HABIT = Habit()
"""Of an agent without an earlier run."""


@dataclass(frozen=True, slots=True)
class UnderWay[R: RunSnapshot]:
    """What one agent does at the moment, or did when the recording ended."""

    name: str
    """The node, or its address."""
    phase: Phase
    activity: str
    """In words, without the name."""
    since: float
    """When this began."""
    seconds: float
    """How long it takes so far."""
    run: R | None = None
    """Its run so far; None before its first request was answered."""
    request: OpenRequest | None = None
    """The request that is being answered; None while nothing is on the wire."""
    before: float | None = None
    """Seconds that it took last time; None if that is not known."""

    @property
    def words(self) -> str:
        """What the agent does and for how long, without its name."""
        so_far = " so far" if self.request else ""
        last = f" ({lasting(self.before)} last time)" if self.before else ""
        return f"{self.activity}, {lasting(self.seconds)}{so_far}{last}"

    def __str__(self) -> str:
        return f"{clean(self.name)} {self.words}"


def is_call(run: RunSnapshot) -> bool:
    """Return whether requests are calls of a tool. What looks like another command of Puppet's is none: an agent begins
    with the same requests."""
    return bool(run.tool) and not (run.tool or "").startswith("puppet ")


def patience(run: RunSnapshot, habit: Habit = NO_HABIT) -> float:
    """Return the seconds for which an agent may be silent after a run's latest record, with no connection open."""
    if is_call(run):
        return CALL
    usual = PATIENCE[run.activity]
    took = habit.most.get(run.activity) if run.activity in ("facts", "applying") else None
    return min(usual, max(LEAST, TIMES * took)) if took else usual


def settled(run: RunSnapshot, silence: float) -> bool:
    """Return whether a run that is not over waits for a signature: it is silent, or asked again, and that long."""
    waits = run.outcome == "waiting" and run.activity == "certificate"
    return waits and run.waits.get("certificate", 0.0) + silence >= SETTLED


class Moment:
    """A moment of a recording: what is under way now, or was when it ended."""

    def __init__(self, present: Present, now: float) -> None:
        self.recording = present.recording
        self.time = now if present.recording == "open" else present.time
        self._requests = present.requests
        self._connections = {connection.leg: connection for connection in present.connections}
        self._named: dict[str, list[OpenConnection]] = {}
        for connection in present.connections:
            if connection.certname:
                self._named.setdefault(connection.certname, []).append(connection)
        self._legs = {*self._connections, *(request.leg for request in present.requests)}

    def silence(self, run: RunSnapshot) -> float:
        """Return the seconds since a run's latest record."""
        return self.time - run.ended

    def connected(self, run: RunSnapshot) -> bool:
        """Return whether a run's agent has a connection open."""
        return not self._legs.isdisjoint(run.legs) or (run.certname in self._named and not run.stranger)

    def state(self, run: RunSnapshot, habit: Habit = NO_HABIT, *, next_run: bool = False) -> RunState:
        """Return whether a run is over; ``next_run``: its agent began another one since."""
        if (run.closed and not run.cut) or next_run or self.recording == "unknown":
            return RunState.OVER
        if self.silence(run) >= patience(run, habit) and not self.connected(run):
            return RunState.OVER
        return RunState.OPEN if self.recording == "open" else RunState.CUT_OFF

    def under_way[R: RunSnapshot](self, runs: Iterable[tuple[R, Habit]]) -> list[UnderWay[R]]:
        """Return what agents do, the longest first; ``runs`` are those that are not over, each with its agent's
        habit."""
        found: list[UnderWay[R]] = []
        left = {request.leg: request for request in self._requests}
        legs: dict[str, list[str]] = {}  # on new connections, whose records are not here yet
        for request in self._requests:
            if name := _verified(self._connections.get(request.leg)) or _claimed(request):
                legs.setdefault(name, []).append(request.leg)
        for run, habit in runs:
            named = legs.get(run.certname, ()) if run.certname and not run.stranger else ()
            asked = [left.pop(leg) for leg in (*run.legs, *named) if leg in left]
            if asked:
                request = min(asked, key=lambda request: request.time)
                phase, words, kind = _asked(request)
                took = habit.last.get("catalog") if kind is Kind.CATALOG else None
                found.append(self._made(run.name, phase, words, request.time, run, request, took))
            elif not self._late(run):
                took = habit.last.get(run.activity)
                # Interrupted by requests, but the same for the agent.
                before = run.waits.get(run.activity, 0.0) if run.activity in ("certificate", "applying") else 0.0
                since = run.ended - before
                found.append(self._made(run.name, run.phase, self._silent(run), since, run, None, took))
        for request in left.values():
            phase, words, _ = _asked(request)
            found.append(self._made(self._name(request), phase, words, request.time, None, request, None))
        return sorted(found, key=lambda each: each.since)

    def _made[R: RunSnapshot](
        self, name: str, phase: Phase, words: str, since: float, run: R | None, request: OpenRequest | None,
        before: float | None,
    ) -> UnderWay[R]:  # fmt: skip
        return UnderWay(name, phase, words, since, max(0.0, self.time - since), run, request, before)

    def _silent(self, run: RunSnapshot) -> str:
        """What an agent does that asks nothing. Without a connection nobody knows whether it is still there."""
        words = ACTIVITIES[run.activity]
        return words if run.activity in _UNKNOWN or self.connected(run) else f"{words}, or has ended"

    def _late(self, run: RunSnapshot) -> bool:
        """Whether an agent asked something since of which the record is not here yet, maybe in its next run."""
        mine = (self._connections.get(leg) for leg in run.legs)
        if any(connection is not None and connection.last > run.ended + LATE for connection in mine):
            return True
        if run.stranger:
            return False
        since = max(run.ended + LATE, self.time - FRESH)
        named = self._named.get(run.certname or "", ())
        return any(max(each.connected, each.last) > since and each.leg not in run.legs for each in named)

    def _name(self, request: OpenRequest) -> str:
        connection = self._connections.get(request.leg)
        return _verified(connection) or _claimed(request) or (connection and connection.address) or "an unnamed agent"


def _verified(connection: OpenConnection | None) -> str | None:
    return connection.certname if connection else None


def _claimed(request: OpenRequest) -> str | None:
    """Return the name in the target of a request that needs no certificate: agents without one send those."""
    match = endpoints.match(request.method, request.target)
    return match.certname if match and match.endpoint.access is Access.ANYBODY else None


def _asked(request: OpenRequest) -> tuple[Phase, str, Kind | None]:
    """The phase of a request, what is under way until it is answered, and its kind."""
    match = endpoints.match(request.method, request.target)
    if match is None:
        return Phase.OTHER, f"waits for {clean(request.method)} {clean(request.target.partition('?')[0])}", None
    kind = match.endpoint.kind
    return match.endpoint.phase, _ASKING.get(kind) or f"waits for an answer ({match.endpoint.purpose})", kind
