"""What a run was seen to do, in brief: one small record per request that views and rules come back to."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from inspector.protocol import documents as d

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inspector.model import Exchange, Phase
    from inspector.protocol.endpoints import Match
    from inspector.protocol.files import Checksum

KEPT = 100
"""How many of the first and of the last are kept of what may be many."""
FILES = 50_000
"""Files of one run whose metadata are kept; what comes after those is not checked."""


class Kept[T](list[T]):
    """The first and the last of many: an agent that nobody signs polls for weeks, and memory must not grow."""

    __slots__ = ("total",)

    def __init__(self, items: Iterable[T] = ()) -> None:
        super().__init__()
        self.total = 0
        """How many there were."""
        self.extend(items)

    def append(self, item: T, /) -> None:
        super().append(item)
        self.total += 1
        if len(self) > 2 * KEPT:
            del self[KEPT]

    def extend(self, items: Iterable[T], /) -> None:
        for item in items:
            self.append(item)


@dataclass(slots=True)
class PhaseSpan:
    """How much of a run one phase took."""

    phase: Phase
    exchanges: int = 0
    duration: float = 0.0
    """Seconds from the first byte of each stretch of this phase to its last byte."""


@dataclass(frozen=True, slots=True)
class CsrSent:
    seq: int
    time: float
    key: str | None
    """The public key's digest; None if the request could not be read."""
    status: int | None
    text: str
    """The master's answer, where it gave a reason."""


@dataclass(frozen=True, slots=True)
class CertificateAnswer:
    seq: int
    time: float
    status: int | None
    certificate: d.Certificate | None


@dataclass(frozen=True, slots=True)
class CatalogAnswer:
    seq: int
    time: float
    status: int | None
    usable: bool
    asked: str | None
    """The environment that was asked for."""
    environment: str | None
    """The environment that the catalog is for."""
    text: str
    """Why there is none, in the master's words (or in the decoder's)."""
    transaction_uuid: str | None = None
    waited: float = 0.0
    """Seconds from the whole request to the first byte of the answer."""


@dataclass(frozen=True, slots=True)
class ReportSent:
    seq: int
    status: int | None
    report: d.Report | None
    size: int = 0
    """Bytes as on the wire."""


@dataclass(frozen=True, slots=True)
class Bundle[T]:
    """A download of certificates or CRLs."""

    seq: int
    time: float
    status: int | None
    items: list[T] | None
    """None if the body could not be read."""
    refresh: bool
    """Asked for with If-Modified-Since: the agent has one already."""


@dataclass(frozen=True, slots=True)
class Request:
    """A request without a client certificate, one that was refused, or one that was put off (503)."""

    seq: int
    endpoint: str
    status: int | None
    time: float = 0.0
    retry_after: str | None = None


@dataclass(slots=True)
class LegUse:
    """One connection of an agent, each of which costs a TLS handshake: none is ever resumed here."""

    first: int
    """The first record on it."""
    began: float
    ended: float
    """When the last answer on it was complete."""
    phase: Phase
    """Of its first request."""
    used: int = 0
    idle: float = 0.0
    """Seconds of silence before the latest request on it."""
    after: int | None = None
    """Status of the answer before the latest one."""
    status: int | None = None
    """Of the latest answer."""


@dataclass(slots=True)
class FilesSeen:
    """The files of one run: what the master said of each, and what was fetched.

    Names are keys of the URL: ``modules/demo/app.conf``, ``plugins/facter/role.rb``.
    """

    told: dict[str, Checksum] = field(default_factory=dict)
    """Checksums by metadata requests, by name."""
    told_by: dict[str, int] = field(default_factory=dict)
    """Which record said so."""
    asked: dict[str, int | None] = field(default_factory=dict)
    """Each name whose metadata were asked for, and the status of the last answer."""
    fetched: dict[str, list[int]] = field(default_factory=dict)
    """The records that brought content, by name."""

    def add(self, exchange: Exchange, match: Match, answer: d.Document | None) -> None:
        """Take in an exchange about files."""
        name, status = match.key, exchange.response.status if exchange.response else None
        if name is None or len(self.told) > FILES or len(self.asked) > FILES or len(self.fetched) > FILES:
            return
        if match.endpoint.name in ("file_content", "plugin_file", "static_file_content"):
            if status == 200:
                self.fetched.setdefault(name, []).append(exchange.seq)
            return
        self.asked[name] = status
        if isinstance(answer, d.FileMetadata) and answer.checksum:
            self.told[name], self.told_by[name] = answer.checksum, exchange.seq
        elif isinstance(answer, d.FileMetadatas):
            for each in answer.files[:FILES]:
                if each.checksum:
                    inner = each.relative_path or "."
                    full = name if inner == "." else f"{name}/{inner}"
                    self.told[full], self.told_by[full] = each.checksum, exchange.seq
