"""The facts of a run at one moment: outcome, versions, durations, sizes and counts, without any document.

They are computed only in ``Run.snapshot``. Tables, filters, the index and the JSON copy them from there.
"""

from __future__ import annotations

from typing import Literal

import msgspec

from inspector.clocks import Offset  # noqa: TC001 - msgspec looks it up when it decodes; so it does the next ones
from inspector.model import Finding, Phase, Side  # noqa: TC001
from inspector.protocol.endpoints import Dialect  # noqa: TC001

type Wait = Literal["certificate", "facts", "applying", "other"]
"""What an agent does while nothing is on the wire: waits to be signed, gathers facts, applies the catalog."""
type Outcome = Literal["complete", "failed", "waiting", "refused", "unfinished"]


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
    def name(self) -> str:
        """The certname, or the address of an agent whose certname is not known."""
        return self.certname or self.address or "-"
