"""The table of docs/readiness.md has every change that is looked for."""

from __future__ import annotations

from tests.docs import readiness
from tests.support.places import DOCS


def test_the_table_is_current() -> None:
    page = (DOCS / "readiness.md").read_text(encoding="utf-8")
    assert readiness.HEAD + readiness.table() in page, "run `make docs`"
    assert readiness.renewed(page) == page
