"""What tables show of removals and changed defaults."""

from __future__ import annotations

from typing import TYPE_CHECKING

from inspector.explain.readiness.changes import CHANGES
from inspector.fleet.directory import TableDirectory
from inspector.fleet.readiness import SIGNS
from tests.support.made_tables import exchange, fact, run, tables, with_facts
from tests.support.tables_of import asked

if TYPE_CHECKING:
    from pathlib import Path

FLAT = ("osfamily", "operatingsystem", "ipaddress_eth0")


def test_each_sign_is_that_of_a_change_without_rules() -> None:
    assert {change.key for change in CHANGES if not change.rules} >= set(SIGNS)


def test_the_nodes_that_a_change_concerns(tmp_path: Path) -> None:
    flat, two, cleaned_before, cleaned = (
        with_facts(run(name, hours)) for name, hours in (("flat", 1), ("two", 1), ("cleaned", 9), ("cleaned", 1))
    )
    tool = run("tool", tool="curl/8")
    root = tables(
        tmp_path, flat, two, cleaned_before, cleaned, tool, run("old", dialect="legacy"), run("new", dialect="v3"),
        *(fact("flat", path, "x", run=flat.run) for path in FLAT),
        *(fact("two", path, "x", run=two.run) for path in FLAT[:2]),
        *(fact("cleaned", path, "x", 9, run=cleaned_before.run) for path in FLAT),
        exchange("old", request_format="text/pson"), exchange("new", format="application/json"),
        exchange("tool", format="text/pson", run=tool.run),
    )  # fmt: skip
    found = {key: asked(TableDirectory.open(root), statement) for key, statement in SIGNS.items()}
    assert found == {"legacy-url": [("old",)], "legacy-facts": [("flat",)], "pson": [("old",)]}
