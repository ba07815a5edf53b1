"""All named queries."""

from __future__ import annotations

import difflib
from types import MappingProxyType
from typing import TYPE_CHECKING

from inspector.errors import InspectorError
from inspector.fleet.queries import findings, nodes, resources, times, trust, upgrades

if TYPE_CHECKING:
    from collections.abc import Mapping

    from inspector.fleet.queries.query import Query

QUERIES: Mapping[str, Query] = MappingProxyType(
    {query.name: query for module in (nodes, findings, trust, resources, times, upgrades) for query in module.QUERIES}
)
"""By name, in the order of the list."""


def named(name: str) -> Query:
    """Return the query of this name. Raises InspectorError."""
    if name not in QUERIES:
        near = difflib.get_close_matches(name, QUERIES, 1)
        raise InspectorError(
            f"There is no query {name!r}.",
            f"Did you mean `{near[0]}`?" if near else "`puppet-inspector sql --list` lists them.",
        )
    return QUERIES[name]
