"""Rows of what agents and masters send each other: facts, resources, and what reports say of them.

Facts and catalogs hardly change from run to run. Those that a node had before are in the tables once: the run's row
names the run whose rows they are.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, field
from functools import lru_cache
from itertools import islice
from typing import TYPE_CHECKING, Any

from inspector.clocks import DAY
from inspector.compare import meaning
from inspector.compare.facts import Volatile
from inspector.compare.masks import Masks
from inspector.fleet.spools import masked, message, micros, short
from inspector.fleet.tables import FactRow, ResourceEventRow, ResourceRow
from inspector.privacy import redact
from inspector.privacy.names import MASK, named
from inspector.protocol import documents as d
from inspector.protocol.bodies import content_type
from inspector.protocol.facts import leaves

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterator

    from inspector.analysis.analyzer import Step
    from inspector.fleet.tables import TableRow
    from inspector.model import Exchange
    from inspector.runs.run import Run

MOST = 50_000
"""Facts or resources of one run; of more, the first."""
NODES = 100_000
"""Nodes whose latest facts and catalog are known."""
_TYPES: dict[type, str] = {
    str: "string", bool: "boolean", int: "integer", float: "float", type(None): "null", dict: "hash", list: "array",
}  # fmt: skip
_volatile = Volatile()


@dataclass(slots=True)
class RunContents:
    """Values of a run's row from the documents that it sent and received."""

    catalog_format: str | None = None
    checksum_type: str | None = None
    static: bool | None = None
    resources: int | None = None
    catalog: int | None = None
    facts: int | None = None
    """The place of the run whose rows they are."""
    changed: int | None = None
    failed: int | None = None
    masks: Masks = field(default_factory=Masks)
    """The secrets in its latest catalog and facts."""


@dataclass(slots=True)
class _Node:
    """Digests of a node's facts and catalog, and the runs whose rows have them."""

    facts: tuple[bytes, int] = (b"", 0)
    """The digest of those that are not volatile, and the place of the run with the rows."""
    catalog: tuple[bytes, int] = (b"", 0)
    day: int = -1
    """The latest day of which its volatile facts are in the table."""


class Contents:
    """Makes rows of documents."""

    def __init__(self, capture: str, write: Callable[[TableRow], None], key: bytes) -> None:
        self._capture = capture
        self._write = write
        self._key = key
        self._runs: dict[Run, RunContents] = {}
        self._nodes: dict[str, _Node] = {}

    def of(self, run: Run) -> RunContents:
        """Return the values of a run's row so far."""
        return self._runs.get(run) or RunContents()

    def end(self, run: Run) -> None:
        """Forget a run that is over."""
        self._runs.pop(run, None)

    def add(self, step: Step, exchange: Exchange, run: Run) -> None:
        """Add the rows of an exchange's documents."""
        match step.request:
            case d.CatalogRequest() as request:
                contents = self._contents(run)
                contents.checksum_type = short(request.checksum_type) or contents.checksum_type
                if isinstance(request.facts, d.Facts):
                    self._add_facts(request.facts, exchange, run)
            case d.Facts() as facts:
                self._add_facts(facts, exchange, run)
            case d.Report() as report:
                self._add_events(report, exchange, run)
        if isinstance(step.response, d.Catalog):
            self._add_catalog(step.response, exchange, run)

    def _contents(self, run: Run) -> RunContents:
        return self._runs.setdefault(run, RunContents())

    def _node(self, run: Run) -> _Node:
        name = run.certname or ""
        node = self._nodes.pop(name, None)
        if node is None:
            node = _Node()
            if len(self._nodes) >= NODES:
                del self._nodes[next(iter(self._nodes))]
        self._nodes[name] = node
        return node

    # -- facts ------------------------------------------------------------------------------------------

    def _add_facts(self, facts: d.Facts, exchange: Exchange, run: Run) -> None:
        node, contents = self._node(run), self._contents(run)
        contents.masks = Masks((), (facts,))
        parts = islice(leaves(facts.values, empty=True), MOST)
        found = [(path, ".".join(map(str, path)), value) for path, value in parts]
        lasting = [(name, value) for _, name, value in found if not _changes(name)]
        digest = hashlib.sha256(meaning.encoded(sorted(lasting, key=_by_name))).digest()
        same = node.facts[0] == digest
        if not same:
            node.facts = digest, run.place
        contents.facts = node.facts[1]
        day = int(max(0.0, exchange.time) // DAY)
        new_day, node.day = day > node.day, max(day, node.day)
        for path, name, value in found:
            volatile = _changes(name)
            if new_day if volatile else not same:
                self._write(
                    FactRow(
                        capture=self._capture,
                        run=run.place,
                        certname=run.certname,
                        time=micros(exchange.time),
                        path=short(masked(name)) or "",
                        value=short(_fact(path, value)),
                        type=_TYPES.get(type(value), "string"),
                        volatile=volatile,
                    )
                )

    # -- catalogs ---------------------------------------------------------------------------------------

    def _add_catalog(self, catalog: d.Catalog, exchange: Exchange, run: Run) -> None:
        node, contents = self._node(run), self._contents(run)
        contents.masks = Masks((catalog,))
        contents.catalog_format = content_type(exchange.response)[:100] or None if exchange.response else None
        contents.static = catalog.code_id is not None
        contents.resources = len(catalog.resources)
        hashes = [(resource, self._hash(resource)) for resource in islice(catalog.resources, MOST)]
        digest = hashlib.sha256()
        for resource, own in sorted(hashes, key=lambda pair: pair[0].ref):
            # Moved to another line, a resource is another row.
            digest.update(f"{resource.ref}\0{resource.file}\0{resource.line}\0{own}\0".encode("utf-8", "replace"))
        if node.catalog[0] != digest.digest():
            node.catalog = digest.digest(), run.place
            for resource, own in hashes:
                self._write(
                    ResourceRow(
                        capture=self._capture,
                        run=run.place,
                        certname=run.certname,
                        time=micros(exchange.time),
                        type=short(resource.type) or "",
                        title=short(masked(str(resource.title))) or "",
                        file=resource.file and short(masked(resource.file)),
                        line=resource.line if resource.line is not None and 0 <= resource.line < 2**32 else None,
                        parameters=own,
                    )
                )
        contents.catalog = node.catalog[1]

    def _hash(self, resource: d.Resource) -> str:
        """A hash of the parameters that cannot be guessed without the key: they may contain passwords."""
        data = meaning.encoded(dict(sorted(resource.parameters.items())))
        return hmac.digest(self._key, data, "sha256")[:8].hex()

    # -- reports ----------------------------------------------------------------------------------------

    def _add_events(self, report: d.Report, exchange: Exchange, run: Run) -> None:
        contents = self._contents(run)
        statuses = report.resource_statuses
        contents.changed = sum(bool(status.changed) for status in statuses.values())
        contents.failed = sum(bool(status.failed) for status in statuses.values())
        for ref, status, event in islice(_events(report), MOST):
            kind, _, title = ref.partition("[")
            line = status.line if type(status.line) is int and 0 <= status.line < 2**32 else None
            name = event.property or event.name or ""
            masks = contents.masks
            self._write(
                ResourceEventRow(
                    capture=self._capture,
                    run=run.place,
                    certname=run.certname,
                    time=micros(exchange.time),
                    type=short(kind) or "",
                    title=short(masks.text(title.removesuffix("]"))) or "",
                    property=short(name),
                    status=short(event.status),
                    old=_event_value(masks, name, event.previous_value),
                    new=_event_value(masks, name, event.desired_value),
                    message=message(MASK if named(name) else masks.text(event.message)) if event.message else None,
                    corrective=event.corrective_change,
                    file=status.file and short(masked(status.file)),
                    line=line,
                )
            )


def _events(report: d.Report) -> Iterator[tuple[str, d.ResourceStatus, d.Event]]:
    for ref, status in report.resource_statuses.items():
        for event in status.events or ():
            yield ref, status, event


def _event_value(masks: Masks, name: str, value: Any) -> str | None:
    if value is None:
        return None
    shown = masks.value(name, value)
    return short(shown if isinstance(shown, str) else meaning.encoded(shown).decode())


def _by_name(fact: tuple[str, Any]) -> str:
    return fact[0]


@lru_cache(maxsize=16_384)
def _changes(name: str) -> bool:
    return len(name) <= 1000 and _volatile.covers(name)


def _fact(path: tuple[Hashable, ...], value: Any) -> str | None:
    """A fact's value as text, masked if its name, or that of what it is part of, means a secret."""
    mask = redact.mask_of(value, sure=False, likely=any(named(str(name)) for name in path))
    if mask is not None:
        return mask
    match value:
        case None:
            return None
        case str():
            return masked(value)
        case bool():
            return "true" if value else "false"
        case dict():
            return "{}"
    return str(value)
