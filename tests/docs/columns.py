"""The columns in docs/tables.md, made of the structs' own descriptions."""

from __future__ import annotations

import re

from inspector.fleet.tables import TABLES

BEGIN, END = "<!-- columns:begin -->\n", "<!-- columns:end -->\n"


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
