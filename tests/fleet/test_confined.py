"""Statements run in a process with a limit of its own: nothing that they need, and nobody who waits, harms this one."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
from typing import TYPE_CHECKING

import pytest

from inspector.fleet import confined
from inspector.fleet.confined import TOO_LONG, TOO_MUCH, ConfinedConnection
from inspector.fleet.database import DatabaseError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from duckdb import DuckDBPyConnection

DEAF = "SELECT sum(length(repeat('x', 200000000 + range::INTEGER))) FROM range(1000000)"
"""DuckDB looks at nothing while it makes such a text."""


def prepare(connection: DuckDBPyConnection) -> None:
    connection.execute("SET TimeZone = 'UTC'")


@pytest.fixture
def connection(tmp_path: Path) -> Iterator[ConfinedConnection]:
    with contextlib.closing(ConfinedConnection(tmp_path, prepare)) as made:
        yield made


def test_rows_columns_and_values_are_those_of_duckdb(connection: ConfinedConnection) -> None:
    connection.execute("SELECT range + $more AS a, [range] AS b FROM range(2500)", {"more": 1})
    assert connection.description == [("a", "BIGINT"), ("b", "BIGINT[]")]
    assert connection.fetchmany(2) == [(1, [0]), (2, [1])]
    assert len(connection.fetchall()) == 2498
    assert connection.extract_statements("SELECT 1; DROP TABLE x")[1].kind == "DROP"


def test_a_mistake_is_an_error_and_the_process_goes_on(connection: ConfinedConnection) -> None:
    with pytest.raises(DatabaseError, match="Parser Error"):
        connection.execute("SELECT FROM WHERE")
    assert connection.execute("SELECT 7").fetchall() == [(7,)]
    assert connection.generation == 1


@pytest.mark.parametrize(
    "statement",
    [
        "SELECT repeat('x', 2000000000)", "SELECT range(0, 300000000)", "SELECT repeat('x', 10000000) FROM range(1000)",
        "SELECT repeat('x', 100000000)",
    ],
)  # fmt: skip
def test_what_needs_more_than_the_limit_is_an_error(connection: ConfinedConnection, statement: str) -> None:
    with pytest.raises(DatabaseError, match="Out of Memory"):
        connection.execute(statement).fetchmany(1000)
    assert connection.execute("SELECT 7").fetchall() == [(7,)]


def test_what_takes_longer_than_it_may_is_an_error(tmp_path: Path) -> None:
    with contextlib.closing(ConfinedConnection(tmp_path, prepare, 2)) as connection:
        connection.start()
        with pytest.raises(DatabaseError, match=TOO_LONG):
            connection.execute("SELECT sum(hash(a.range, b.range)) FROM range(1000000) a, range(1000000) b")
        assert connection.execute("SELECT 7").fetchall() == [(7,)]


def test_all_rows_together_are_limited(connection: ConfinedConnection, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(confined, "ANSWER", 100_000)
    assert len(connection.execute("SELECT range FROM range(?)", [2000]).fetchall()) == 2000
    with pytest.raises(DatabaseError, match=TOO_MUCH):
        connection.execute("SELECT range, repeat('x', 100) FROM range(2000)").fetchall()


def test_large_rows_come_in_pieces(connection: ConfinedConnection) -> None:
    connection.execute("SELECT repeat('x', 1000000) FROM range(200)")
    numbers = []
    while rows := connection.fetchmany(1000):
        numbers.append(len(rows))
    assert sum(numbers) == 200
    assert max(numbers) <= confined.PIECE // 1_000_000 + 1


def test_a_process_that_ends_is_replaced(connection: ConfinedConnection) -> None:
    connection.start()
    assert connection._process is not None
    connection._process.kill()
    connection._process.join()
    with pytest.raises(DatabaseError, match=TOO_MUCH):
        connection.execute("SELECT 7")
    assert connection.execute("SELECT 7").fetchall() == [(7,)]
    assert connection.generation == 2


def test_a_signal_ends_what_nothing_interrupts(connection: ConfinedConnection) -> None:
    connection.start()
    assert connection._process is not None
    process = connection._process.pid
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    try:
        timer.start()
        with pytest.raises(KeyboardInterrupt):
            connection.execute(DEAF)
    finally:
        timer.join()
        signal.signal(signal.SIGINT, handler)
    with pytest.raises(ProcessLookupError):
        os.kill(process or 0, 0)


def test_a_terminal_that_sends_the_signal_to_all_ends_nothing_by_itself(connection: ConfinedConnection) -> None:
    connection.start()
    assert connection._process is not None
    assert connection._process.pid is not None
    for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
        os.kill(connection._process.pid, number)
    assert connection.execute("SELECT 7").fetchall() == [(7,)]
