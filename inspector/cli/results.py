"""Print the result of a statement: as a table for people, as CSV or JSON in full, a batch of rows at a time."""

from __future__ import annotations

import csv
import datetime
import json
import math
import sys
from decimal import Decimal
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from inspector.cli.rows import print_rows
from inspector.text import beginning, clean, json_line

if TYPE_CHECKING:
    from inspector.fleet.sql import Column, Result

ROWS = 1000
"""Rows of a table: they are aligned, so all are in memory."""
CELL = 500
"""Characters of a cell of a table."""
EXACT = 1e15
"""Up to which number a fraction has three digits."""
NULL = "-"
FORMULA = ("=", "+", "-", "@")
"""How a text begins that a spreadsheet would calculate."""


def print_table(result: Result) -> None:
    """Print the first rows as a table that fits the terminal; say so if there are more."""
    # Not the rows, which may be large: what is shown of them.
    cells = [
        [_cell(value, column) for value, column in zip(row, result.columns, strict=True)]
        for row in islice(chain.from_iterable(result.batches), ROWS + 1)
    ]
    if not cells:
        print("no rows")
        return
    heads = [clean(column.name) for column in result.columns]
    print_rows(heads, cells[:ROWS])
    if len(cells) > ROWS:
        print(f"only the first {ROWS:,} rows: --csv or --json prints all")


def print_csv(result: Result) -> None:
    """Print all rows as CSV. What is null is empty; a text that a spreadsheet would take for a formula begins with an
    apostrophe."""
    writer = csv.writer(sys.stdout, lineterminator="\n")
    writer.writerow([_harmless(column.name) for column in result.columns])
    for rows in result.batches:
        writer.writerows(
            [_csv(value, column) for value, column in zip(row, result.columns, strict=True)] for row in rows
        )


def print_json(result: Result) -> None:
    """Print all rows as JSON (docs/json/sql.schema.json), one on a line."""
    names = [column.name for column in result.columns]
    before = "["
    for row in chain.from_iterable(result.batches):
        values = (_plain(value, column.type) for value, column in zip(row, result.columns, strict=True))
        print(f"{before}\n{json_line(dict(zip(names, values, strict=True)))}", end="")
        before = ","
    print("[]" if before == "[" else "\n]")


def _cell(value: Any, column: Column) -> str:
    if isinstance(value, datetime.datetime):
        return f"{_utc(value):%Y-%m-%d %H:%M:%SZ}"
    match _plain(value, column.type):
        case None:
            return NULL
        case bool() as truth:
            return "yes" if truth else "no"
        case float() as number:
            return f"{number:.3f}".rstrip("0").rstrip(".") if abs(number) < EXACT else str(number)
        case list() as items:
            text = ", ".join(item if isinstance(item, str) else json.dumps(item) for item in items[:CELL])
        case dict() as fields:
            text = json.dumps(fields, ensure_ascii=False)
        case other:
            text = str(other)
    return beginning(clean(text[: CELL + 1]), CELL)


def _csv(value: Any, column: Column) -> object:
    match _plain(value, column.type):
        case None:
            return ""
        case bool() as truth:
            return "true" if truth else "false"
        case str() as text:
            return _harmless(text)
        case list() | dict() as nested:
            return _harmless(json.dumps(nested, ensure_ascii=False))
        case number:
            return number


def _harmless(text: str) -> str:
    cleaned = clean(text)
    return f"'{cleaned}" if cleaned.startswith(FORMULA) else cleaned


def _plain(value: Any, kind: str = "") -> Any:
    """A value of DuckDB's, of this type in SQL, as JSON can hold it: times in UTC, numbers as numbers, and no NaN."""
    match value:
        case None | bool() | int() | str():
            return value
        case float() if not math.isfinite(value):
            return None
        case float():
            return float(f"{value:.7g}") if kind == "FLOAT" else value  # it has no more digits
        case Decimal():
            return int(value) if value == value.to_integral_value() else float(value)
        case datetime.datetime():
            return _utc(value).isoformat(timespec="microseconds").replace("+00:00", "Z")
        case datetime.date() | datetime.time():
            return value.isoformat()
        case bytes():
            return value.hex()
        case list() | tuple():
            return [_plain(item) for item in value]
        case dict():
            return {str(name): _plain(item) for name, item in value.items()}
    return str(value)


def _utc(time: datetime.datetime) -> datetime.datetime:
    """A time in UTC; one without a zone is in UTC already."""
    return time.astimezone(datetime.UTC) if time.tzinfo else time.replace(tzinfo=datetime.UTC)
