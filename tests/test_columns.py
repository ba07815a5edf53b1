"""What is published of runs and records, in JSON and in tables: names, types and order stay; new ones follow."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from inspector import columns
from inspector.columns import about, number, seconds, size
from inspector.fleet.tables import TABLES
from inspector.runs.run import Run
from inspector.runs.snapshot import RunColumns, RunSnapshot
from inspector.summaries import listing
from tests.support import places
from tests.support.briefs import documents
from tests.support.conversations import runs_of
from tests.support.json_output import builtins
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
    (sample,) = (path for path in SAMPLES if path.stem == "first-run")
    run = documents(runs_of(records_of(sample)))[0]
    row = builtins(listing.row(*next(iter(listing.listed(sample, "path:certificate phase:certificates")))))
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


def test_a_column_that_runs_have_in_common_is_everywhere() -> None:
    (run,) = documents([Run("192.0.2.1")])
    table = {column.name for column in TABLES["runs"].columns}
    for column in columns.of(RunColumns):
        keys = run
        for key in column.key:
            assert key in keys
            keys = keys[key]
        assert column.name in table
        assert column.meaning.endswith(".")


def test_the_source_of_a_column_is_the_run_unless_it_is_judged() -> None:
    names = {column.name for column in columns.of(RunSnapshot) if not column.judged}
    assert {name for name in names if not hasattr(Run("192.0.2.1"), name)} == set()


type _Choice = Literal["a", "b"]


class _Made(msgspec.Struct):
    chosen: Annotated[_Choice | None, about("A choice.", judged=True)] = None
    fixed: Annotated[Literal["x", "y"], about("A choice without a name.")] = "x"
    took: Annotated[float, seconds("A duration.")] = 0.0
    sent: Annotated[int, size("A size.")] = 0
    times: Annotated[int | None, number("A count.")] = None
    hidden: int = 0


def test_a_column_is_a_field_with_a_meaning() -> None:
    made = columns.of(_Made)
    assert [(column.name, column.sql, column.unit, column.key, column.judged) for column in made] == [
        ("chosen", "VARCHAR", "", ("chosen",), True),
        ("fixed", "VARCHAR", "", ("fixed",), False),
        ("took", "FLOAT", "s", ("took_s",), False),
        ("sent", "UBIGINT", "bytes", ("bytes", "sent"), False),
        ("times", "UINTEGER", "", ("times",), False),
    ]
    assert [column.types for column in made[:3]] == [(_Choice, type(None)), (Literal["x", "y"],), (float,)]
