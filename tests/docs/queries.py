"""The named queries in docs/sql.md."""

from __future__ import annotations

import re

from inspector.fleet.queries.named import QUERIES

BEGIN, END = "<!-- queries:begin -->\n", "<!-- queries:end -->\n"


def listed() -> str:
    """Return a row for each query."""
    rows = ["| query | question | parameters |", "|---|---|---|"]
    for query in QUERIES.values():
        parameters = ", ".join(f"`{each.name}={each.written}` ({each.meaning})" for each in query.parameters)
        rows.append(f"| `{query.name}` | {query.question} | {parameters} |")
    return "\n".join([*rows, ""])


def renewed(page: str) -> str:
    """Return the page with the current queries."""
    return re.sub(f"{BEGIN}.*?{END}", lambda _: BEGIN + "\n" + listed() + "\n" + END, page, flags=re.DOTALL)
