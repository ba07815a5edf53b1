"""The columns of the tables: each has a type and a meaning, and keeps its name."""

from __future__ import annotations

from inspector.fleet.tables import TABLES


def test_every_column_has_a_type_and_a_meaning() -> None:
    for table in TABLES.values():
        assert table.meaning.endswith(".")
        for column in table.columns:
            assert column.meaning.endswith((".", "`.")), (table.name, column.name)
            assert column.sql


def test_types_follow_from_what_a_value_is() -> None:
    columns = {column.name: column for column in TABLES["exchanges"].columns}
    assert (columns["time"].sql, columns["time"].unit, columns["time"].timed) == ("TIMESTAMP", "UTC", True)
    assert (columns["duration"].sql, columns["duration"].unit) == ("FLOAT", "s")
    assert (columns["seq"].sql, columns["certname"].sql, columns["authenticated"].sql) == (
        "UINTEGER", "VARCHAR", "BOOLEAN",
    )  # fmt: skip
    assert {column.name: column.sql for column in TABLES["certificates"].columns}["names"] == "VARCHAR[]"


def test_rows_of_one_node_lie_together() -> None:
    assert TABLES["exchanges"].order.startswith("certname, time, capture, seq")
    assert TABLES["crls"].order == "time, capture, fingerprint"
    assert TABLES["exchanges"].of_agents
    assert not TABLES["captures"].of_agents
