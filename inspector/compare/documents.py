"""What of a run is compared: its facts, and the documents of its records."""

from __future__ import annotations

from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple, Protocol

from inspector.analysis.analyzer import retrace
from inspector.compare.differences import Section
from inspector.compare.masks import Masks
from inspector.explain import file_transfers
from inspector.protocol import bodies, decode
from inspector.protocol import documents as d
from inspector.protocol.kinds import CONTENT, Kind
from inspector.text import decisive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from inspector.analysis.analyzer import Step
    from inspector.explain.file_transfers import FileUse
    from inspector.model import Exchange, Leg, Phase, Record
    from inspector.runs.snapshot import RunSnapshot

CONTENT_MOST = 2**20
"""Bytes of a file whose content is compared; of a larger one the digest is."""
CONTENTS_MOST = 2**26
"""Bytes of all files of a run whose contents are compared."""
OWN_NAME = 4
"""Characters of the shortest name of a node that is recognized in its values."""
_NONE: Mapping[int, str] = MappingProxyType({})
_USUAL = ("stage", "class")
"""Types of the resources that every catalog has."""
_FRAME = frozenset({"main", "settings", ""})
"""Titles of those."""
_DEFINITION = "node"
"""The type of the resource for the node definition that was chosen: ``Node[default]``."""


class RequestMade(NamedTuple):
    """One request of a run."""

    seq: int
    phase: Phase
    kind: Kind | None
    """None: it is not Puppet's."""
    endpoint: str
    """The endpoint's name; the method and the path of a request that is not Puppet's."""
    key: str
    """The object that it names, without the agent's own name; empty if there is none."""
    method: str
    status: int | None
    """None: there was no response."""
    media: str
    """The format of the response."""
    duration: float
    """Seconds from its first byte to the last one of the response."""

    @property
    def name(self) -> str:
        """What it asks for."""
        return f"{self.endpoint} {self.key}" if self.key else self.endpoint


@dataclass(slots=True)
class RunDocuments:
    """One run, with what its records contain."""

    label: str
    """The name of the run in sentences: its capture and its number."""
    run: RunSnapshot
    catalog: d.Catalog | None = None
    """The last one that the agent could use."""
    catalog_media: str = ""
    catalog_failure: str = ""
    """Why the latest request for a catalog gave none, with masks."""
    facts: d.Facts | None = None
    report: d.Report | None = None
    unreadable: dict[Section, str] = field(default_factory=dict)
    """Why the facts, or the report, that it sent cannot be read."""
    requests: list[RequestMade] = field(default_factory=list)
    files: list[FileUse] = field(default_factory=list)
    contents: dict[int, bytes] = field(default_factory=dict)
    """The contents of files that are not too large, by record."""
    agent: Leg | None = None
    """A connection of the agent, by preference one with its certificate."""
    master: Leg | None = None
    """A connection to the master."""
    requested_key: str = ""
    """The SHA-256 of the public key in its latest signing request; empty: it sent none."""
    server: str | None = None
    """The name by which the agent called the master."""
    stored: Callable[[str], bytes | None] = lambda _digest: None
    """Finds a body of the same capture by its SHA-256: a file that the agent had already."""

    @property
    def name(self) -> str:
        """The agent's name."""
        return self.run.name

    @property
    def own_names(self) -> dict[str, str]:
        """The names of the node itself, which its values may contain, and what kind of name each is: the certname, and
        those in its facts."""
        network = self.facts.values.get("networking") if self.facts else None
        facts = network if isinstance(network, dict) else {}
        names = {kind: facts.get(kind) for kind in ("ip", "hostname", "fqdn")} | {"certname": self.name}
        return {name: kind for kind, name in names.items() if isinstance(name, str) and len(name) >= OWN_NAME}

    @property
    def without_catalog(self) -> str:
        """Why there is no catalog to compare, as the end of a sentence; empty if there is one."""
        if self.catalog is not None:
            return "has an empty catalog" if empty(self.catalog) else ""
        return "got no catalog" if self.catalog_failure else "asked for no catalog"


def masks_of(*sides: RunDocuments) -> Masks:
    """Return the masks of all that is secret in some runs."""
    return Masks(
        [side.catalog for side in sides if side.catalog is not None],
        [side.facts for side in sides if side.facts is not None],
    )


def empty(catalog: d.Catalog) -> bool:
    """Whether a catalog has nothing but what every catalog has: the main stage, the classes Main and Settings, and the
    node definition."""
    return all(
        resource.type.lower() == _DEFINITION or (resource.type.lower() in _USUAL and resource.title.lower() in _FRAME)
        for resource in catalog.resources
    )


class Records(Protocol):
    """A capture."""

    def record(self, seq: int) -> Record | None: ...
    def body(self, digest: str) -> bytes | None: ...


def of_run(
    capture: Records, seqs: Iterable[int], run: RunSnapshot, label: str, left_out: Mapping[int, str] = _NONE
) -> RunDocuments:
    """Return what is compared of a run in a capture, given the numbers of its records. ``left_out`` are records that
    cannot be analyzed, and why. Raises CaptureError."""
    records = (record for seq in seqs if (record := capture.record(seq)))
    return gather(retrace(records, left_out), run, label, capture.body)


def gather(
    steps: Iterable[Step], run: RunSnapshot, label: str, stored: Callable[[str], bytes | None] | None = None
) -> RunDocuments:
    """Return what is compared of a run, from its steps. ``stored`` finds a body by its SHA-256."""
    found = RunDocuments(label, run)
    if stored:
        found.stored = stored
    found.files = file_transfers.files(_gathered(steps, found))
    if found.catalog_failure:
        found.catalog_failure = Masks(facts=[found.facts] if found.facts else ()).text(found.catalog_failure)
    return found


def _gathered(steps: Iterable[Step], found: RunDocuments) -> Iterator[Step]:
    """Add what the steps contain; yield them on."""
    room = CONTENTS_MOST
    for step in steps:
        exchange, match = step.exchange, step.match
        if exchange is not None:
            _add_legs(found, exchange)
            found.requests.append(_request(step, exchange))
            kind = match.endpoint.kind if match else None
            if kind is Kind.CATALOG:
                _add_catalog(found, step, exchange)
            elif kind is Kind.REPORT:
                _add_report(found, step)
            elif isinstance(step.request, d.CertificateRequest):
                found.requested_key = step.request.key
            elif kind in CONTENT and exchange.response and exchange.response.status == 200:
                content = None if exchange.response.lost else decode.content(exchange.response)
                if content is not None and len(content) <= min(CONTENT_MOST, room):
                    room -= len(content)
                    found.contents[exchange.seq] = content
        yield step


def _add_legs(found: RunDocuments, exchange: Exchange) -> None:
    if found.agent is None or (exchange.agent.peer_chain and not found.agent.peer_chain):
        found.agent = exchange.agent
    found.master = found.master or exchange.master
    host = exchange.request.header("host") or ""
    found.server = found.server or exchange.agent.sni or host.rpartition(":")[0] or host or None


def _add_catalog(found: RunDocuments, step: Step, exchange: Exchange) -> None:
    asked, answer, response = step.request, step.response, exchange.response
    if isinstance(asked, d.CatalogRequest):
        match asked.facts:
            case d.Facts() as facts:
                found.facts = facts
            case d.Undecodable(reason=reason):
                found.unreadable[Section.FACTS] = reason
    if isinstance(answer, d.Catalog) and response and 200 <= response.status < 300:
        found.catalog, found.catalog_media, found.catalog_failure = answer, bodies.content_type(response), ""
        return
    found.catalog = None
    match answer:
        case d.ErrorDocument() if response:
            found.catalog_failure = decisive(f"{response.status} {answer.message}")
        case d.Undecodable():
            found.catalog_failure = answer.reason
        case _:
            found.catalog_failure = exchange.error or (f"status {response.status}" if response else "no response")


def _add_report(found: RunDocuments, step: Step) -> None:
    match step.request:
        case d.Report() as report:
            found.report = report
        case d.Undecodable(reason=reason):
            found.unreadable[Section.REPORT] = reason


def _request(step: Step, exchange: Exchange) -> RequestMade:
    match, response = step.match, exchange.response
    path = exchange.request.path
    return RequestMade(
        exchange.seq,
        step.phase,
        match.endpoint.kind if match else None,
        match.endpoint.name if match else f"{exchange.request.method} {path}",
        (match.key or "") if match else "",
        exchange.request.method,
        response.status if response else None,
        bodies.content_type(response) if response else "",
        max(0.0, exchange.ended - exchange.time),
    )
