"""Parts: a file for each day, sorted; what older ones do not have is null; a capture's rows can leave them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.fleet import database, parquet
from inspector.fleet.layout import PARTS
from inspector.fleet.tables import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from duckdb import DuckDBPyConnection

FACTS = TABLES["facts"]


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[DuckDBPyConnection]:
    """A database in which ``rows`` are those of two captures on two days, in no order."""
    with database.opened(tmp_path) as opened:
        parquet.show(opened, FACTS, [])
        opened.execute("CREATE TABLE rows AS SELECT * EXCLUDE (date, site, volatile) FROM facts")  # older: without one
        for capture, time, run in (("b", "2026-11-02 10:00", 4), ("a", "2026-11-01 12:00", 2), ("a", "2026-11-01", 1)):
            opened.execute("INSERT INTO rows (capture, time, run) VALUES (?, ?, ?)", (capture, time, run))
        yield opened


def split(connection: DuckDBPyConnection, folder: Path) -> list[Path]:
    return list(parquet.split(connection, FACTS, "paris", parquet.name_of("a"), folder))


def rows(connection: DuckDBPyConnection, path: Path) -> list[tuple[object, ...]]:
    return connection.execute(f"SELECT capture, run FROM {parquet.read([path])}").fetchall()


def test_each_day_has_a_part_in_which_rows_are_in_order(connection: DuckDBPyConnection, tmp_path: Path) -> None:
    first, second = split(connection, tmp_path)
    assert first == tmp_path / "facts/date=2026-11-01/site=paris/part-a.parquet"
    assert second == tmp_path / "facts/date=2026-11-02/site=paris/part-a.parquet"
    assert rows(connection, first) == [("a", 1), ("a", 2)]
    assert rows(connection, second) == [("b", 4)]


def test_a_view_has_all_columns_and_the_day_and_site(connection: DuckDBPyConnection, tmp_path: Path) -> None:
    for parts, number in ((split(connection, tmp_path), 3), ([], 0)):
        parquet.show(connection, FACTS, parts)
        found = connection.execute("SELECT * FROM facts")
        columns = [column[0] for column in found.description]
        assert columns == [*(column.name for column in FACTS.columns), "date", "site"]
        assert len(found.fetchall()) == number
    parquet.show(connection, FACTS, split(connection, tmp_path))
    found = connection.execute("SELECT run, volatile, date::VARCHAR, site FROM facts ORDER BY run")
    assert found.fetchall()[0] == (1, None, "2026-11-01", "paris")


def test_a_captures_rows_leave_the_parts_that_have_some(connection: DuckDBPyConnection, tmp_path: Path) -> None:
    connection.execute("INSERT INTO rows (capture, time, run) VALUES ('b', '2026-11-01 10:00', 3)")
    first, second = split(connection, tmp_path)
    assert sorted(parquet.with_rows_of(connection, "b", [first, second])) == [first, second]
    assert parquet.with_rows_of(connection, "a", [first, second]) == [first]
    assert parquet.with_rows_of(connection, "a", []) == []
    for part in (first, second):
        parquet.remove_rows(connection, "b", part, FACTS, tmp_path / "fresh.parquet")
    assert rows(connection, first) == [("a", 1), ("a", 2)]
    assert not second.exists()


def test_compacted_parts_of_the_same_parts_have_the_same_name(tmp_path: Path) -> None:
    parts = [tmp_path / parquet.name_of(name) for name in ("a", "b")]
    assert parquet.compacted(parts) == parquet.compacted(parts)
    assert parquet.compacted(parts) != parquet.compacted(parts[:1])
    assert parquet.compacted(parts).match(parquet.COMPACTED)
    assert parquet.compacted(parts).match(PARTS)
