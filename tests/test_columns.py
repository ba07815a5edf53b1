"""What is published of runs and records, in JSON and in tables: names, types and order stay; new ones follow."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from inspector.analysis.analyzer import Analyzer
from inspector.fleet.tables import TABLES
from inspector.summaries import listing
from tests.support import places
from tests.support.briefs import documents
from tests.support.recorded import SAMPLES, records_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def shape(value: Any) -> Any:
    """The keys of an object and of those in it, in order, with the types of what they name."""
    match value:
        case dict():
            return {key: shape(inner) for key, inner in value.items()}
        case list():
            return [shape(value[0])] if value else []
    return type(value).__name__


def published() -> dict[str, Any]:
    (sample,) = (path for path in SAMPLES if path.stem == "out-of-sync")
    analyzer = Analyzer()
    for record in records_of(sample):
        analyzer.feed(record)
    run = documents(analyzer.finish())[0]
    row = listing.row(*next(iter(listing.listed(sample, "path:catalog"))))
    return {
        "runs --json": shape(run),
        "list --json": shape(row),
        "tables": {
            table.name: [f"{column.name} {column.sql} {column.unit}".rstrip() for column in table.columns]
            for table in TABLES.values()
        },
    }


def test_what_is_published_keeps_its_names_types_and_order(golden: Callable[[Path, str], None]) -> None:
    golden(places.GOLDEN / "columns.json", json.dumps(published(), indent=1) + "\n")
