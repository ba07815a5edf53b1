"""Why a resource is as it is: as lines for a console, and as JSON (docs/json/why.schema.json)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from inspector.compare import diff_lines, plain
from inspector.compare.diff_lines import Line
from inspector.compare.why import Message
from inspector.explain.resource_outcomes import Status
from inspector.protocol.files import ChecksumResult
from inspector.text import clean, excerpt, local_second, seconds, size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from inspector.compare.documents import RunDocuments
    from inspector.compare.why import FileStory, Why

LINES = 20
"""Lines of a content, and relationships, that are shown unless all are."""


def lines(why: Why, *, full: bool = False) -> Iterator[Line]:
    """The lines of an explanation."""
    applied, run = why.applied, why.documents.run
    began = local_second(run.started)
    yield Line("head", clean(f"{why.ref}: {applied.status}"))
    yield Line("note", clean(f"  in {why.documents.label} of {run.name}, {began}{_records(why)}"))
    if applied.time is not None:
        yield Line("plain", f"  evaluated in {seconds(applied.time)}")
    for message in why.messages:
        what = f"{message.kind}, {message.property}" if message.property else message.kind
        first, *others = message.text.strip("\n").split("\n")
        yield Line("changed", clean(f"  {what}: {first}"))
        yield from (Line("same", f"    {clean(each)}") for each in (others if full else others[:LINES]))
    if applied.resource is None:
        yield Line("note", clean(f"  It is in the report only: {_without_resource(why.documents)}."))
    if applied.place:
        yield Line("plain", clean(f"  declared in {applied.place}"))
    if why.containers:
        yield Line("plain", clean(f"  contained in {' / '.join(why.containers)}"))
    for stated in why.relations if full else why.relations[:LINES]:
        yield Line("plain", clean(f"  {stated}"))
    if not full and len(why.relations) > LINES:
        yield Line("note", f"  ... {len(why.relations) - LINES:,} more relationships (--full)")
    if why.parameters:
        yield Line("head", "parameters")
        for name, value in why.parameters.items():
            shown = diff_lines.word(value)
            yield Line("plain", f"  {clean(name)} => {shown if full else excerpt(shown, diff_lines.LONG)}")
    if why.files:
        yield Line("head", "files")
    for story in why.files:
        yield from _file(story, full=full)
    if why.backups:
        yield Line("head", "backups")
    for backup in why.backups:
        yield Line("plain", clean(f"  {backup.method} in record {backup.seq}: {backup.result}"))
    yield from _before(why, full=full)


def _without_resource(documents: RunDocuments) -> str:
    if documents.catalog is not None:
        return "the agent generated it"
    failure = f" ({excerpt(documents.catalog_failure, diff_lines.LONG)})" if documents.catalog_failure else ""
    return f"the run {documents.without_catalog}{failure}, and the agent took a cached one"


def _records(why: Why) -> str:
    records = [
        f"{what} in record {seq}"
        for what, seq in (("catalog", why.catalog_seq), ("report", why.report_seq))
        if seq is not None
    ]
    return f" ({', '.join(records)})" if records else ""


def _file(story: FileStory, *, full: bool) -> Iterator[Line]:
    use = story.use
    yield Line("plain", clean(f"  {use.name}: {use.state}{f', {use.instead} was used' if use.instead else ''}"))
    if use.asked:
        checksum = use.metadata.checksum.value if use.metadata and use.metadata.checksum else f"status {use.status}"
        yield Line("plain", clean(f"    metadata in record {use.asked[-1]}: {checksum}"))
    for fetch in use.fetches:
        because = f" ({fetch.why})" if fetch.why else ""
        answer = str(fetch.status or "no response")
        if fetch.status == 200:
            answer += f", {size(fetch.size)}, digest {fetch.verdict}{because}"
        how = "fetched" if fetch.status == 200 else "requested"
        yield Line("plain", clean(f"    {how} in record {fetch.seq}: {answer}"))
    if story.content is not None:
        every = story.content.removesuffix("\n").split("\n")
        shown = every if full else every[:LINES]
        yield from (Line("note", f"    | {clean(excerpt(each.expandtabs(4), 300))}") for each in shown)
        if len(shown) < len(every):
            yield Line("note", f"    ... {len(every) - len(shown):,} more lines (--full)")
    elif story.size is not None:
        yield Line("note", f"    {size(story.size)}, sha256 {story.digest}")


def _before(why: Why, *, full: bool) -> Iterator[Line]:
    if why.before is None:
        yield Line("note", "No earlier run of this node in the capture to compare with.")
        return
    label = f"{why.before.label}, {local_second(why.before.run.started)}"
    if why.before.without_catalog:
        yield Line("head", clean(f"the run before ({label}) {why.before.without_catalog}"))
    elif not why.differences:
        yield Line("head", clean(f"the run before ({label}) had the same"))
    else:
        yield Line("head", clean(f"different from the run before ({label})"))
    yield from diff_lines.differences(why.differences, full=full)


class Fetch(msgspec.Struct):
    """A request for the content of a file."""

    record: int
    status: int | None
    bytes: int
    digest: ChecksumResult


class File(msgspec.Struct):
    """A file that the resource gets from the master."""

    name: str
    state: str
    metadata_records: list[int]
    checksum: str | None
    fetches: list[Fetch]
    sha256: str | None
    size: int | None
    content: str | None
    """As text, if it is known and is text."""


class Backup(msgspec.Struct):
    """A request about the resource's file to a remote filebucket."""

    record: int
    method: str
    status: int | None


class Explained(msgspec.Struct):
    """Why a resource changed, failed or stayed as it was."""

    resource: str
    outcome: Status
    run: plain.Run
    catalog_record: int | None
    """The record with the catalog; null if the run got none."""
    report_record: int | None
    """The record with the report."""
    evaluation_s: float | None
    messages: list[Message]
    file: str | None
    line: int | str | None
    containers: list[str]
    """The outermost first."""
    relations: list[str]
    """In Puppet's words."""
    parameters: dict[str, Any]
    """Rich data as objects with __ptype."""
    files: list[File]
    backups: list[Backup]
    before: plain.Run | None
    """The run that it is compared with."""
    differences: list[plain.Difference]
    """As in diff --json."""


def fields(why: Why) -> Explained:
    """Return an explanation for JSON."""
    applied = why.applied
    return Explained(
        resource=why.ref,
        outcome=applied.status,
        run=plain.run(why.documents),
        catalog_record=why.catalog_seq,
        report_record=why.report_seq,
        evaluation_s=applied.time,
        messages=why.messages,
        file=applied.file,
        line=applied.line,
        containers=why.containers,
        relations=why.relations,
        parameters=why.parameters,
        files=[_story(story) for story in why.files],
        backups=[Backup(backup.seq, backup.method, backup.status) for backup in why.backups],
        before=plain.run(why.before) if why.before else None,
        differences=[plain.difference(difference) for difference in why.differences],
    )


def _story(story: FileStory) -> File:
    use = story.use
    checksum = use.metadata.checksum if use.metadata else None
    return File(
        name=use.name,
        state=str(use.state),
        metadata_records=use.asked,
        checksum=checksum.value if checksum else None,
        fetches=[Fetch(fetch.seq, fetch.status, fetch.size, fetch.verdict) for fetch in use.fetches],
        sha256=story.digest or None,
        size=story.size,
        content=story.content,
    )
