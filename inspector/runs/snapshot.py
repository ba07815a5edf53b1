"""The facts of a run at one moment: outcome, versions, durations, sizes and counts, without any document.

They are computed only in ``Run.snapshot``. Tables, filters, the index and the JSON copy them from there.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Literal

import msgspec

from inspector.clocks import Offset  # noqa: TC001 - msgspec looks it up when it decodes; so it does the next ones
from inspector.model import Finding, Phase, Side
from inspector.protocol.endpoints import Dialect  # noqa: TC001

type Wait = Literal["certificate", "facts", "applying", "other"]
"""What an agent does while nothing is on the wire: waits to be signed, gathers facts, applies the catalog."""
type Outcome = Literal["complete", "failed", "waiting", "refused", "unfinished"]
type Activity = Literal["key", "certificate", "facts", "applying", "uncompiled", "retry", "refused", "other"]
"""What an agent does after a run's latest record, as far as the run goes on: makes its key, waits to be signed, gathers
facts, applies its catalog, got none (it ends, or applies an earlier one), waits before it repeats a request that was
answered 503, has lost its connection to a failed handshake, or nothing that takes long."""


class RunState(StrEnum):
    """Whether a run is over."""

    OPEN = "open"
    """It is under way."""
    OVER = "over"
    CUT_OFF = "cut off"
    """It was under way when the recording ended: how it ended is not known."""


class Span(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """The share of one phase in a run."""

    phase: Phase
    exchanges: int
    """Exchanges and failed handshakes."""
    duration: float
    """Seconds from the first byte to the last byte, summed over all stretches of this phase."""


class RunSnapshot(msgspec.Struct, frozen=True, kw_only=True):
    """The facts of a run. Fields without a description are those of ``Run``."""

    number: int | None
    certname: str | None = None
    address: str | None = None
    tool: str | None = None
    stranger: bool = False
    dialect: Dialect | None = None
    agent_version: str | None = None
    version_from: str | None = None
    master_version: str | None = None
    compiler: str | None = None
    generation: str | None = None
    environment: str | None = None
    environment_asked: str | None = None
    transaction_uuid: str | None = None
    outcome: Outcome = "unfinished"
    closed: bool = False
    """Whether the run is closed: no further record can belong to it."""
    cut: bool = False
    """Whether it is closed only because the records end."""
    activity: Activity = "other"
    phase: Phase = Phase.OTHER
    legs: tuple[str, ...] = ()
    """Its agent's latest connections."""
    statuses: dict[int, int] = {}
    """How many requests were answered with each status; 0: without an answer."""
    compile_time: float | None = None
    """Seconds from the latest catalog request to the first byte of its answer; None: none could be applied."""
    started: float = 0.0
    ended: float = 0.0
    duration: float = 0.0
    """Seconds from the first byte to the last."""
    sent: int = 0
    received: int = 0
    """Bytes of bodies as on the wire, from the agent and to it, including bytes that the capture does not contain."""
    connections: int = 0
    records: int = 0
    spans: tuple[Span, ...] = ()
    """One per phase, in the order in which they started."""
    waits: dict[Wait, float] = {}
    clocks: dict[Side, Offset] = {}
    findings: tuple[Finding, ...] = ()
    injected: tuple[int, ...] = ()
    """Records in which the proxy injected a fault on purpose: the first ones."""

    @property
    def ending(self) -> str:
        """How it ended."""
        return self.outcome

    @property
    def name(self) -> str:
        """The certname, or the address of an agent whose certname is not known."""
        return self.certname or self.address or "-"
