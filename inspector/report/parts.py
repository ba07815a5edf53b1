"""What one run's documents and connections show: facts, catalog, files, report."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from inspector.compare import documents
from inspector.explain import connection_usage, resource_outcomes
from inspector.explain.file_transfers import FileState
from inspector.pages import catalog as catalogs
from inspector.pages import report as reports
from inspector.pages.tabs import TabPart, facts_tree
from inspector.report.drawings import MOST, Drawing, drawing
from inspector.text import clean, seconds, size, utc

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from inspector.capture.store import Capture
    from inspector.compare.documents import RunDocuments
    from inspector.explain.resource_outcomes import Applied
    from inspector.summaries.indexed import IndexedCapture
    from inspector.summaries.summary import Brief, RunBrief

_WORST_FILES = {state: place for place, state in enumerate(FileState)}
_WORST = {status: place for place, status in enumerate(resource_outcomes.Status)}


@dataclass(frozen=True, slots=True)
class RunParts:
    """What is folded below a run's waterfall; nothing in it is empty."""

    documents: tuple[Drawing, ...]
    """Facts, catalog, files and report."""
    connections: tuple[Drawing, ...]


def parts_of(source: IndexedCapture, capture: Capture, run: RunBrief, briefs: Sequence[Brief]) -> RunParts:
    """Return the parts of a run that are not empty."""
    found = documents.of_run(capture, source.seqs(run.number), run, f"run {run.number}", source.unanalyzed_all())
    connections = _connections(capture, briefs)
    return RunParts(
        tuple(part for part in _documents(found) if not part.empty), () if connections.empty else (connections,)
    )


def _documents(found: RunDocuments) -> Iterator[Drawing]:
    if (facts := found.facts) is not None:
        yield drawing(TabPart("Facts", lambda: facts_tree(facts)))
    catalog, report = found.catalog, found.report
    if found.catalog_failure:
        yield Drawing("No catalog", lines=(clean(found.catalog_failure),))
    if catalog is not None:
        applied = resource_outcomes.resources(catalog, report)
        yield _resources(applied)
        yield _by_file(applied)
        yield drawing(TabPart("Catalog as a tree", lambda: catalogs.contained(catalog)))
        yield drawing(TabPart("About the catalog", lambda: catalogs.about(catalog)))
    yield _files(found)
    if report is not None:
        yield drawing(TabPart("Report: events", lambda: reports.events(report)))
        yield drawing(TabPart("Report: log", lambda: reports.logs(report)))
        yield drawing(TabPart("Report: metrics", lambda: reports.metrics(report)))
        yield drawing(TabPart("About the report", lambda: reports.about(report)))


def _resources(applied: Sequence[Applied]) -> Drawing:
    ordered = sorted(applied, key=lambda each: _WORST[each.status])
    rows = tuple(
        (
            str(each.status),
            clean(each.ref),
            clean(each.place),
            "" if each.time is None else f"{each.time:.3f}",
            "; ".join(clean(f"{what}: {text}") for _, what, text in each.events)[:500],
        )
        for each in ordered[:MOST]
    )
    heads = ("status", "resource", "file:line", "seconds", "events")
    return _bounded(f"Catalog: {len(applied):,} resources", heads, rows, len(applied), "resources")


def _by_file(applied: Sequence[Applied]) -> Drawing:
    """The manifests, with how many resources each declares, and what became of them."""
    by_file: dict[str, list[Applied]] = {}
    for each in applied:
        by_file.setdefault(clean(each.file or "no file"), []).append(each)
    rows = tuple(
        (
            name,
            str(len(found)),
            ", ".join(f"{number} {status}" for status, number in Counter(str(each.status) for each in found).items()),
            ", ".join(clean(each.ref) for each in found[:8]) + (" …" if len(found) > 8 else ""),
        )
        for name, found in sorted(by_file.items(), key=lambda item: -len(item[1]))[:MOST]
    )
    return Drawing("Catalog by file", heads=("file", "resources", "outcomes", "which"), rows=rows)


def _files(found: RunDocuments) -> Drawing:
    rows = tuple(
        (str(use.state), clean(use.name), size(use.size) if use.size else "", str(use.asking), f"#{use.seq}")
        for use in sorted(found.files, key=lambda use: _WORST_FILES[use.state])[:MOST]
    )
    heads = ("state", "file", "bytes", "learned from", "record")
    return _bounded(f"Files: {len(found.files):,}", heads, rows, len(found.files), "files")


def _connections(capture: Capture, briefs: Sequence[Brief]) -> Drawing:
    known = {
        ident: connection
        for ident in connection_usage.ids(briefs)
        if (connection := capture.connection(ident)) is not None
    }
    rows = []
    every = connection_usage.connections(briefs, known)
    for used in every[:MOST]:
        leg = used.leg
        address = f"{leg.address}{f':{leg.port}' if leg.port else ''}" if leg and leg.address else "?"
        closed = used.closer or ("open" if used.closed is None else "not known")
        rows.append(
            (
                f"{used.side} {clean(address)}",
                utc(used.opened)[:23].replace("T", " "),
                "failed" if used.failed else "" if used.tls is None else seconds(max(0.0, used.tls)),
                clean((leg.tls_version or "") if leg else ""),
                clean(used.shown or "none"),
                clean(", ".join(used.identities)) if used.side == "master" else "",
                str(len(used.requests)),
                "failed" if used.failed else closed,
            )
        )
    heads = ("connection", "opened", "TLS", "version", "certificate", "identity", "requests", "closed by")
    return _bounded(f"Connections: {len(every):,}", heads, tuple(rows), len(every), "connections")


def _bounded(title: str, heads: tuple[str, ...], rows: tuple[tuple[str, ...], ...], total: int, what: str) -> Drawing:
    """A table that has the first of ``total`` rows."""
    more = total - len(rows)
    return Drawing(title, heads=heads, rows=rows, note=f"… {more:,} more {what} in the capture" if more else "")
