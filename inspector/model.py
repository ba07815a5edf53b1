"""The vocabulary: what was seen on the wire, as plain frozen records.

A capture is a sequence of records: ``Exchange`` (a request and what became of it), ``Handshake`` (a TLS
handshake that failed: the commonest Puppet trouble never becomes HTTP) and ``Gap`` (something we could
not record). What we *think* of them (phases, runs, findings) is never stored and does not live here.

Times are seconds since the epoch (UTC) as floats; ``None`` is "not known", never "zero".
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from functools import lru_cache
from typing import Literal

type Headers = tuple[tuple[str, str], ...]
"""Names and values as on the wire, in order; bytes are mapped one to one (Latin-1)."""

type Side = Literal["agent", "master"]
"""Which end of the wire, seen from the proxy: the agent's leg or the master's leg."""

PROBE = "puppet-inspector verification probe"
"""The CA of the certificate that an agent is shown to see whether it refuses it."""


class Phase(StrEnum):
    """The phases of an agent run (docs/protocol.md#phases)."""

    CERTIFICATES = "certificates"
    NODE = "node"
    PLUGINS = "plugins"
    CATALOG = "catalog"
    FILES = "files"
    REPORT = "report"
    OTHER = "other"


class Severity(StrEnum):
    """A contract: ERROR breaks a run or is forbidden, WARNING works but no healthy pair does it."""

    ERROR = "error"
    WARNING = "warning"
    NOTICE = "notice"

    @property
    def rank(self) -> int:
        """3 for ERROR, 2 for WARNING, 1 for NOTICE."""
        return {"error": 3, "warning": 2, "notice": 1}[self.value]


class Visible(StrEnum):
    """How a deviation shows itself: in decrypted traffic, in a handshake, or only by what follows from it."""

    WIRE = "wire"
    HANDSHAKE = "handshake"
    CONSEQUENCE = "consequence"


@lru_cache(maxsize=8)
def _first(headers: Headers) -> dict[str, str]:
    """The first value of each header: rules ask for some ten of an exchange."""
    return {key.lower(): value for key, value in reversed(headers)}


@dataclass(frozen=True, slots=True)
class Message:
    """A request's or a response's head and body, as on the wire after HTTP framing."""

    headers: Headers = ()
    body: bytes = b""
    """Raw: still content-encoded, so that a lying ``Content-Encoding`` stays visible."""
    http_version: str = "HTTP/1.1"
    started: float | None = None
    ended: float | None = None
    lost: int = field(default=0, kw_only=True)
    """Bytes of the body that were passed on and not kept: it was too large."""
    digest: str = field(default="", kw_only=True)
    """The SHA-256 (hex) of a whole body of which not all was kept; empty if it is all there, or not known."""

    @property
    def size(self) -> int:
        """Bytes of the body as on the wire, those that were passed on and not kept included."""
        return len(self.body) + self.lost

    def header(self, name: str) -> str | None:
        """The first value of a header, its name compared without case; None if it is absent."""
        return _first(self.headers).get(name.lower())


@dataclass(frozen=True, slots=True)
class Request(Message):
    method: str = "GET"
    target: str = "/"
    """Path and query exactly as sent (Latin-1), double slashes and a trailing ``?`` included."""

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def query(self) -> str:
        return self.target.partition("?")[2]


@dataclass(frozen=True, slots=True)
class Response(Message):
    status: int = 0
    reason: str = ""


@dataclass(frozen=True, slots=True)
class Leg:
    """One TLS connection, agent to proxy or proxy to master, as known when it was established."""

    id: str
    """Unique in a capture; the same for all exchanges on one connection."""
    side: Side
    address: str | None = None
    """The peer's address without its port."""
    port: int | None = None
    """The peer's port: the agent's ephemeral one, or the master's."""
    connecting: float | None = None
    connected: float | None = None
    secured: float | None = None
    """When the TLS handshake was finished; None if there was none."""
    tls_version: str | None = None
    cipher: str | None = None
    sni: str | None = None
    alpn: str | None = None
    resumed: bool | None = None
    peer_chain: tuple[bytes, ...] = ()
    """DER certificates the peer presented, its own first. On the agent's leg: the client certificate."""
    own_chain: tuple[bytes, ...] = ()
    """DER certificates the proxy presented to this peer, its own first. On the agent's leg: what the agent
    took for the master's; on the master's leg: the identity that was lent."""

    @property
    def probed(self) -> bool:
        """The agent was shown a certificate that it must not trust, on purpose: refusing that is no fault."""
        return self.side == "agent" and bool(self.own_chain) and _probes(self.own_chain[0])


@lru_cache(maxsize=256)
def _probes(certificate: bytes) -> bool:
    # DER holds the issuer's name as it is; only the proxy itself shows certificates on this side.
    return PROBE.encode() in certificate


@dataclass(frozen=True, slots=True)
class Closed:
    """How a connection ended."""

    at: float
    by: Literal["peer", "proxy"] | None = None


@dataclass(frozen=True, slots=True)
class Connection:
    """A leg and its end; also of connections that never carried a request."""

    leg: Leg
    closed: Closed | None = None


@dataclass(frozen=True, slots=True)
class Identity:
    """Whether the proxy spoke to the master as the calling agent, and why not."""

    mode: str
    """``keys``, ``headers``, ``mint`` or ``none``."""
    certname: str | None = None
    """As whom; None when no identity was lent."""
    reason: str | None = None
    """Why nothing was lent though the agent has a certificate; None when all is well or none is needed."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and what became of it."""

    agent: Leg
    request: Request
    response: Response | None = None
    """None: no answer came, ``error`` says why."""
    master: Leg | None = None
    """None: the master was never reached (or the flow file does not say)."""
    identity: Identity | None = None
    error: str | None = None
    stripped: tuple[str, ...] = ()
    """Header names that the agent sent and the proxy withheld from the master."""
    seq: int = 0
    failed: float | None = None
    """When it was given up, if no answer came."""

    @property
    def time(self) -> float:
        """When it began, as nearly as is known."""
        return self.request.started or self.agent.secured or self.agent.connected or 0.0

    @property
    def ended(self) -> float:
        """When the last byte of it was seen."""
        last = self.response.ended if self.response else self.failed
        return last or self.request.ended or self.time


@dataclass(frozen=True, slots=True)
class Handshake:
    """A TLS handshake that failed, on either side."""

    leg: Leg
    time: float
    reason: str
    """In the agent's own words where it has some (what a Puppet agent prints for this failure)."""
    alert: str | None = None
    """The TLS alert's name as in RFC 8446, e.g. ``certificate_revoked``; None if none was seen."""
    alert_by: Literal["agent", "proxy", "master"] | None = None
    """Who sent the alert."""
    culprits: tuple[str, ...] = ()
    """Every verification error found, each with the subject of the certificate or CRL it is about."""
    seq: int = 0

    @property
    def ended(self) -> float:
        return self.time


@dataclass(frozen=True, slots=True)
class Gap:
    """Something we saw but could not record, or a hook of ours that failed."""

    time: float
    reason: str
    lost: int = 0
    """Records lost for good."""
    seq: int = 0

    @property
    def ended(self) -> float:
        return self.time


type Record = Exchange | Handshake | Gap


type RecordTab = Literal["meaning", "request", "response", "tls", "timing"]
"""The tabs of a record on which evidence is shown."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a record: a tab, a part of it, and a text to look for there."""

    tab: RecordTab
    part: str = ""
    """The part's title in lower case; empty: every part of the tab."""
    needle: str = ""
    """Looked for without case; empty: the beginning of the part."""
    fallback: str = ""
    """Looked for where the needle is not found."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A deviation from the protocol: which rule, how bad, what exactly, and the records that prove it."""

    rule: str
    severity: Severity
    message: str
    seqs: tuple[int, ...] = field(default=())
    since: float = field(default=0.0, compare=False)
    """When it first showed; 0 if that is not known."""
    places: tuple[Place, ...] = field(default=(), compare=False)
    """Where its records show it; in each record the first place that exists there counts."""
