"""The named queries in docs/sql.md."""

from __future__ import annotations

import re

from inspector.fleet.queries.named import QUERIES
from inspector.fleet.queries.query import AT, DAYS, TOP, Parameter

BEGIN, END = "<!-- queries:begin -->\n", "<!-- queries:end -->\n"


def listed() -> str:
    """Return a row for each query."""
    rows = ["| query | question | parameters |", "|---|---|---|"]
    for query in QUERIES.values():
        parameters = ", ".join(map(_parameter, query.parameters))
        rows.append(f"| `{query.name}` | {query.question} | {parameters} |")
    return "\n".join([*rows, ""])


def _parameter(parameter: Parameter) -> str:
    written = f"`{parameter.name}={parameter.written}`"
    return written if parameter in (AT, DAYS, TOP) else f"{written} ({parameter.meaning})"


def renewed(page: str) -> str:
    """Return the page with the current queries."""
    return re.sub(f"{BEGIN}.*?{END}", lambda _: BEGIN + "\n" + listed() + "\n" + END, page, flags=re.DOTALL)
