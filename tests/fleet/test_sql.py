"""SQL over tables: it reads them and nothing else, writes nothing, can be interrupted, and takes little memory."""

from __future__ import annotations

import contextlib
import hashlib
import os
import signal
import threading
import time
from typing import TYPE_CHECKING, Any

import pytest

from inspector.errors import InspectorError
from inspector.fleet import sql
from inspector.fleet.directory import TableDirectory
from inspector.fleet.sql import ONLY_READS, StatementError
from inspector.fleet.tables import TABLES
from tests.support.made_tables import END, run, tables

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from inspector.fleet.sql import Database

ENDLESS = "SELECT count(*) FROM range(100000000) a, range(100000000) b"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return tables(tmp_path, run("a.example", 2), run("b.example", 1))


@pytest.fixture
def database(root: Path) -> Iterator[Database]:
    with sql.opened(root) as opened:
        yield opened


def rows(database: Database, statement: str) -> list[tuple[Any, ...]]:
    (one,) = database.statements(statement)
    with database.result(one) as result:
        return [row for batch in result.batches for row in batch]


def files(root: Path) -> dict[str, str]:
    found = [path for path in root.rglob("*") if path.is_file()]
    return {str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest() for path in found}


def test_what_can_be_asked(database: Database) -> None:
    assert rows(database, "SELECT certname FROM runs ORDER BY time DESC") == [("b.example",), ("a.example",)]
    assert rows(database, "WITH x AS (SELECT 1 AS a) SELECT a, a + 1 FROM x -- a comment") == [(1, 2)]
    assert rows(database, "FROM (VALUES (2), (1)) ORDER BY 1") == [(1,), (2,)]
    assert [row[0] for row in rows(database, "SHOW TABLES")] == sorted(TABLES)
    assert [row[0] for row in rows(database, "DESCRIBE facts")] == list(sql.columns("facts"))
    assert {row[0] for row in rows(database, "SUMMARIZE runs")} == set(sql.columns("runs"))
    assert rows(database, "PIVOT runs ON certname IN ('a.example') USING count(*) GROUP BY outcome") == [
        ("complete", 1)
    ]
    assert rows(database, "SELECT current_setting('TimeZone')") == [("UTC",)]
    assert database.end == END


def test_columns_of_one_name_get_different_ones(database: Database) -> None:
    with database.result("SELECT 1 AS a, 'x' AS a") as result:
        assert [column.name for column in result.columns] == ["a", "a_1"]


def test_several_statements_and_none(database: Database) -> None:
    assert database.statements("SELECT ';' ; -- a comment;\nSELECT 2;") == ["SELECT ';'", "-- a comment;\nSELECT 2"]
    assert database.statements(" ;; \n") == []


WRITING = (
    "COPY runs TO '{root}/runs/x.csv'",
    "COPY (SELECT 1) TO '{root}/runs/date=2026-11-21/site=here/part-0.parquet' (FORMAT parquet)",
    "EXPORT DATABASE '{root}/runs/x'",
    "EXPLAIN ANALYZE COPY (SELECT 1) TO '{root}/runs/x.csv'",
    "WITH x AS (COPY (SELECT 1) TO '{root}/runs/x.csv') SELECT 1",
    "SELECT (WITH x AS (COPY (SELECT 1) TO '{root}/runs/x.csv') SELECT 1)",
    "FROM query('WITH x AS (COPY (SELECT 1) TO ''{root}/runs/x.csv'') SELECT 1')",
    "SELECT 1) UNION (SELECT 1) TO '{root}/runs/x.csv' --",
    "ATTACH '{root}/runs/x.db' AS x",
    "CREATE TABLE x AS SELECT 1",
    "SELECT * FROM enable_logging(storage := 'file', storage_path := '{root}/runs/')",
    "SELECT * FROM enable_profiling(save_location := '{root}/runs/x')",
    "PRAGMA enable_profiling",
    "SET enable_external_access = true",
    "INSTALL httpfs",
    "LOAD httpfs",
    "DROP VIEW runs",
)
READING = (
    "FROM read_text('{root}/.key')",
    "FROM read_text('{root}/runs/../.key')",
    "FROM read_blob('/etc/passwd')",
    "FROM read_csv('/etc/passwd')",
    "FROM '/etc/passwd'",
    "FROM glob('{root}/*')",
    "FROM read_parquet('http://127.0.0.1:1/x.parquet')",
    "FROM duckdb_secrets()",
    "SELECT getenv('HOME')",
    "FROM variable_of_this_program",
)


@pytest.mark.slow
@pytest.mark.parametrize("statement", [*WRITING, *READING])
def test_nothing_is_written_and_nothing_else_is_read(root: Path, database: Database, statement: str) -> None:
    variable_of_this_program = [1]
    before = files(root)
    with pytest.raises(StatementError):
        rows(database, statement.format(root=root))
    assert files(root) == before
    assert variable_of_this_program
    assert len(rows(database, "FROM runs")) == 2


def test_mistakes_are_a_sentence_and_what_is_near(database: Database) -> None:
    cases = {
        "SELECT certname, outcom FROM runs": ('Referenced column "outcom" not found in FROM clause.', '"outcome"'),
        "SELECT *\nFROM rums": ("Table with name rums does not exist.", 'Did you mean "runs"?'),
        "SELEC 1": ('Syntax error at or near "SELEC".', "LINE 1: SELEC 1"),
        "SELECT *\nFROM runs\nWHERE x": ('Referenced column "x" not found in FROM clause.', "LINE 3: WHERE x"),
        "SELECT certname::INT FROM runs": ("Could not convert string 'a.example' to INT32", "LINE 1: "),
        "COPY runs TO 'x'": ("COPY is not possible here.", ONLY_READS),
        "WITH x AS (COPY runs TO 'x') SELECT 1": ("WITH clause containing a COPY statement", ONLY_READS),
        "FROM read_text('/etc/passwd')": ('Cannot access file "/etc/passwd"', ONLY_READS),
    }
    for statement, (sentence, hint) in cases.items():
        with pytest.raises(StatementError) as raised:
            rows(database, statement)
        assert raised.value.message.startswith(sentence), statement
        assert hint in raised.value.hint, raised.value.hint


def test_what_is_not_utf_8_is_said(database: Database) -> None:
    with pytest.raises(StatementError, match="bytes that are not UTF-8"):
        database.statements("SELECT '\udcff'")


def test_the_place_of_a_mistake_is_marked(database: Database) -> None:
    with pytest.raises(StatementError) as raised:
        rows(database, "SELECT\n  certname, outcom\nFROM runs")
    *_, line, marks = raised.value.hint.splitlines()
    assert line == "LINE 2:   certname, outcom"
    assert line[marks.index("^") : marks.rindex("^") + 1] == "outcom"


@pytest.mark.slow
def test_a_statement_that_needs_too_much_memory_says_what_helps(database: Database) -> None:
    with pytest.raises(StatementError, match="more memory") as raised:
        rows(database, "SELECT list(repeat('x', 1000) || i) FROM range(2000000) t(i)")
    assert "shorter time" in raised.value.hint


def _memory() -> int:
    """Bytes of this process in memory."""
    with open("/proc/self/statm") as file:  # noqa: PTH123 - it is no file to open by path
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


@pytest.mark.slow
def test_rows_are_read_as_they_are_needed(database: Database) -> None:
    with database.result("SELECT i, repeat('x', 1000) FROM range(100000000) t(i)") as result:
        before, number = _memory(), 0
        for batch in result.batches:
            number += len(batch)
            if number >= 200_000:  # 200 MB
                break
        assert _memory() - before < 100e6


@contextlib.contextmanager
def pressed_soon() -> Iterator[None]:
    """Ctrl-C while something is done."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGINT))
    timer.start()
    try:
        yield
    finally:
        timer.join()
        signal.signal(signal.SIGINT, handler)


@pytest.mark.slow
@pytest.mark.parametrize("statement", [ENDLESS, f"SELECT 1 FROM range(10) WHERE ({ENDLESS}) = 0"])
def test_ctrl_c_interrupts_the_statement_only(database: Database, statement: str) -> None:
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt), pressed_soon():
        rows(database, statement)
    assert time.monotonic() - began < 60, "to its end it takes days"
    assert len(rows(database, "FROM runs")) == 2


@pytest.mark.slow
def test_what_is_written_meanwhile_is_there_in_the_next_statement(tmp_path: Path, root: Path) -> None:
    with sql.opened(root) as database:
        assert len(rows(database, "FROM runs")) == 2
        tables(tmp_path, run("a.example"), run("b.example"), run("c.example"))
        assert len(rows(database, "FROM runs")) == 3


def test_while_a_result_is_read_nobody_writes(root: Path, database: Database) -> None:
    locked = threading.Event()

    def write() -> None:
        with TableDirectory(root).locked():
            locked.set()

    with database.result("FROM runs") as result:
        writer = threading.Thread(target=write)
        writer.start()
        assert not locked.wait(0.2)
        assert sum(map(len, result.batches)) == 2
    writer.join(60)
    assert locked.is_set()


def test_a_directory_without_tables(tmp_path: Path) -> None:
    with pytest.raises(InspectorError, match="no tables"), sql.opened(tmp_path):
        pass


def test_a_relative_directory_with_odd_characters(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "it's a directory"
    folder.mkdir()
    tables(folder, run("a.example"))
    monkeypatch.chdir(folder)
    with sql.opened(folder.relative_to(tmp_path).parent / "tables") as database:
        assert len(rows(database, "FROM runs")) == 1
