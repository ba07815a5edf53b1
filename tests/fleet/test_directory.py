"""A directory of tables: what is written twice is there once, whatever is interrupted."""

from __future__ import annotations

import fcntl
import os
import platform
from typing import TYPE_CHECKING

import duckdb
import pytest

from inspector.errors import InspectorError
from inspector.fleet import conversion, database
from inspector.fleet.directory import TableDirectory, default_site, site_of
from inspector.fleet.tables import TABLES
from inspector.runs.examples import catalog, plugins, report, talk
from tests.support.captures import save
from tests.support.tables_of import SITE, asked, converted

if TYPE_CHECKING:
    from pathlib import Path

COUNTS = "SELECT (SELECT count(*) FROM runs), (SELECT count(*) FROM exchanges), (SELECT count(*) FROM facts)"


@pytest.fixture
def captures(tmp_path: Path) -> list[Path]:
    """Three captures of one node, two of them of the same day."""
    days = (0.0, 3600.0, 86_400.0)
    return [
        save(tmp_path / f"{after:g}.sqlite", *talk(plugins(), catalog(facts={"n": after}), report(), after=after))
        for after in days
    ]


def parts(tables: TableDirectory) -> list[str]:
    return sorted(str(path.relative_to(tables.root)) for path in tables.root.rglob("*.parquet"))


def test_the_layout_is_hives(tmp_path: Path, captures: list[Path]) -> None:
    tables = converted(tmp_path, *captures)
    first, *_ = (path for path in parts(tables) if path.startswith("runs/"))
    table, date, site, name = first.split("/")
    assert (table, site) == ("runs", f"site={SITE}")
    assert date.startswith("date=20")
    assert name.startswith("part-")
    assert asked(tables, "SELECT DISTINCT site, count(DISTINCT date) FROM runs GROUP BY site") == [(SITE, 2)]


def test_a_capture_converted_twice_is_there_once_also_moved_and_for_another_site(
    tmp_path: Path, captures: list[Path]
) -> None:
    tables = converted(tmp_path, *captures)
    before = asked(tables, COUNTS)
    moved = captures[0].rename(tmp_path / "moved.sqlite")
    conversion.convert(moved, tables, "rome")
    assert asked(tables, COUNTS) == before == [(3, 9, 6)]
    assert asked(tables, "SELECT DISTINCT site FROM runs ORDER BY 1") == [(SITE,), ("rome",)]


def test_compacted_tables_have_the_same_rows_in_fewer_files(tmp_path: Path, captures: list[Path]) -> None:
    tables = converted(tmp_path, *captures)
    everything = [f"SELECT * FROM {name} ORDER BY ALL" for name in TABLES]
    rows = [asked(tables, statement) for statement in everything]
    number = len(parts(tables))
    gone = tables.compact("9999-01-01")
    assert gone > 0
    assert len(parts(tables)) == number - gone
    assert rows == [asked(tables, statement) for statement in everything]
    assert tables.compact("9999-01-01") == 0


def test_converted_again_a_captures_rows_leave_the_compacted_parts_and_only_those(
    tmp_path: Path, captures: list[Path]
) -> None:
    tables = converted(tmp_path, *captures)
    tables.compact("9999-01-01")
    before = {path: path.stat().st_ino for path in tables.root.glob("runs/*/*/*.parquet")}
    conversion.convert(captures[0], tables, "rome")
    assert asked(tables, COUNTS) == [(3, 9, 6)]
    assert asked(tables, "SELECT site, count(*) FROM runs GROUP BY site ORDER BY 1") == [(SITE, 2), ("rome", 1)]
    assert sorted(before[path] == path.stat().st_ino for path in before) == [False, True]


def test_days_that_are_not_over_are_not_compacted(tmp_path: Path, captures: list[Path]) -> None:
    assert converted(tmp_path, *captures).compact("2000-01-01") == 0


@pytest.mark.parametrize("moment", ["the old parts have other names", "the new part is there"])
def test_an_interrupted_compaction_loses_and_doubles_nothing(
    tmp_path: Path, captures: list[Path], moment: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    tables = converted(tmp_path, *captures)
    name = "replace" if moment.startswith("the old") else "unlink"
    original = getattr(type(tmp_path), name)

    def killed(path: Path, *words: object, **options: object) -> object:
        if path.suffix == ".parquet":
            raise KeyboardInterrupt
        return original(path, *words, **options)

    with monkeypatch.context() as patch:
        patch.setattr(type(tmp_path), name, killed)
        with pytest.raises(KeyboardInterrupt):
            tables.compact("9999-01-01")
    assert asked(TableDirectory.create(tables.root), COUNTS) == [(3, 9, 6)]
    assert not list(tables.root.rglob(".part-*"))


def test_nobody_else_can_read_them(tmp_path: Path, captures: list[Path]) -> None:
    tables = converted(tmp_path, captures[0])
    assert {path.stat().st_mode & 0o077 for path in (tables.root, *tables.root.rglob("*"))} == {0}


def test_a_directory_of_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "photo.jpg").touch()
    with pytest.raises(InspectorError, match=r"photo\.jpg"):
        TableDirectory.create(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["photo.jpg"]
    with pytest.raises(InspectorError, match="not a directory"):
        TableDirectory.create(tmp_path / "photo.jpg")
    with pytest.raises(InspectorError, match="no tables"):
        TableDirectory.open(tmp_path)


@pytest.mark.parametrize("name", ["a[1]", "a*", "a?"])
def test_a_path_that_stands_for_several_is_refused(tmp_path: Path, name: str) -> None:
    for inside in (tmp_path / name, tmp_path / name / "tables"):
        with pytest.raises(InspectorError, match="stands for other files"):
            TableDirectory.create(inside)
        with pytest.raises(InspectorError, match="stands for other files"):
            TableDirectory.open(inside)
    assert not list(tmp_path.iterdir())


def test_without_rows_a_table_is_empty_and_has_its_columns(tmp_path: Path) -> None:
    tables = TableDirectory.create(tmp_path / "tables")
    assert asked(tables, "SELECT certname, time, date, site FROM runs") == []


@pytest.mark.parametrize("value", ["", ".", "..", "a/b", "a b", "-x", "a" * 64, "é", "a\n"])
def test_a_site_is_the_name_of_a_directory(value: str) -> None:
    with pytest.raises(InspectorError, match="not the name of a site"):
        site_of(value)


def test_the_default_site_is_one(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("master1.example", "..", "a b", "é", ""):
        monkeypatch.setattr(platform, "node", lambda name=name: name)
        assert site_of(default_site())


def test_readers_wait_for_writers(tmp_path: Path, captures: list[Path]) -> None:
    tables = converted(tmp_path, captures[0])
    with tables.locked(), (tables.root / ".lock").open() as other, pytest.raises(BlockingIOError):
        fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)
    with tables.locked(shared=True), (tables.root / ".lock").open() as other:
        fcntl.flock(other, fcntl.LOCK_SH | fcntl.LOCK_NB)


def test_the_key_is_made_once_and_a_damaged_one_is_said(tmp_path: Path) -> None:
    tables = TableDirectory.create(tmp_path / "tables")
    assert TableDirectory.create(tables.root).key == tables.key
    (tables.root / ".key").write_text("no key")
    with pytest.raises(InspectorError, match="Cannot read the key"):
        _ = tables.key


def test_a_directory_in_which_nobody_can_write_can_be_read(tmp_path: Path, captures: list[Path]) -> None:
    tables = converted(tmp_path, captures[0])
    (tables.root / ".lock").unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "access", lambda *_: False)
        with TableDirectory.open(tables.root).locked(shared=True):
            assert not (tables.root / ".lock").exists()


def test_only_tables_whose_files_changed_are_shown_again(tmp_path: Path, captures: list[Path]) -> None:
    tables = converted(tmp_path, captures[0])
    with tables.working() as work, database.opened(work) as connection:
        before = tables.show(connection)
        connection.execute("DROP VIEW runs")
        assert tables.show(connection, before) == before
        with pytest.raises(duckdb.CatalogException):
            connection.execute("FROM runs")
        conversion.convert(captures[1], tables, SITE)
        assert tables.show(connection, before) != before
        assert connection.execute("SELECT count(*) FROM runs").fetchall() == [(2,)]
