"""docs/tables.md has every column."""

from __future__ import annotations

from inspector.fleet.tables import TABLES
from tests.docs import columns
from tests.support.places import DOCS


def test_the_columns_are_current() -> None:
    page = (DOCS / "tables.md").read_text(encoding="utf-8")
    assert columns.renewed(page) == page, "run `make docs`"
    assert all(f"`{column.name}`" in page for table in TABLES.values() for column in table.columns)
