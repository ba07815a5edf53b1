"""The records of a capture: what was seen on the wire, as plain frozen objects.

A capture is a sequence of records. An ``Exchange`` is a request and its response or error. A ``Handshake`` is a TLS
handshake that failed: the most common Puppet problems never reach HTTP. A ``Gap`` is something that could not be
recorded. Conclusions (phases, runs, findings) are never stored in records.

Times are seconds since the epoch (UTC) as floats; ``None`` means "not known", never "zero".
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache
from typing import Literal

type Headers = tuple[tuple[str, str], ...]
"""Names and values as on the wire, in order; bytes are mapped one to one (Latin-1)."""

type Side = Literal["agent", "master"]
"""A side of the proxy: the agent's leg or the master's leg."""

PROBE = "puppet-inspector verification probe"
"""The CA of the certificate that is presented to an agent to test whether the agent refuses it."""

RUN_CA = "puppet-inspector for one run"
"""The beginning of the name of the CA that the agent of `run` trusts for that run only."""


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
    """The severity of a finding: ERROR breaks a run or is forbidden; WARNING works, but does not occur between a
    healthy agent and master."""

    ERROR = "error"
    WARNING = "warning"
    NOTICE = "notice"

    @property
    def rank(self) -> int:
        """3 for ERROR, 2 for WARNING, 1 for NOTICE."""
        return {"error": 3, "warning": 2, "notice": 1}[self.value]


class Visible(StrEnum):
    """How a deviation becomes visible: in decrypted traffic, in a handshake, or only through its consequences."""

    WIRE = "wire"
    HANDSHAKE = "handshake"
    CONSEQUENCE = "consequence"


_EMPTY: Headers = ()
_recent: list[tuple[Headers, dict[str, str]]] = [(_EMPTY, {}), (_EMPTY, {})]
"""The headers that were read last, of a request and its response. Found by identity: a hash of all headers takes longer
than what it would save."""


def _first(headers: Headers) -> dict[str, str]:
    """The first value of each header: rules look up about ten headers per exchange."""
    values = {key.lower(): value for key, value in reversed(headers)}
    _recent[:] = [(headers, values), _recent[0]]
    return values


@dataclass(frozen=True, slots=True)
class Message:
    """A request's or a response's head and body, as on the wire after HTTP framing."""

    headers: Headers = ()
    body: bytes = b""
    """Raw: still content-encoded, so that a wrong ``Content-Encoding`` stays visible."""
    http_version: str = "HTTP/1.1"
    started: float | None = None
    ended: float | None = None
    lost: int = field(default=0, kw_only=True)
    """Bytes of the body that were passed on but not recorded, because the body was too large."""
    digest: str = field(default="", kw_only=True)
    """The SHA-256 (hex) of the whole body if only part of it was recorded; empty if all was recorded, or if it is
    not known."""

    @property
    def size(self) -> int:
        """Bytes of the body as on the wire, including those that were passed on but not recorded."""
        return len(self.body) + self.lost

    def header(self, name: str) -> str | None:
        """The first value of a header, whose name is not case-sensitive; None if it is absent."""
        headers = self.headers
        recent, before = _recent
        if recent[0] is headers:
            return recent[1].get(name.lower())
        if before[0] is headers:
            return before[1].get(name.lower())
        return _first(headers).get(name.lower())


@dataclass(frozen=True, slots=True)
class Request(Message):
    method: str = "GET"
    target: str = "/"
    """Path and query exactly as sent (Latin-1), including double slashes and a trailing ``?``."""

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


REHEARSAL = "rehearsal"
"""The client whose requests are those of a rehearsal, where other clients have the name of their program."""
TO_PUPPETDB = "a master to PuppetDB"
"""The client whose requests are those of a master to PuppetDB."""
REHEARSAL_OF = "rehearsal-of"
"""The item of a capture's metadata that says which runs it rehearses, and how they are compared."""
REPLAY_OF = "replay-of"
"""The item of a capture's metadata that says which run was replayed: its agent need not be that node."""
REHEARSED = f"{REHEARSAL} of "
"""The beginning of the names of a rehearsal's connections; the node, ``#`` and more follow."""


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
    """DER certificates the proxy presented to this peer, its own first. On the agent's leg: the certificate that the
    agent saw as the master's; on the master's leg: the identity used on the agent's behalf."""
    node: str | None = None
    """The certname of the host whose own agent it is, as `run` has it; None: not known but from what is sent."""
    tunnelled: bool = False
    """On the agent's leg: the proxy passed the connection on unread, and ``own_chain`` is the master's own."""
    place: str | None = None
    """Where it was recorded, in a capture that was merged of several places (``inspector.capture.places``); None: there
    is one place."""

    @property
    def bare(self) -> Leg:
        """The connection without its certificates."""
        return replace(self, peer_chain=(), own_chain=())

    @property
    def rehearsed(self) -> str | None:
        """The node that another master was asked for (``inspector.rehearsal``); None if an agent connected."""
        return self.id.removeprefix(REHEARSED).rpartition("#")[0] or None if self.id.startswith(REHEARSED) else None

    @property
    def probed(self) -> bool:
        """The agent was deliberately presented a certificate that it must not trust: refusing it is not a fault."""
        return self.side == "agent" and bool(self.own_chain) and _issued_by(PROBE, self.own_chain[0])

    @property
    def for_one_run(self) -> bool:
        """The certificate presented to the agent is of a CA that it trusts for one run: nothing follows from it."""
        return self.side == "agent" and bool(self.own_chain) and _issued_by(RUN_CA, self.own_chain[0])


@lru_cache(maxsize=256)
def _issued_by(name: str, certificate: bytes) -> bool:
    # DER contains the issuer's name unchanged; only the proxy itself presents certificates on this side.
    return name.encode() in certificate


@dataclass(frozen=True, slots=True)
class Closed:
    """How a connection ended."""

    at: float
    by: Literal["peer", "proxy"] | None = None


@dataclass(frozen=True, slots=True)
class Connection:
    """A leg and its end; also for connections that never carried a request."""

    leg: Leg
    closed: Closed | None = None


@dataclass(frozen=True, slots=True)
class Identity:
    """Whether the proxy used the calling agent's identity towards the master, and why not."""

    mode: str
    """``keys``, ``headers``, ``mint`` or ``none``."""
    certname: str | None = None
    """The certname of the identity; None if none was used."""
    reason: str | None = None
    """Why no identity was used though the agent has a certificate; None if one was used or none is necessary."""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request and its response or error."""

    agent: Leg
    request: Request
    response: Response | None = None
    """None: there was no response, ``error`` says why."""
    master: Leg | None = None
    """None: the master was never reached (or the flow file does not say)."""
    identity: Identity | None = None
    error: str | None = None
    stripped: tuple[str, ...] = ()
    """Header names that the agent sent and the proxy did not pass on to the master."""
    seq: int = 0
    failed: float | None = None
    """When it was aborted, if there was no response, or only a part of it."""
    injected: str = ""
    """The fault that the proxy injected on purpose; empty: none."""
    added: str = ""
    """What the proxy added to the answer that the agent got, which is not in this record; empty: nothing."""
    unread: str = ""
    """Why a body is missing that the capture has; empty: none is."""

    @property
    def legs(self) -> tuple[Leg, ...]:
        """Its connections: the agent's, and the master's if there was one."""
        return (self.agent, self.master) if self.master else (self.agent,)

    @property
    def withheld(self) -> str:
        """Why the proxy answered itself and did not ask the master, if it was no injected fault; empty: it did not."""
        answered = self.response is not None and self.master is None and not self.injected
        return (self.identity.reason or "") if answered and self.identity else ""

    @property
    def time(self) -> float:
        """When it began, as precisely as is known."""
        return self.request.started or self.agent.secured or self.agent.connected or 0.0

    @property
    def ended(self) -> float:
        """When the last byte of it was seen."""
        answered = self.response.ended if self.response else None
        return answered or self.failed or self.request.ended or self.time


@dataclass(frozen=True, slots=True)
class Handshake:
    """A TLS handshake that failed, on either side."""

    leg: Leg
    time: float
    reason: str
    """Why it failed: the message that a Puppet agent prints for it, if there is one."""
    alert: str | None = None
    """The TLS alert's name as in RFC 8446, e.g. ``certificate_revoked``; None if there was no alert."""
    alert_by: Literal["agent", "proxy", "master"] | None = None
    """Who sent the alert."""
    culprits: tuple[str, ...] = ()
    """Every verification error found, each with the subject of its certificate or CRL."""
    seq: int = 0
    injected: str = ""
    """The fault that the proxy injected on purpose; empty: none."""
    master_ahead: float | None = None
    """Seconds by which the master's clock is ahead of the proxy's, which asked because a date was in question; None: it
    did not, or got no answer."""

    @property
    def legs(self) -> tuple[Leg, ...]:
        return (self.leg,)

    @property
    def ended(self) -> float:
        return self.time


@dataclass(frozen=True, slots=True)
class Gap:
    """Something that could not be recorded, or a hook of the inspector that failed."""

    time: float
    reason: str
    lost: int = 0
    """Records lost for good."""
    seq: int = 0

    @property
    def legs(self) -> tuple[Leg, ...]:
        return ()

    @property
    def ended(self) -> float:
        return self.time


type Record = Exchange | Handshake | Gap


type RecordTab = Literal["meaning", "request", "response", "tls", "timing"]
"""The tabs of a record on which evidence appears."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place in a record: a tab, a part of it, and a text to find there."""

    tab: RecordTab
    part: str = ""
    """The part's title in lower case; empty: all parts of the tab."""
    needle: str = ""
    """The text to find, not case-sensitive; empty: the beginning of the part."""
    fallback: str = ""
    """The text to find where the needle is not found."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A deviation from the protocol: the rule, the severity, a message, and the records that are its evidence."""

    rule: str
    severity: Severity
    message: str
    seqs: tuple[int, ...] = field(default=())
    since: float = field(default=0.0, compare=False)
    """When it first appeared; 0 if that is not known."""
    places: tuple[Place, ...] = field(default=(), compare=False)
    """The places of the evidence in its records; in each record the first place that exists there counts."""
    printed: str = field(default="", compare=False)
    """The message of an agent or a master that it rests on; empty without one."""
    follows: tuple[int, ...] = field(default=(), compare=False)
    """Refused requests of which it is only a consequence: an error found in one of these explains it. Empty: it may
    have a reason of its own."""


@dataclass(frozen=True, slots=True)
class OpenRequest:
    """A request whose head has arrived and whose answer is not complete."""

    leg: str
    """The agent's connection, as in ``Leg.id``."""
    time: float
    """When its head arrived."""
    method: str
    target: str
    """Path and query as sent, shortened; without the query where secrets are masked."""


@dataclass(frozen=True, slots=True)
class OpenConnection:
    """An agent's connection that is not closed."""

    leg: str
    """As in ``Leg.id``."""
    connected: float
    address: str | None = None
    certname: str | None = None
    """The name in the certificate that was verified; None if there was none."""
    last: float = 0.0
    """When its latest exchange ended; 0 before the first."""


@dataclass(frozen=True, slots=True)
class Present:
    """What is under way while a proxy records, or was when that ended, beside the records: it is over when its records
    come.

    ``recording`` says what became of the proxy: ``open`` while it records, ``ended`` after it stopped, ``cut off``
    if it was killed, ``unknown`` where nothing says it (captures up to version 2, imports).
    """

    recording: Literal["open", "ended", "cut off", "unknown"] = "unknown"
    time: float = 0.0
    """Until when it is known to be so: the moment of reading while the proxy records, else when it was last written.
    0 where nothing was. How long something takes is counted to this moment."""
    requests: tuple[OpenRequest, ...] = ()
    """In the order in which they arrived."""
    connections: tuple[OpenConnection, ...] = ()
    """In the order in which they were opened."""
    more_requests: int = 0
    """Requests beside these: the proxy lists a limited number."""
    more_connections: int = 0


NOTHING_OPEN = Present()
"""The present of a capture of which only its records are known."""
