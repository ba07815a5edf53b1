"""Whether a run is over, and what an agent does meanwhile: from its records, and from what is under way.

A run is over when there is evidence of it: its report, its agent's next run, or that its agent was silent for longer
than what it was doing can take, with no connection open. Until then nothing says how it ended. Pure: ``now`` is handed
in.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from inspector.model import Phase
from inspector.protocol import endpoints
from inspector.protocol.kinds import Kind
from inspector.runs.snapshot import RunState
from inspector.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from inspector.model import OpenRequest, Present
    from inspector.runs.snapshot import Activity, RunSnapshot
    from inspector.summaries.summary import RunBrief


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
TIMES = 3.0
"""An agent may take this many times as long as it ever did."""
LEAST = 60.0
"""Seconds that it may take at least, then."""
_PAST = 8
"""Earlier runs that show how long an agent takes."""

ACTIVITIES: Mapping[Activity, str] = {
    "key": "generates its key",
    "certificate": "waits for its certificate",
    "facts": "gathers facts",
    "applying": "applies its catalog",
    "uncompiled": "got no catalog: it ends its run, or applies an earlier one",
    "retry": "waits before it asks again",
    "refused": "was refused",
    "other": "is silent",
}
"""What an agent does while nothing is on the wire."""

_ASKING: Mapping[Kind, str] = {
    Kind.CA_BUNDLE: "downloads the CA",
    Kind.CRL: "downloads the CRL",
    Kind.CSR: "sends its certificate request",
    Kind.CERTIFICATE: "asks for its certificate",
    Kind.NODE: "asks for its node",
    Kind.CATALOG: "compiles its catalog",
    Kind.REPORT: "sends its report",
}
"""What is under way while the master has not answered a request of this kind."""


@dataclass(frozen=True, slots=True)
class UnderWay:
    """What one agent does at the moment."""

    name: str
    """The node, or its address."""
    phase: Phase
    activity: str
    """In words, without the name."""
    since: float
    """When this began."""
    run: RunBrief | None = None
    """Its run so far; None before its first request was answered."""
    request: OpenRequest | None = None
    """The request that is being answered; None while nothing is on the wire."""
    before: float | None = None
    """Seconds that it took last time; None if that is not known."""


def patience(run: RunSnapshot, earlier: Iterable[RunSnapshot] = ()) -> float:
    """Return the seconds for which an agent may be silent after a run's latest record; ``earlier`` are its runs before,
    which say how long it usually takes."""
    activity = run.activity
    usual = PATIENCE[activity]
    if activity not in ("facts", "applying"):
        return usual
    took = [other.waits.get(activity, 0.0) for other in earlier if activity in other.waits]
    return min(usual, max(LEAST, TIMES * max(took))) if took else usual


def state(
    run: RunSnapshot, present: Present, now: float, earlier: Iterable[RunSnapshot] = (), *, next_run: bool
) -> RunState:
    """Return whether a run is over; ``next_run``: its agent began another one since."""
    if (run.closed and not run.cut) or next_run or present.recording == "unknown":
        return RunState.OVER
    at = now if present.recording == "open" else present.time
    legs = {connection.leg for connection in present.connections} | {request.leg for request in present.requests}
    if legs.isdisjoint(run.legs) and at - run.ended >= patience(run, earlier):
        return RunState.OVER
    return RunState.OPEN if present.recording == "open" else RunState.CUT_OFF


def under_way(open_runs: Iterable[tuple[RunBrief, list[RunBrief]]], present: Present) -> list[UnderWay]:
    """Return what agents do at the moment; ``open_runs`` are the runs that are not over, each with its agent's runs
    before."""
    found = []
    answering = {request.leg: request for request in reversed(present.requests)}
    for run, earlier in open_runs:
        request = next((answering.pop(leg) for leg in reversed(run.legs) if leg in answering), None)
        took = _took(run, request, earlier)
        if request is not None:
            phase, words = _asked(request)
            found.append(UnderWay(run.name, phase, words, request.time, run, request, took))
        else:
            words = ACTIVITIES[run.activity]
            found.append(UnderWay(run.name, run.phase, words, run.ended, run, None, took))
    names = {connection.leg: connection.certname or connection.address for connection in present.connections}
    for leg, request in answering.items():
        match = endpoints.match(request.method, request.target)
        phase, words = _asked(request)
        name = names.get(leg) or (match.certname if match else None) or "an unnamed agent"
        found.append(UnderWay(name, phase, words, request.time, None, request))
    return sorted(found, key=lambda each: each.since)


def _asked(request: OpenRequest) -> tuple[Phase, str]:
    """The phase of a request, and what is under way until it is answered."""
    match = endpoints.match(request.method, request.target)
    if match is None:
        return Phase.OTHER, f"waits for {clean(request.method)} {clean(request.target)}"
    words = _ASKING.get(match.endpoint.kind) or f"waits for an answer ({match.endpoint.purpose})"
    return match.endpoint.phase, words


def _took(run: RunBrief, request: OpenRequest | None, earlier: list[RunBrief]) -> float | None:
    """Seconds that the same took in the agent's latest run that shows it."""
    if request is not None:
        match = endpoints.match(request.method, request.target)
        if match is None or match.endpoint.kind is not Kind.CATALOG:
            return None
        times = (other.compile_time for other in reversed(earlier))
    else:
        times = (other.waits.get(run.activity) for other in reversed(earlier[-_PAST:]))  # type: ignore[arg-type]
    return next((time for time in times if time), None)
