"""docs/sql.md has every named query."""

from __future__ import annotations

from inspector.fleet.queries.named import QUERIES
from tests.docs import queries
from tests.support.places import DOCS


def test_the_queries_are_current() -> None:
    page = (DOCS / "sql.md").read_text(encoding="utf-8")
    assert queries.renewed(page) == page, "run `make docs`"
    assert all(f"| `{name}` |" in page for name in QUERIES)
