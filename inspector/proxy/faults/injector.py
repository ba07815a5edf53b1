"""Chooses what faults are injected into, counts, and announces each use.

Whether a fault is for an agent depends on its verified certname or its address, never on a name that it only claims.
"""

from __future__ import annotations

import functools
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

from inspector.analysis.analyzer import agent_version
from inspector.model import Exchange, Leg, Phase, Request
from inspector.protocol import endpoints
from inspector.proxy.faults import ALARM
from inspector.proxy.faults.injection import Injection
from inspector.runs.snapshot import RunSnapshot
from inspector.summaries.filters import Candidate
from inspector.summaries.summary import Brief
from inspector.text import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from inspector import regex
    from inspector.protocol.endpoints import Match
    from inspector.proxy.faults.fault import Fault

AGENTS = 10_000
"""Agents whose requests a fault counts; of more, it forgets those that were silent the longest."""
NAMED = 200
"""Characters of a request that are announced."""


class Injector:
    """Injects the faults of a proxy."""

    def __init__(
        self,
        faults: Sequence[Fault],
        only: regex.Pattern[str] | None,
        write_line: Callable[[str], None],
        clock: Callable[[], float] = time.time,
    ) -> None:
        """``only``: the certnames that are recorded. ``write_line`` gets a line for each use."""
        self._requests = [fault for fault in faults if not fault.action.in_handshake]
        self._handshakes = [fault for fault in faults if fault.action.in_handshake]
        self._only = only
        self._write_line = write_line
        self._clock, self._started = clock, clock()
        self._counts: dict[int, OrderedDict[str, int]] = {id(fault): OrderedDict() for fault in faults}

    @property
    def waits(self) -> bool:
        """Whether requests must be looked at."""
        return bool(self._requests)

    def on_handshake(self, address: str) -> Fault | None:
        """Return the fault for a new connection from an address."""
        if not self._handshakes:
            return None
        candidate = _candidate(address, "", None, Request())
        for fault in self._handshakes:
            if self._chosen(fault, candidate, address):
                self._write_line(f"{ALARM}{fault.action.note}: a connection from {clean(address)}")
                return fault
        return None

    def on_request(
        self, address: str, certname: str, method: str, target: str, fields: Sequence[tuple[bytes, bytes]]
    ) -> Injection | None:
        """Return the fault for a request; ``certname`` is verified, empty without a certificate."""
        if not self._requests:
            return None
        match = endpoints.match(method, target)
        headers = tuple((name.decode("latin-1"), value.decode("latin-1")) for name, value in fields)
        request = Request(method=method, target=target, headers=headers)
        candidate = _candidate(address, certname, match, request)
        for fault in self._requests:
            kind = fault.action.kind
            if (
                (kind is None or (match is not None and match.endpoint.kind is kind))
                and self._records(fault, certname)
                and self._chosen(fault, candidate, certname or address)
            ):
                action = fault.action
                agent = f"{certname} ({address})" if certname else address
                line = clean(f"{ALARM}{action.note}: {f'{method} {target.partition("?")[0]}'[:NAMED]} of {agent}")
                answer = action.answer(match) if action.answer else None
                return Injection(action, answer, functools.partial(self._write_line, line))
        return None

    def _records(self, fault: Fault, certname: str) -> bool:
        """Whether an agent that the fault does not name is one of those that are recorded."""
        if self._only is None:
            return True
        return self._only.fullmatch(certname) is not None if certname else bool(fault.agents)

    def _chosen(self, fault: Fault, candidate: Candidate, agent: str) -> bool:
        """Count a request that matches; return whether the fault happens to it."""
        if fault.over(self._clock() - self._started) or not fault.wants(candidate):
            return False
        counts = self._counts[id(fault)]
        number = counts[agent] = counts.get(agent, 0) + 1
        counts.move_to_end(agent)
        if len(counts) > AGENTS:
            counts.popitem(last=False)
        return fault.hits(agent, number)


def _candidate(address: str, certname: str, match: Match | None, request: Request) -> Candidate:
    """Return what is known when a request arrives, as input for a filter."""
    version, _ = agent_version(Exchange(Leg("", "agent"), request), None)
    brief = Brief(
        seq=0, kind="exchange", time=0.0, ended=0.0, phase=match.endpoint.phase if match else Phase.OTHER,
        certname=certname or None, address=address, endpoint=match.endpoint.name if match else None,
        environment=match.environment if match else None, method=request.method, target=request.target,
    )  # fmt: skip
    return Candidate(brief, RunSnapshot(number=None, agent_version=version), str, lambda: None)
