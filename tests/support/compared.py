"""Runs and catalogs to compare, from made-up records."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from inspector.analysis.analyzer import retrace
from inspector.compare import catalogs, comparison, documents
from inspector.compare.differences import Differences
from inspector.compare.masks import Masks
from inspector.protocol import documents as d
from inspector.runs.examples import catalog, report, talk
from tests.support.conversations import runs_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from inspector.compare.comparison import Choices, Comparison
    from inspector.compare.differences import Difference, Patterns
    from inspector.compare.documents import RunDocuments
    from inspector.model import Record

type Brief = tuple[str, str, Any, Any]
"""Change, address, before, after."""


def gathered(records: Iterable[Record], label: str = "c.sqlite run 1") -> RunDocuments:
    """What is compared of the only run of a conversation."""
    records = list(records)
    (run,) = runs_of(records)
    return documents.gather(retrace(records), run.snapshot(), label)


def file(title: str, /, **parameters: Any) -> dict[str, Any]:
    """A file resource."""
    return resource("File", title, **parameters)


def resource(
    kind: str, title: str, /, *, sensitive: Sequence[str] = (), line: int = 1, **parameters: Any
) -> dict[str, Any]:
    return {
        "type": kind, "title": title, "parameters": parameters, "file": "/m/site.pp", "line": line,
        "sensitive_parameters": [*sensitive],
    }  # fmt: skip


def decoded(resources: Iterable[Mapping[str, Any]], edges: Iterable[tuple[str, str]] = (), **fields: Any) -> d.Catalog:
    """A catalog as it is decoded."""
    wired = [{"source": source, "target": target} for source, target in edges]
    sent = {"name": "a.example", "resources": [*resources], "edges": wired} | fields
    return msgspec.json.decode(msgspec.json.encode(sent), type=d.Catalog)


def found(before: d.Catalog, after: d.Catalog, ignored: Patterns | None = None, *, tags: bool = False) -> Differences:
    """What is different about two catalogs."""
    differences = Differences(Masks([before, after]), ignored, {"a.example": "certname"})
    catalogs.compare(before, after, differences, tags=tags)
    return differences


def brief(differences: Iterable[Difference]) -> list[Brief]:
    return [(each.change, each.address, each.before, each.after) for each in differences]


def run_of(
    *resources: Mapping[str, Any], after: float = 0.0, facts: Mapping[str, Any] | None = None, **fields: Any
) -> list[Record]:
    """A run with a catalog and a report."""
    made = catalog(resources=[file("/etc/always"), *resources], facts=facts)
    return talk(made, report(**fields), after=after)


def compared(before: Iterable[Record], after: Iterable[Record], choices: Choices | None = None) -> Comparison:
    """Compare two conversations."""
    return comparison.compare(gathered(before, "a.sqlite run 1"), gathered(after, "b.sqlite run 1"), choices)
