"""Observations of a run: one small record per request, for views and rules."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import chain, islice, pairwise
from typing import TYPE_CHECKING, NamedTuple, Protocol

from inspector import regex
from inspector.protocol import documents as d
from inspector.protocol.kinds import CONTENT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from inspector.model import Exchange, Leg, Phase
    from inspector.protocol.endpoints import Endpoint, Match
    from inspector.protocol.files import Checksum
    from inspector.protocol.kinds import Kind

RETAINED = 100
"""How many of the first and of the latest items of a long series are stored."""
FILES = 50_000
"""Maximum number of files of one run whose metadata are stored; further files are not checked."""
REFUSALS = 1000
"""Maximum number of refused requests for files whose words are stored."""
WORDS = 300
"""How many characters of these words are stored, which is enough to tell them apart."""

START_BURST = 1.0
"""Agents up to 6.3 request their certificate several times within this many seconds when they start."""
STEADY = 0.1
"""Relative difference from the usual interval up to which an interval counts as the same setting."""


def is_redirect(status: int) -> bool:
    """Whether an answer sends the agent to another address; 304 says that its copy is current."""
    return 300 <= status < 400 and status != 304


def refusal(status: int | str, message: str) -> str:
    """Return what an agent prints of a refused request, shortened."""
    return " ".join(f"Error {status} on SERVER: {message[:WORDS]}".split())[:WORDS]


class Bounded[T](list[T]):
    """The first and the latest items of a series. It is bounded, because an unsigned agent may poll for weeks."""

    __slots__ = ("total",)

    def __init__(self, items: Iterable[T] = ()) -> None:
        super().__init__()
        self.total = 0
        """How many items the series has had."""
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
    """An observation with the number of the record that it was read from."""

    @property
    def seq(self) -> int: ...


def merge[T: Numbered](series: Bounded[T], other: Bounded[T]) -> None:
    """Merge two series, in the order of their records."""
    total = series.total + other.total
    items = sorted([*series, *other], key=lambda item: item.seq)
    series.clear()
    series.extend(items)
    series.total = total


@dataclass(slots=True)
class PhaseSpan:
    """The share of one phase in a run."""

    phase: Phase
    exchanges: int = 0
    duration: float = 0.0
    """Seconds from the first byte to the last byte, summed over all stretches of this phase."""


@dataclass(frozen=True, slots=True)
class CsrSent:
    seq: int
    time: float
    key: str | None
    """The public key's digest; None if the request could not be read."""
    status: int | None
    text: str
    """The master's answer, if it gave a reason."""
    fingerprint: str = ""
    """The request's, as the CA lists it."""
    requested: frozenset[str] | None = None
    """The alternative names and extensions that it asks for; None if it is not known, or too many."""


@dataclass(frozen=True, slots=True)
class CertificateAnswer:
    seq: int
    time: float
    status: int | None
    certificate: d.Certificate | None


@dataclass(frozen=True, slots=True)
class Polling:
    """Repeated requests for a certificate at a fixed interval, all answered with 404."""

    interval: float
    """The usual interval in seconds."""
    times: int
    first: float
    last: float
    seqs: tuple[int, int]

    @classmethod
    def of(cls, answers: Bounded[CertificateAnswer]) -> Polling | None:
        """Return how an agent waits for its certificate; None if it does not, or is only started from time to time."""
        polls = [answer for answer in answers if answer.status == 404]
        bursts = [b.time for a, b in pairwise(polls) if b.time - a.time > START_BURST]
        if len(bursts) < 2:
            return None
        bursts.insert(0, polls[0].time)
        from statistics import median

        gaps = [later - earlier for earlier, later in pairwise(bursts)]
        usual = median(gaps)
        if sum(abs(gap - usual) <= STEADY * usual for gap in gaps) < 0.75 * len(gaps):
            return None
        omitted = answers.total - len(answers)  # only the first and the last requests are stored
        return cls(usual, len(bursts) + omitted, bursts[0], polls[-1].time, (polls[0].seq, polls[-1].seq))


@dataclass(frozen=True, slots=True)
class CatalogAnswer:
    seq: int
    time: float
    status: int | None
    usable: bool
    requested: str | None
    """The requested environment."""
    environment: str | None
    """The environment of the catalog."""
    text: str
    """Why there is no catalog, in the words of the master (or of the decoder)."""
    transaction_uuid: str | None = None
    waited: float = 0.0
    """Seconds from the end of the request to the first byte of the response."""
    without_facts: bool = False
    """The request sent none, as `puppet catalog download` up to 8."""


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
    """Requested with If-Modified-Since: the agent already has a copy."""


@dataclass(frozen=True, slots=True)
class RequestSent:
    """A request without a client certificate, a refused request, or one answered 503 (retry later)."""

    seq: int
    endpoint: Endpoint
    status: int | None
    time: float = 0.0
    retry_after: str | None = None


@dataclass(frozen=True, slots=True)
class Unanswered:
    """A request without an answer, unless it was sent again and answered then."""

    seq: int
    endpoint: Endpoint
    target: str
    """Method and path."""
    reason: str
    """Why there was no answer, as the record says."""
    waited: float
    """Seconds from the complete request to the end."""
    idle: float
    """Seconds for which the agent's connection had been silent before; 0 for the first request on it."""
    leg: Leg | None
    """The connection to the master, without certificates; None if it is not known."""


@dataclass(slots=True)
class LegUse:
    """One connection of an agent. Each costs a full TLS handshake, because sessions are never resumed."""

    first: int
    """Number of its first record."""
    began: float
    ended: float
    """When the latest response on it was complete."""
    phase: Phase
    """Of its first request."""
    requests: int = 0
    idle: float = 0.0
    """Seconds of silence before the latest request on it."""
    after: int | None = None
    """Status of the response before the latest one."""
    status: int | None = None
    """Of the latest response."""


class FileChecksum(NamedTuple):
    """The checksum of a file as sent by the master."""

    checksum: Checksum
    seq: int
    environment: str | None


class Refusal(NamedTuple):
    """A refused request for a file or to the filebucket."""

    seq: int
    status: int
    kind: Kind
    key: str
    """The file's name, or its digest in the filebucket."""
    message: str
    """The master's reason, shortened; empty without one."""


class MetadataAnswer(NamedTuple):
    """The response to the latest request for the metadata of a file or directory."""

    status: int | None
    seq: int
    missing: bool = False
    """The master says that there is no such file, in an environment that it has."""


@dataclass(slots=True)
class Fetched:
    """Content received in one environment: the latest in which it was requested."""

    environment: str | None
    first: int
    last: int
    """The first and the latest record with this content."""
    times: int = 1


class Elsewhere(NamedTuple):
    """The files of a catalog that come from a web server."""

    resources: int
    unpinned: int
    """The files without ``checksum_value``."""


@dataclass(slots=True)
class ObservedFiles:
    """The files of one run: their metadata from the master, and which were fetched.

    Names are keys of the URL: ``modules/demo/app.conf``, ``plugins/facter/role.rb``.
    """

    checksums: dict[str, FileChecksum] = field(default_factory=dict)
    """The latest checksum of each file by name, from metadata responses."""
    metadata_answers: dict[str, MetadataAnswer] = field(default_factory=dict)
    """The latest metadata response for each requested name."""
    fetched: dict[str, Fetched] = field(default_factory=dict)
    """Received content, by file name."""
    redirected: dict[str, int] = field(default_factory=dict)
    """Files whose latest request was answered with a redirect: by name, the record."""
    static: dict[str, list[Checksum]] = field(default_factory=dict)
    """The metadata of each file in a static catalog, by the key of the request that fetches the file."""
    inlined: dict[str, bool] = field(default_factory=dict)
    """Files with metadata in a static catalog: by name, whether the metadata say where to fetch that version."""
    code_id: str | None = None
    """The version named by the static catalog."""
    catalog: int | None = None
    """The record of the catalog to which these files belong."""
    sources: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """File resources that only masters can serve: by reference, the names that the agent tries in turn."""
    refusals: dict[str, Refusal] = field(default_factory=dict)
    """Refused requests for files and for the filebucket: by what the agent prints (``refusal``), the latest."""
    elsewhere: dict[str, Elsewhere] = field(default_factory=dict)
    """Web servers that the catalog's files come from, as ``https://host``."""

    @property
    def full(self) -> bool:
        """Whether there were more files than are stored: missing metadata may then have been sent."""
        answers = max(len(self.checksums), len(self.metadata_answers), len(self.redirected))
        return max(answers, len(self.fetched), len(self.inlined)) > FILES

    def knows(self, name: str) -> bool:
        """Whether the agent received metadata of a file, or requested a directory that may contain it."""
        while name:
            if name in self.metadata_answers or name in self.checksums or name in self.inlined:
                return True
            name = name.rpartition("/")[0]
        return False

    def add(self, exchange: Exchange, match: Match, answer: d.Document | None) -> None:
        """Add an exchange about files."""
        name, status = match.key, exchange.response.status if exchange.response else None
        if name is None or self.full:
            return
        if status is not None and is_redirect(status):
            self.redirected[name] = exchange.seq
        else:
            self.redirected.pop(name, None)
        if match.endpoint.kind in CONTENT:
            if status == 200:
                self._fetch(name, match.environment, exchange.seq)
            return
        self.metadata_answers[name] = MetadataAnswer(
            status, exchange.seq, status == 404 and not (isinstance(answer, d.ErrorDocument) and answer.no_environment)
        )
        if isinstance(answer, d.FileMetadata):
            self._tell(name, answer, exchange.seq, match.environment)
        elif isinstance(answer, d.FileMetadatas):
            for metadata in answer.files[:FILES]:
                self._tell(_below(name, metadata), metadata, exchange.seq, match.environment)

    def refuse(self, status: int, match: Match, answer: d.Document | None, seq: int) -> None:
        """Add a refused request. What a web proxy answers has no words of a master."""
        message = answer.message if isinstance(answer, d.ErrorDocument) and not answer.html else ""
        if len(self.refusals) < REFUSALS:
            words = refusal(status, message)
            self.refusals[words] = Refusal(seq, status, match.endpoint.kind, match.key or "", message[:WORDS])

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
        """Add a catalog: the sources of its files and, if it is static, their metadata."""
        self.catalog, self.code_id = seq, catalog.code_id
        static = islice(catalog.contents.items(), FILES)
        self.static = {
            key: [metadata.checksum for metadata in checksums if metadata.checksum] for key, checksums in static
        }
        single = ((served(metadata.source), metadata) for metadata in catalog.metadata.values())
        trees = (
            (_below(name, metadata), metadata)
            for by_source in catalog.recursive_metadata.values()
            for source, tree in by_source.items()
            if (name := served(source))
            for metadata in tree
        )
        known = ((name, metadata.content_uri is not None) for name, metadata in chain(single, trees) if name)
        self.inlined = dict(islice(known, FILES))
        self.sources, self.elsewhere = {}, {}
        for file in islice(catalog.files, FILES):
            names = [served(source) for source in file.sources]
            if all(names):
                self.sources[file.ref] = tuple(name for name in names if name)
            for server in {found[0] for source in file.sources if (found := _WEB.match(source))}:
                known_of = self.elsewhere.get(server, Elsewhere(0, 0))
                if known_of.resources or len(self.elsewhere) < RETAINED:
                    self.elsewhere[server] = Elsewhere(
                        known_of.resources + 1, known_of.unpinned + (file.checksum_value is None)
                    )


_PUPPET = regex.compile(r"puppet://[^/]*/+(.*[^/])/*", regex.DOTALL)
_WEB = regex.compile(r"(?P<it>https?://[^/?#@\s]+)(?:[/?#]|$)")
"""Scheme and host of a URL; user name and password are left out."""


def served(source: str | None) -> str | None:
    """The name by which a master serves a file resource's ``source``; None if it comes from elsewhere."""
    found = _PUPPET.fullmatch(source or "")
    return found[1] if found else None


def _below(name: str, metadata: d.FileMetadata) -> str:
    return name if metadata.relative_path in (None, "", ".") else f"{name}/{metadata.relative_path}"
