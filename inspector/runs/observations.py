"""Observations of a run: one small record per request, for views and rules."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import chain, islice
from typing import TYPE_CHECKING, NamedTuple, Protocol

from inspector.protocol import documents as d
from inspector.protocol.kinds import CONTENT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inspector.model import Exchange, Phase
    from inspector.protocol.endpoints import Endpoint, Match
    from inspector.protocol.files import Checksum

RETAINED = 100
"""How many of the first and of the last items of a long series are kept."""
FILES = 50_000
"""Files of one run whose metadata are kept; what comes after those is not checked."""


class Bounded[T](list[T]):
    """The first and the last items of a series: an unsigned agent polls for weeks, and memory must not grow."""

    __slots__ = ("total",)

    def __init__(self, items: Iterable[T] = ()) -> None:
        super().__init__()
        self.total = 0
        """How many items there were."""
        self.extend(items)

    def append(self, item: T, /) -> None:
        super().append(item)
        self.total += 1
        if len(self) > 2 * RETAINED:
            del self[RETAINED]

    def extend(self, items: Iterable[T], /) -> None:
        for item in items:
            self.append(item)


class Numbered(Protocol):
    """What has the number of the record that it was read from."""

    @property
    def seq(self) -> int: ...


def merge[T: Numbered](series: Bounded[T], other: Bounded[T]) -> None:
    """Add the items of another series to a series, and put all in the order of their records."""
    total = series.total + other.total
    items = sorted([*series, *other], key=lambda item: item.seq)
    series.clear()
    series.extend(items)
    series.total = total


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
    requested: str | None
    """The requested environment."""
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
class RequestSent:
    """A request without a client certificate, one that was refused, or one that was put off (503)."""

    seq: int
    endpoint: Endpoint
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
    requests: int = 0
    idle: float = 0.0
    """Seconds of silence before the latest request on it."""
    after: int | None = None
    """Status of the answer before the latest one."""
    status: int | None = None
    """Of the latest answer."""


class FileChecksum(NamedTuple):
    """The checksum of a file as the master sent it."""

    checksum: Checksum
    seq: int
    environment: str | None


class MetadataAnswer(NamedTuple):
    """The answer to the last request for the metadata of a file or directory."""

    status: int | None
    seq: int


@dataclass(slots=True)
class Fetched:
    """Content that came, in one environment: the latest in which it was asked for."""

    environment: str | None
    first: int
    last: int
    """The first and the last record that brought it."""
    times: int = 1


class Elsewhere(NamedTuple):
    """Files of a catalog that come from a web server."""

    resources: int
    unpinned: int
    """Those without ``checksum_value``."""


@dataclass(slots=True)
class FilesSeen:
    """The files of one run: their metadata from the master, and which were fetched.

    Names are keys of the URL: ``modules/demo/app.conf``, ``plugins/facter/role.rb``.
    """

    checksums: dict[str, FileChecksum] = field(default_factory=dict)
    """The latest checksum of each file by its name, from metadata responses."""
    metadata_answers: dict[str, MetadataAnswer] = field(default_factory=dict)
    """The latest metadata response for each requested name."""
    fetched: dict[str, Fetched] = field(default_factory=dict)
    """Each name whose content was received."""
    static: dict[str, list[Checksum]] = field(default_factory=dict)
    """What a static catalog says of each file, by the key of the request that fetches it."""
    inlined: dict[str, bool] = field(default_factory=dict)
    """Each name whose metadata a static catalog holds, and whether it says where its version is to be had."""
    code_id: str | None = None
    """The version that the static catalog names."""
    catalog: int | None = None
    """The record of the catalog whose files these are."""
    sources: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """File resources that only masters can serve: by reference the names that the agent tries in turn."""
    elsewhere: dict[str, Elsewhere] = field(default_factory=dict)
    """Web servers that the catalog's files come from, as ``https://host``."""

    @property
    def full(self) -> bool:
        """True if there were more files than are remembered: what is not known may have been said."""
        return max(len(self.checksums), len(self.metadata_answers), len(self.fetched), len(self.inlined)) > FILES

    def knows(self, name: str) -> bool:
        """Whether the agent received metadata of a file, or requested a directory that may contain it."""
        while name:
            if name in self.metadata_answers or name in self.checksums or name in self.inlined:
                return True
            name = name.rpartition("/")[0]
        return False

    def add(self, exchange: Exchange, match: Match, answer: d.Document | None) -> None:
        """Take in an exchange about files."""
        name, status = match.key, exchange.response.status if exchange.response else None
        if name is None or self.full:
            return
        if match.endpoint.kind in CONTENT:
            if status == 200:
                self._fetch(name, match.environment, exchange.seq)
            return
        self.metadata_answers[name] = MetadataAnswer(status, exchange.seq)
        if isinstance(answer, d.FileMetadata):
            self._tell(name, answer, exchange.seq, match.environment)
        elif isinstance(answer, d.FileMetadatas):
            for metadata in answer.files[:FILES]:
                self._tell(_below(name, metadata), metadata, exchange.seq, match.environment)

    def _fetch(self, name: str, environment: str | None, seq: int) -> None:
        known = self.fetched.get(name)
        if known and known.environment == environment:
            known.last, known.times = seq, known.times + 1
        else:
            self.fetched[name] = Fetched(environment, seq, seq)

    def _tell(self, name: str, metadata: d.FileMetadata, seq: int, environment: str | None) -> None:
        if metadata.checksum and metadata.type != "link":
            self.checksums[name] = FileChecksum(metadata.checksum, seq, environment)
        else:
            self.checksums.pop(name, None)

    def add_catalog(self, seq: int, catalog: d.Catalog) -> None:
        """Take in a catalog: where its files come from and, if it is static, what it says of them."""
        self.catalog, self.code_id = seq, catalog.code_id
        static = islice(catalog.contents.items(), FILES)
        self.static = {
            key: [metadata.checksum for metadata in checksums if metadata.checksum] for key, checksums in static
        }
        single = ((served(each.source), each) for each in catalog.metadata.values())
        trees = (
            (_below(name, each), each)
            for by_source in catalog.recursive_metadata.values()
            for source, tree in by_source.items()
            if (name := served(source))
            for each in tree
        )
        known = ((name, each.content_uri is not None) for name, each in chain(single, trees) if name)
        self.inlined = dict(islice(known, FILES))
        self.sources, self.elsewhere = {}, {}
        for file in islice(catalog.files, FILES):
            names = [served(each) for each in file.sources]
            if all(names):
                self.sources[file.ref] = tuple(name for name in names if name)
            for server in {found[0] for each in file.sources if (found := _WEB.match(each))}:
                known_of = self.elsewhere.get(server, Elsewhere(0, 0))
                if known_of.resources or len(self.elsewhere) < RETAINED:
                    self.elsewhere[server] = Elsewhere(
                        known_of.resources + 1, known_of.unpinned + (file.checksum_value is None)
                    )


_PUPPET = re.compile(r"puppet://[^/]*/+(.*[^/])/*", re.DOTALL)
_WEB = re.compile(r"https?://[^/?#@\s]+(?=[/?#]|$)")
"""Scheme and host; what holds a password is left out."""


def served(source: str | None) -> str | None:
    """The name by which a master serves a file resource's ``source``; None if it comes from elsewhere."""
    found = _PUPPET.fullmatch(source or "")
    return found[1] if found else None


def _below(name: str, metadata: d.FileMetadata) -> str:
    return name if metadata.relative_path in (None, "", ".") else f"{name}/{metadata.relative_path}"
