"""The files of one run: the requests for each, the master's metadata, the fetches, and whether the content was right.

Names are keys of the URL, as in ``observations``; a file in a static catalog counts as requested.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import TYPE_CHECKING, Literal, NamedTuple

from inspector.explain import resource_outcomes
from inspector.explain.resource_outcomes import Status
from inspector.protocol import decode
from inspector.protocol import documents as d
from inspector.protocol.files import DIGESTS, NO_DIGESTS, ChecksumResult, check
from inspector.protocol.kinds import CONTENT, METADATA, Kind
from inspector.runs.observations import served

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Iterator, Mapping

    from inspector.analysis.analyzer import Step
    from inspector.model import Exchange, Response
    from inspector.protocol.endpoints import Match

type Asking = Literal["metadata", "listing", "plugins", "catalog", "content"]
"""How the agent learned of a file: by a request for it, by a list of its directory, by a list of its mount, or by a
static catalog; ``content``: it fetched the file without metadata."""
_ASKING: dict[Kind, Asking] = {
    Kind.FILE_METADATA: "metadata",
    Kind.FILE_LISTING: "listing",
    Kind.PLUGIN_LISTING: "plugins",
    Kind.PLUGIN_METADATA: "plugins",
}


_IGNORED = ("source_permissions", "ignore")
_LEFT = (Status.FAILED, Status.SKIPPED, Status.OUT_OF_SYNC)
"""Outcomes of resources whose files the agent did not write."""


class FileState(StrEnum):
    """The result for a file, the worst first."""

    WRONG = "wrong"
    """The content does not match the master's metadata."""
    MISSING = "missing"
    """The file does not exist on the master, and neither does any other candidate of its resource."""
    REFUSED = "refused"
    """The master refused the request, or did not answer."""
    FETCHED = "fetched"
    IN_SYNC = "in sync"
    """Its metadata were requested and its content was not: the agent already had it."""
    PASSED = "passed over"
    """The file does not exist on the master, and the agent used the next candidate."""
    UNKNOWN = "not known"
    """Not fetched, and it is unknown whether the agent had it: plugins in a list, a run in noop mode, a resource that
    failed."""
    BARE = "no content"
    """A directory or a link."""

    @property
    def differs(self) -> bool:
        """Whether the agent's file differed from the master's."""
        return self in (FileState.WRONG, FileState.MISSING, FileState.REFUSED, FileState.FETCHED)


class Fetch(NamedTuple):
    """One request for a file's content."""

    seq: int
    status: int | None
    """None: there was no response."""
    size: int
    """Bytes of the response's body as on the wire."""
    verdict: ChecksumResult
    why: str = ""
    """Why it cannot be checked."""


@dataclass(slots=True)
class FileUse:
    """The use of one file in one environment by one run."""

    name: str
    environment: str | None
    asking: Asking
    asked: list[int] = field(default_factory=list)
    """The records that requested or contained its metadata."""
    status: int | None = 200
    """Of the latest response about its metadata; None: there was no response."""
    metadata: d.FileMetadata | None = None
    """The latest metadata from the master."""
    fetches: list[Fetch] = field(default_factory=list)
    resources: list[str] = field(default_factory=list)
    """The file resources that copy it."""
    instead: str | None = None
    """The candidate that was used instead of it."""
    permissions: bool = True
    """Whether owner, group and mode may be taken from the master's file: False if the agent asked without them."""
    unsettled: bool = False
    """The agent left it as it was: in noop mode, or because its resource failed or was skipped."""

    @property
    def state(self) -> FileState:
        if any(fetch.verdict is ChecksumResult.WRONG for fetch in self.fetches):
            return FileState.WRONG
        if self.times:
            return FileState.FETCHED
        status = self.fetches[-1].status if self.fetches else self.status
        if status == 404:
            return FileState.PASSED if self.instead else FileState.MISSING
        if status is None or status >= 400:
            return FileState.REFUSED
        if self.metadata and self.metadata.type not in ("", "file"):
            return FileState.BARE
        return FileState.UNKNOWN if self.unsettled or self.asking in ("plugins", "content") else FileState.IN_SYNC

    @property
    def present(self) -> bool | None:
        """Whether the agent already had it; None if that is not known."""
        return {FileState.IN_SYNC: True, FileState.FETCHED: False, FileState.WRONG: False}.get(self.state)

    @property
    def times(self) -> int:
        """How often its content was received."""
        return sum(fetch.status == 200 for fetch in self.fetches)

    @property
    def size(self) -> int:
        """Bytes received, in all fetches together."""
        return sum(fetch.size for fetch in self.fetches if fetch.status == 200)

    @property
    def verdict(self) -> Fetch | None:
        """The fetch that shows best whether the content is right; None if it was not fetched."""
        received = [fetch for fetch in self.fetches if fetch.status == 200]
        order = (ChecksumResult.WRONG, ChecksumResult.UNCHECKABLE, ChecksumResult.RIGHT)
        return min(received, key=lambda fetch: order.index(fetch.verdict), default=None)

    @property
    def seq(self) -> int:
        """The record that is the evidence for its state."""
        if fetch := self.verdict:
            return fetch.seq
        return self.fetches[-1].seq if self.fetches else self.asked[-1]


class FileTotals(NamedTuple):
    """Totals of all files of a run."""

    asked: int
    in_sync: int
    fetched: int
    """Number of different files."""
    again: int
    """Fetches of files that were fetched before."""
    size: int
    wrong: int
    missing: int


def files(steps: Iterable[Step]) -> list[FileUse]:
    """Every file that a run requested, in the order of the requests."""
    files = _Files()
    for step in steps:
        files.add(step)
    return files.done()


def totals(uses: Iterable[FileUse]) -> FileTotals:
    """Compute the totals."""
    states = [(use.state, use.times, use.size) for use in uses]
    counted = {state: sum(entry[0] is state for entry in states) for state in FileState}
    return FileTotals(
        len(states),
        counted[FileState.IN_SYNC],
        counted[FileState.FETCHED] + counted[FileState.WRONG],
        sum(max(0, times - 1) for _, times, _ in states),
        sum(size for *_, size in states),
        counted[FileState.WRONG],
        counted[FileState.MISSING],
    )


class _Files:
    def __init__(self) -> None:
        self.uses: dict[tuple[str, str | None], FileUse] = {}
        self.environments: dict[str, str | None] = {}
        """The latest metadata of each name."""
        self.static: dict[str, FileUse] = {}
        """By the key of the static_file_content request."""
        self.code_id: str | None = None
        self.sources: dict[str, list[str]] = {}
        """By file resource, the names that its agent tries in turn."""
        self.last: d.Catalog | None = None
        self.report: d.Report | None = None

    def use(self, name: str, environment: str | None, asking: Asking) -> FileUse:
        known = self.uses.setdefault((name, environment), FileUse(name, environment, asking))
        if known.asking == "content":
            known.asking = asking
        return known

    def add(self, step: Step) -> None:
        if isinstance(step.request, d.Report):
            self.report = step.request
        exchange, match = step.exchange, step.match
        if exchange is None or match is None:
            return
        kind = match.endpoint.kind
        if kind is Kind.CATALOG and isinstance(step.response, d.Catalog):
            self.catalog(exchange.seq, step.response, match)
        elif match.key and kind in CONTENT:
            self.content(exchange, match, match.key, step.response)
        elif match.key and kind in METADATA:
            self.metadata(exchange, match, match.key, step.response)

    def metadata(self, exchange: Exchange, match: Match, name: str, answer: d.Document | None) -> None:
        below: Asking = _ASKING[match.endpoint.kind]
        use = self.use(name, match.environment, below)
        use.asked.append(exchange.seq)
        use.status = exchange.response.status if exchange.response else None
        described = answer.files if isinstance(answer, d.FileMetadatas) else []
        if isinstance(answer, d.FileMetadata):
            described = [answer]
        use.permissions = _IGNORED not in match.parameters
        for entry in described:
            one = self.describe(exchange.seq, _below(name, entry), entry, match.environment, below)
            one.permissions = use.permissions

    def describe(
        self, seq: int, name: str, metadata: d.FileMetadata, environment: str | None, asking: Asking
    ) -> FileUse:
        use = self.use(name, environment, asking)
        if use.asked[-1:] != [seq]:
            use.asked.append(seq)
        use.status, use.metadata = 200, metadata
        self.environments[name] = environment
        return use

    def catalog(self, seq: int, catalog: d.Catalog, match: Match) -> None:
        self.last, self.code_id, self.static = catalog, catalog.code_id, {}
        environment = catalog.environment or match.environment
        described = [(served(metadata.source), metadata) for metadata in catalog.metadata.values()]
        for by_source in catalog.recursive_metadata.values():
            for source, tree in by_source.items():
                top = served(source)
                described += [(_below(top, metadata) if top else None, metadata) for metadata in tree]
        for name, metadata in described:
            name = name or metadata.content_path
            if name:
                use = self.describe(seq, name, metadata, environment, "catalog")
                if metadata.content_path:
                    self.static[metadata.content_path] = use
        self.sources = {}
        for file in catalog.files:
            names = [name for source in file.sources if (name := served(source))]
            if names:
                self.sources[file.ref] = names

    def content(self, exchange: Exchange, match: Match, name: str, answer: d.Document | None) -> None:
        response = exchange.response
        status = response.status if response else None
        static = self.static.get(name) if match.endpoint.kind is Kind.STATIC_CONTENT else None
        use = static or self.use(name, match.environment, "content")
        size = response.size if response else 0
        verdict, why = ChecksumResult.UNCHECKABLE, ""
        if response and status == 200:
            code_id = next((value for key, value in match.parameters if key == "code_id"), None)
            if static and code_id != self.code_id:
                why = "metadata of another code_id"
            elif use.metadata is None and self.environments.get(name, use.environment) != use.environment:
                why = "metadata of another environment"
            else:
                verdict, why = _checked(response, exchange.error, use.metadata, answer)
        use.fetches.append(Fetch(exchange.seq, status, size, verdict, why))

    def done(self) -> list[FileUse]:
        by_name: dict[str, list[FileUse]] = {}
        for use in self.uses.values():
            by_name.setdefault(use.name, []).append(use)
        by_source: dict[str, list[str]] = {}
        for ref, names in self.sources.items():
            there = next((name for name in names if any(use.metadata for use in by_name.get(name, ()))), None)
            for name in names:
                by_source.setdefault(name, []).append(ref)
                for use in by_name.get(name, ()):
                    if use.metadata is None and use.status == 404:
                        use.instead = there
        outcomes = {one.ref: one.status for one in resource_outcomes.resources(self.last, self.report)}
        for use in self.uses.values():
            use.resources += _resources(use.name, by_source, outcomes)
            noop = self.report is not None and bool(self.report.noop)
            use.unsettled = noop or any(outcomes.get(ref) in _LEFT for ref in use.resources)
        return list(self.uses.values())


def _resources(name: str, by_source: Mapping[str, list[str]], outcomes: Container[str]) -> Iterator[str]:
    """The file resources that copy a file: with its source, or made by the agent below one that copies a directory."""
    yield from by_source.get(name, ())
    at = len(name)
    for _ in range(resource_outcomes.DEPTH):
        if (at := name.rfind("/", 0, at)) < 1:
            return
        for ref in by_source.get(name[:at], ()):
            if (below := f"{ref.removesuffix(']').rstrip('/')}{name[at:]}]") in outcomes:
                yield below


def _checked(
    response: Response, error: str | None, metadata: d.FileMetadata | None, answer: d.Document | None
) -> tuple[ChecksumResult, str]:
    promised = (response.header("content-length") or "").strip()
    if response.lost or error or (promised.isdecimal() and int(promised[:20]) > response.size):
        return ChecksumResult.UNCHECKABLE, "incomplete"
    if metadata is None:
        return ChecksumResult.UNCHECKABLE, "no metadata"
    if metadata.checksum is None or metadata.checksum.type in NO_DIGESTS:
        return ChecksumResult.UNCHECKABLE, f"checksum {metadata.checksum.type}" if metadata.checksum else "no checksum"
    if metadata.checksum.type not in DIGESTS:
        return ChecksumResult.UNCHECKABLE, f"unknown checksum {metadata.checksum.type}"
    # Most are SHA-256, which was computed when the body was decoded.
    if isinstance(answer, d.Opaque) and answer.sha256 == metadata.checksum.digest:
        return ChecksumResult.RIGHT, ""
    body = decode.content(response)
    if body is None:
        return ChecksumResult.UNCHECKABLE, "its content encoding cannot be decoded"
    verdict = check(body, metadata.checksum)
    return verdict, "" if verdict is not ChecksumResult.UNCHECKABLE else "its checksum is not a digest"


def _below(name: str, metadata: d.FileMetadata) -> str:
    return name if metadata.relative_path in (None, "", ".") else f"{name}/{metadata.relative_path}"
