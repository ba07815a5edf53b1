"""The columns in docs/tables.md and in the schemas of JSON, made of the structs' own descriptions."""

from __future__ import annotations

import json
import re
from enum import Enum
from typing import TYPE_CHECKING, Any, Literal, TypeAliasType, get_args, get_origin

from inspector import columns
from inspector.fleet.tables import TABLES
from inspector.summaries.summary import RunBrief
from tests.support.places import SCHEMAS

if TYPE_CHECKING:
    from pathlib import Path

    from inspector.columns import Column

BEGIN, END = "<!-- columns:begin -->\n", "<!-- columns:end -->\n"
OF_RUNS = SCHEMAS / "runs.schema.json"
_TYPES = {str: "string", int: "integer", float: "number", bool: "boolean", type(None): "null"}
_UNITS = {"s": " In seconds.", "UTC": " ISO 8601, UTC, milliseconds."}
_MOMENT = r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$"


def described() -> str:
    """Return a section for each table."""
    sections = []
    for table in TABLES.values():
        rows = [f"| `{column.name}` | {column.sql} | {column.unit} | {column.meaning} |" for column in table.columns]
        head = ["| column | type | unit | meaning |", "|---|---|---|---|"]
        sections.append("\n".join([f"### {table.name}", "", table.meaning, "", *head, *rows, ""]))
    return "\n".join(sections)


def renewed(page: str) -> str:
    """Return the page with the current columns."""
    return re.sub(f"{BEGIN}.*?{END}", lambda _: BEGIN + "\n" + described() + "\n" + END, page, flags=re.DOTALL)


def renewed_schema(path: Path = OF_RUNS) -> str:
    """Return the schema of runs with the current columns. What is no column, and what a schema says besides of a
    column, stays as it is."""
    schema = json.loads(path.read_text(encoding="utf-8"))
    for column in columns.of(RunBrief):
        place = schema["items"]
        *within, key = column.key
        for outer in within:
            place = place["properties"][outer]
        old, about = place["properties"].get(key, {}), property_of(column)
        if set(old.get("enum", ())) == set(about.get("enum", ())):
            about.pop("enum", None)  # in the order of the schema
        place["properties"][key] = old | about
        if key not in place["required"]:
            place["required"].append(key)
    return json.dumps(schema, indent=2) + "\n"


def property_of(column: Column) -> dict[str, Any]:
    """Return what a schema says of a column."""
    about: dict[str, Any] = {}
    choices: list[str | None] = []
    names = []
    for kind in column.types:
        plain = kind.__value__ if isinstance(kind, TypeAliasType) else kind
        if get_origin(plain) is Literal:
            choices += get_args(plain)
        elif issubclass(plain, Enum):
            choices += [choice.value for choice in plain]
        else:
            names.append("string" if column.timed else _TYPES[plain])
    if choices:
        about["enum"] = choices + [None] * ("null" in names)
    else:
        about["type"] = names if len(names) > 1 else names[0]
    if column.timed:
        about["pattern"] = _MOMENT
    elif {int, float} & set(column.types):
        about["minimum"] = 0
    return about | {"description": column.meaning + _UNITS.get(column.unit, "")}
