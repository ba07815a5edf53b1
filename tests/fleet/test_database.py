"""DuckDB as it is opened."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from inspector.errors import InspectorError
from inspector.fleet import database

if TYPE_CHECKING:
    from pathlib import Path


def test_without_duckdb_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(InspectorError) as raised, database.opened(tmp_path):
        pass
    assert "puppet-inspector[sql]" in raised.value.hint


def test_its_errors_are_ours(tmp_path: Path) -> None:
    with pytest.raises(database.DatabaseError, match="syntax error"), database.opened(tmp_path) as connection:
        connection.execute("SELEKT 1")


def test_ctrl_c_is_one_also_within_duckdb() -> None:
    with pytest.raises(KeyboardInterrupt), database.reported():
        raise RuntimeError("Query interrupted")
    with pytest.raises(RuntimeError, match="other"), database.reported():
        raise RuntimeError("another one")


def test_it_fetches_no_extension(tmp_path: Path) -> None:
    with database.opened(tmp_path) as connection:
        settings = "SELECT name, value FROM duckdb_settings() WHERE name LIKE 'auto%_known_extensions' ORDER BY 1"
        assert [value for _, value in connection.execute(settings).fetchall()] == ["false", "false"]


@pytest.mark.parametrize("value", ["plain", "it's", "'; DROP TABLE x; --", "\\", "é\n"])
def test_a_text_is_a_literal(tmp_path: Path, value: str) -> None:
    with database.opened(tmp_path) as connection:
        assert connection.execute(f"SELECT {database.text(value)}").fetchall() == [(value,)]
