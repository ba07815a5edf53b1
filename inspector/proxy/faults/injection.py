"""Faults as they are injected: which exchange or connection one is for, and what then happens to it.

Whether a fault is for an agent depends on its verified certname or its address, never on a name that it only claims.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import functools
import socket
import struct
import time
from collections import OrderedDict
from typing import TYPE_CHECKING

from inspector.analysis.analyzer import agent_version
from inspector.model import Exchange, Identity, Leg, Phase, Request
from inspector.protocol import endpoints
from inspector.proxy.faults import ALARM
from inspector.runs.snapshot import RunSnapshot
from inspector.summaries.filters import Candidate
from inspector.summaries.summary import Brief
from inspector.text import clean

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from inspector import regex
    from inspector.protocol.endpoints import Match
    from inspector.proxy.faults.actions import Action, Answer
    from inspector.proxy.faults.fault import Fault

CORRUPT = b"#"
"""What replaces the first byte of a body: no JSON document begins so."""
WITHHELD = "the CA would have signed the key of the identity that the proxy uses, not the agent's (puppet_identity)"
"""Why a renewal is not passed on."""
BEAT = 0.1
"""Seconds between two pieces of an answer that is slowed down, unless a byte takes longer."""
AGENTS = 10_000
"""Agents whose requests a fault counts; of more, it forgets those that were silent the longest."""
NAMED = 200
"""Characters of a request that are announced."""


class Injection:
    """What happens to one exchange instead of being passed on, or to its answer: a fault, or an answer of the proxy."""

    __slots__ = ("_announce", "_passed", "_withheld", "action", "answer", "cut_off", "note")

    def __init__(
        self, action: Action, answer: Answer | None, announce: Callable[[], None], *, withheld: str = ""
    ) -> None:
        """``announce`` is called once it happens: what concerns a body does not if there is none. ``withheld``: why the
        master is not asked, if it is no fault."""
        self.action = action
        self.answer = answer
        """The answer in the master's place."""
        self._withheld = withheld
        self.note = ""
        """What was done, as it is recorded; empty as long as nothing was."""
        self.cut_off = False
        """Whether the rest of the answer is not passed on."""
        self._announce = announce
        self._passed = 0
        if not self.changes:
            self._happen()

    @property
    def in_place(self) -> bool:
        """Whether the master is not asked."""
        return self.answer is not None or self.action.reset

    @property
    def changes(self) -> bool:
        """Whether the answer's body is changed as it passes."""
        return self.action.cut is not None or self.action.corrupt

    def change(self, piece: bytes) -> bytes:
        """Return a piece of the answer's body as it is passed on."""
        before, self._passed = self._passed, self._passed + len(piece)
        if self.action.cut is not None and self._passed > self.action.cut:
            if not self.cut_off:
                self.cut_off = True
                self._happen()
            return piece[: max(self.action.cut - before, 0)]
        if self.action.corrupt and piece and not before:
            self._happen()
            return CORRUPT + piece[1:]
        return piece

    def marked(self, exchange: Exchange) -> Exchange:
        """Return the exchange with what was done to it."""
        if self._withheld:
            mode = exchange.identity.mode if exchange.identity else ""
            return dataclasses.replace(exchange, master=None, identity=Identity(mode, reason=self._withheld))
        return dataclasses.replace(exchange, injected=self.note) if self.note else exchange

    def _happen(self) -> None:
        self.note = self.action.note
        self._announce()


class Pace:
    """What a master sent that is passed on slowly, in small pieces."""

    def __init__(self, rate: int) -> None:
        """``rate``: bytes a second."""
        self._size = max(1, round(rate * BEAT))
        self._delay = self._size / rate
        self._data = bytearray()
        self.after: Callable[[], None] | None = None
        """What is to be done when nothing waits any more."""

    @property
    def pending(self) -> bool:
        """Whether something waits."""
        return bool(self._data)

    def add(self, data: bytes) -> bool:
        """Add what arrived; return whether nothing waited before."""
        first = not self._data
        self._data += data
        return first and bool(data)

    def piece(self) -> bytes:
        """Take the next piece."""
        piece = bytes(self._data[: self._size])
        del self._data[: self._size]
        return piece

    def clear(self) -> None:
        """Forget what waits: nobody takes it any more."""
        self._data.clear()

    def later(self, act: Callable[[], None]) -> None:
        """Call something when it is time for the next piece."""
        asyncio.get_running_loop().call_later(self._delay, act)


def plain_answer(fields: tuple[tuple[bytes, bytes], ...]) -> tuple[tuple[bytes, bytes], ...]:
    """Return the headers of a request without the one that asks for a compressed answer: a byte of one that is replaced
    would show that it cannot be unpacked."""
    return tuple((name, value) for name, value in fields if name.lower() != b"accept-encoding")


def end_with_reset(connection: socket.socket) -> None:
    """Let a connection end with a reset when it is closed (socket(7), SO_LINGER)."""
    with contextlib.suppress(OSError):  # the agent has closed it meanwhile
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))


class Injector:
    """Chooses what the faults of a proxy are injected into, counts, and announces each use."""

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
