"""One resource of a run: from what the report says of it back to the manifest, to the bytes, and to the run before."""

from __future__ import annotations

import difflib
import hashlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from inspector.compare import comparison, files
from inspector.compare.differences import Section
from inspector.compare.documents import masks_of
from inspector.explain import resource_outcomes
from inspector.explain.catalog_graph import CatalogGraph
from inspector.protocol.kinds import Kind

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspector.compare.differences import Difference
    from inspector.compare.documents import RunDocuments
    from inspector.compare.masks import Masks
    from inspector.explain.catalog_graph import Relation
    from inspector.explain.file_transfers import FileUse
    from inspector.explain.resource_outcomes import Applied

MESSAGES = 50
"""Log lines of a resource."""
NEAR = 3
"""Resources with similar names that are suggested."""
SEARCHED = 20_000
"""Resources among which they are searched."""


class Message(msgspec.Struct, frozen=True):
    """What the agent reported of the resource."""

    kind: str
    """event or log, and its status or level."""
    property: str
    text: str


class Backup(NamedTuple):
    """A request about the resource's file to a remote filebucket."""

    seq: int
    method: str
    status: int | None
    """None: there was no response."""

    @property
    def result(self) -> str:
        """What the filebucket answered, in words."""
        if self.method == "HEAD" and self.status in (200, 404):
            return "it is in the bucket already" if self.status == 200 else "it is not in the bucket yet"
        if self.status is None:
            return "no response"
        return (
            f"{'stored' if self.method == 'PUT' else 'fetched'}" if self.status < 300 else f"refused with {self.status}"
        )


class FileStory(NamedTuple):
    """A file that the resource gets from the master."""

    use: FileUse
    content: str | None
    """Its content as text, with masks; None: it is not known, or no text."""
    digest: str
    """The SHA-256 of the content, if that is known."""
    size: int | None
    """Its bytes, if they are known."""


@dataclass(frozen=True, slots=True)
class Why:
    """What explains a resource's outcome."""

    ref: str
    documents: RunDocuments
    applied: Applied
    messages: list[Message]
    containers: list[str]
    """The outermost first."""
    relations: list[str]
    """In Puppet's words."""
    parameters: dict[str, Any]
    """JSON-able, with masks."""
    files: list[FileStory]
    backups: list[Backup]
    catalog_seq: int | None
    """The record of the catalog; None if there is none."""
    report_seq: int | None
    before: RunDocuments | None
    """The run before; None if there is none."""
    differences: list[Difference]
    """What is different about the resource and its files from the run before."""


class Resources:
    """The resources of a run."""

    def __init__(self, documents: RunDocuments) -> None:
        self.documents = documents
        outcomes = resource_outcomes.resources(documents.catalog, documents.report)
        self.graph = CatalogGraph(outcomes, documents.catalog.edges if documents.catalog else ())
        self._number = len(outcomes)

    def find(self, ref: str) -> Applied | None:
        """A resource by its reference, in which another name of it may stand; None if the run has none."""
        number = self.graph.tree.find(ref)
        return self.graph.tree.outcome(number) if number is not None and number < self._number else None

    def near(self, ref: str) -> list[str]:
        """References that are written almost like this one."""
        return difflib.get_close_matches(ref, self.graph.tree.refs[:SEARCHED], NEAR)


def explain(resources: Resources, applied: Applied, before: RunDocuments | None = None) -> Why:
    """Explain the outcome of a resource. ``before`` is the run before."""
    documents = resources.documents
    masks = masks_of(documents, *([before] if before is not None else []))
    number = resources.graph.tree.number(applied.ref)
    used = [use for use in documents.files if applied.ref in use.resources]
    return Why(
        masks.text(applied.ref),
        documents,
        applied,
        list(_messages(documents, applied, masks)),
        [resources.graph.tree.refs[at] for at in reversed(resources.graph.tree.above(number))],
        list(_relations(resources.graph, number)),
        _parameters(applied, masks),
        [_story(use, documents, masks) for use in used],
        _backups(documents, applied),
        _last(documents, Kind.CATALOG) if documents.catalog is not None else None,
        _last(documents, Kind.REPORT),
        before,
        _differences(documents, before, applied, {use.name for use in used}) if before is not None else [],
    )


def _messages(documents: RunDocuments, applied: Applied, masks: Masks) -> Iterator[Message]:
    for status, what, message in applied.events:
        yield Message(f"event {status}", what, masks.text(message))
    if documents.report is not None:
        logs = resource_outcomes.logged([applied], documents.report.logs).get(applied.ref, [])
        reported = {message for _, _, message in applied.events}
        for level, message in resource_outcomes.messages(applied, logs, MESSAGES):
            if message.strip() and message not in reported:
                yield Message(f"log {level}", "", masks.text(message))


def _relations(graph: CatalogGraph, number: int) -> Iterator[str]:
    around = graph.around(number)
    both: list[Relation] = [*around.needs, *around.needed_by]
    yield from dict.fromkeys(graph.stated(relation) for relation in both)


def _parameters(applied: Applied, masks: Masks) -> dict[str, Any]:
    resource = applied.resource
    if resource is None:
        return {}
    return {
        name: masks.value(name, value)
        for name, value in resource.values.items()
        if name not in resource_outcomes.RELATIONS
    }


def _story(use: FileUse, documents: RunDocuments, masks: Masks) -> FileStory:
    found = files.content(use, documents)
    text = found.text
    digest = found.digest if found.kind == "sha256" else ""
    if found.body is not None:
        digest = hashlib.sha256(found.body).hexdigest()
    return FileStory(
        use, masks.text(text) if text is not None else None, digest, len(found.body) if found.body is not None else None
    )


def _backups(documents: RunDocuments, applied: Applied) -> list[Backup]:
    path = applied.resource.value("path") if applied.resource else None
    path = path if isinstance(path, str) else applied.title
    found = (request for request in documents.requests if request.kind is Kind.BACKUP and applied.type == "File")
    # The key is algorithm, digest, and the path, which begins with a slash itself.
    return [
        Backup(request.seq, request.method, request.status)
        for request in found
        if request.key.split("/", 2)[2:] == [path]
    ]


def _last(documents: RunDocuments, kind: Kind) -> int | None:
    return next((request.seq for request in reversed(documents.requests) if request.kind is kind), None)


def _differences(documents: RunDocuments, before: RunDocuments, applied: Applied, names: set[str]) -> list[Difference]:
    compared = comparison.compare(before, documents)
    return [
        difference
        for difference in compared.differences
        if (difference.section in (Section.CATALOG, Section.REPORT) and applied.ref in difference.names)
        or (difference.section is Section.FILES and difference.names & names)
    ]
