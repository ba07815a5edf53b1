"""The facts of a run at one moment: outcome, versions, durations, sizes and counts, without any document.

They come from ``Run.snapshot`` only. Tables, filters, the index and the JSON copy them from there, by name. What is
public of them has its meaning here (``columns``).
"""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

import msgspec

from inspector.clocks import Offset
from inspector.columns import about, moment, number, seconds, size
from inspector.model import Finding, Phase, Side
from inspector.protocol.ca_service import CaService
from inspector.protocol.endpoints import Dialect
from inspector.runs.servers import Server

type Wait = Literal["certificate", "facts", "applying", "other"]
"""What an agent does while nothing is on the wire: waits to be signed, gathers facts, applies the catalog."""
type Outcome = Literal["complete", "failed", "waiting", "refused", "unfinished"]
type VersionSource = Literal["header", "user agent", "facts", "report"]
type Generation = Literal["2.7", "3", "4-5", "6.0-6.3", "6.4-7", "8", "OpenVox 8", "9"]
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


class RunColumns(msgspec.Struct, frozen=True, kw_only=True):
    """What a run's facts, its JSON and its row of the table ``runs`` have in common."""

    certname: Annotated[
        str | None, about("The agent's certname; null if it is not known (a bootstrap that stopped early).")
    ] = None
    address: Annotated[
        str | None, about("The agent's address; null if only the connection to the master is known.")
    ] = None
    dialect: Annotated[
        Dialect | None,
        about("v3: Puppet 4 and later; legacy: 2.7 and 3 (/{environment}/...); null: not known."),
    ] = None
    agent_version: Annotated[
        str | None, about("The agent's Puppet version, from X-Puppet-Version, User-Agent, facts or report.")
    ] = None
    master_version: Annotated[str | None, about("The X-Puppet-Version that the master sent; null if it sent none.")] = (
        None
    )
    environment: Annotated[
        str | None, about("The environment of the catalog; without a catalog, the requested one.")
    ] = None
    environment_asked: Annotated[str | None, about("The first environment that the agent requested.")] = None
    transaction_uuid: Annotated[
        str | None,
        about("As sent with catalog request and report; null if the agent sends none (2.7) or the run ended earlier."),
    ] = None
    duration: Annotated[float, seconds("From its first byte to its last.")] = 0.0
    outcome: Annotated[
        Outcome,
        about(
            "How the run ended; the first that applies: refused = a handshake, or a request that the run needs, was "
            "refused (and the run did not continue); waiting = ended while its signing request was unsigned or "
            "refused; failed = the catalog was refused or is unusable (a cached one is usable), or the report has "
            "status failed; unfinished = no report, or the master did not accept it; complete."
        ),
    ] = "unfinished"
    tool: Annotated[
        str | None,
        about(
            "The client if it is not an agent: a tool that uses an agent's endpoints, by its User-Agent, or another "
            "command of Puppet, such as `puppet plugin download`, by its requests (its outcome is then the answer to "
            "the latest of them); null for agents."
        ),
    ] = None
    compiler: Annotated[str | None, about("X-Puppet-Compiler-Name of the catalog; null if none was sent.")] = None
    connections: Annotated[
        int, number("The agent's TLS connections in this run, failed ones included; each cost a handshake.")
    ] = 0
    sent: Annotated[
        int, size("Bodies as on the wire, from the agent, including bytes that the capture does not contain.")
    ] = 0
    received: Annotated[
        int, size("Bodies as on the wire, to the agent, including bytes that the capture does not contain.")
    ] = 0
    ca_service: Annotated[
        CaService | None,
        about(
            "The program that the CA is, if answers in this run or an earlier one show that it is not Puppet's own; "
            "null: not known."
        ),
    ] = None


class RunSnapshot(RunColumns, frozen=True, kw_only=True):
    """The facts of a run, each the attribute of ``Run`` of its name."""

    number: int | None
    stranger: bool = False
    agent_version_from: Annotated[VersionSource | None, about("The source of the agent's version.")] = None
    generation: Annotated[
        Generation | None,
        about("The agent's protocol generation, by its version; null if it is not known."),
    ] = None
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
    started: Annotated[float, moment("When its first request or handshake began.")] = 0.0
    ended: float = 0.0
    records: int = 0
    spans: tuple[Span, ...] = ()
    """One per phase, in the order in which they started."""
    waits: dict[Wait, float] = {}
    clocks: dict[Side, Offset] = {}
    findings: tuple[Finding, ...] = ()
    servers: tuple[Server, ...] = ()
    """Those that answered, in the order of their first answers."""
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
