"""A directory of tables: what is written twice is there once, whatever is interrupted."""

from __future__ import annotations

import fcntl
import itertools
import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import duckdb
import pytest

from inspector.errors import InspectorError
from inspector.fleet import conversion, database, sql
from inspector.fleet.directory import TableDirectory, default_site, site_of
from inspector.fleet.overview import overview_of
from inspector.fleet.tables import TABLES
from inspector.runs.examples import catalog, plugins, report, talk
from tests.support.captures import save
from tests.support.places import DOCS
from tests.support.programs import program
from tests.support.tables_of import SITE, asked, converted

if TYPE_CHECKING:
    from collections.abc import Iterable

COUNTS = "SELECT (SELECT count(*) FROM runs), (SELECT count(*) FROM exchanges), (SELECT count(*) FROM facts)"


@pytest.fixture
def captures(tmp_path: Path) -> list[Path]:
    """Three captures of one node, two of them of the same day."""
    (first,) = talk(plugins())
    noon = 43_200 - first.time % 86_400
    return [
        save(
            tmp_path / f"{after:g}.sqlite", *talk(plugins(), catalog(facts={"n": after}), report(), after=noon + after)
        )
        for after in (0.0, 3600.0, 86_400.0)
    ]


def parts(tables: TableDirectory) -> list[str]:
    return sorted(str(path.relative_to(tables.root)) for path in tables.root.rglob("*.parquet"))


@pytest.mark.slow
def test_the_layout_is_hives(tmp_path: Path, captures: list[Path]) -> None:
    tables = converted(tmp_path, *captures)
    first, *_ = (path for path in parts(tables) if path.startswith("runs/"))
    table, date, site, name = first.split("/")
    assert (table, site) == ("runs", f"site={SITE}")
    assert date.startswith("date=20")
    assert name.startswith("part-")
    assert asked(tables, "SELECT DISTINCT site, count(DISTINCT date) FROM runs GROUP BY site") == [(SITE, 2)]


@pytest.mark.slow
def test_a_capture_converted_twice_is_there_once_also_moved_and_for_another_site(
    tmp_path: Path, captures: list[Path]
) -> None:
    tables = converted(tmp_path, *captures)
    before = asked(tables, COUNTS)
    moved = captures[0].rename(tmp_path / "moved.sqlite")
    conversion.convert(moved, tables, "rome")
    assert asked(tables, COUNTS) == before == [(3, 9, 6)]
    assert asked(tables, "SELECT DISTINCT site FROM runs ORDER BY 1") == [(SITE,), ("rome",)]


@pytest.mark.slow
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


@pytest.mark.slow
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


@pytest.mark.slow
def test_what_docs_say_brings_the_tables_of_several_proxies_together(tmp_path: Path, captures: list[Path]) -> None:
    rsync = program("rsync", "rsync")
    page = (DOCS / "fleet.md").read_text()
    script = re.search(r"^for site in paris rome; do\n.*?^done$", page, re.DOTALL | re.MULTILINE)
    assert script
    proxies = {}
    for site, those in {"paris": captures[:2], "rome": captures[2:]}.items():
        proxies[site] = TableDirectory.create(tmp_path / site)
        for capture in those:
            conversion.convert(capture, proxies[site], site)
    remote = "$site:/var/lib/puppet-inspector/tables/"
    assert remote in script[0]
    local = script[0].replace(remote, f"{tmp_path}/$site/").replace("  rsync", f"  {rsync}")
    for happens in ("nothing", "compacted", "converted again", "compacted again"):
        if happens.startswith("compacted"):
            proxies["paris"].compact("9999-01-01")
        elif happens.startswith("converted"):
            save(captures[0], *talk(plugins(), after=300))  # more of it
            conversion.convert(captures[0], proxies["paris"], "paris")
        done = subprocess.run(["sh", "-euc", local], cwd=tmp_path, check=True, capture_output=True, text=True)
        assert done.stdout + done.stderr == ""
        together = TableDirectory.open(tmp_path / "tables")
        sites = asked(together, "SELECT site, count(*) FROM captures GROUP BY site ORDER BY 1")
        assert sites == [("paris", 2), ("rome", 1)]
        assert asked(together, "SELECT count(*) FROM exchanges") == asked_of(proxies.values()), happens


def asked_of(directories: Iterable[TableDirectory]) -> list[tuple[int]]:
    return [(sum(asked(each, "SELECT count(*) FROM exchanges")[0][0] for each in directories),)]


@pytest.mark.slow
def test_days_that_are_not_over_are_not_compacted(tmp_path: Path, captures: list[Path]) -> None:
    assert converted(tmp_path, *captures).compact("2000-01-01") == 0


def interrupt(patch: pytest.MonkeyPatch, name: str, after: int) -> None:
    """Let a method of paths be interrupted once it was called for so many parts."""
    original, calls = getattr(Path, name), itertools.count()

    def killed(path: Path, *words: object, **options: object) -> object:
        if path.suffix == ".parquet" and next(calls) >= after:
            raise KeyboardInterrupt
        return original(path, *words, **options)

    patch.setattr(type(Path()), name, killed)


@pytest.mark.slow
@pytest.mark.parametrize("after", range(4))
@pytest.mark.parametrize("name", ["rename", "replace", "unlink"])
def test_an_interrupted_compaction_loses_and_doubles_nothing(
    tmp_path: Path, captures: list[Path], name: str, after: int
) -> None:
    tables = converted(tmp_path, *captures)
    with pytest.MonkeyPatch.context() as patch:
        interrupt(patch, name, after)
        with pytest.raises(KeyboardInterrupt):
            tables.compact("9999-01-01")
    assert asked(TableDirectory.create(tables.root), COUNTS) == [(3, 9, 6)]
    assert not list(tables.root.rglob(".part-*"))


@pytest.mark.slow
@pytest.mark.parametrize("after", range(6))
@pytest.mark.parametrize("name", ["replace", "unlink"])
def test_an_interrupted_conversion_is_done_again(tmp_path: Path, captures: list[Path], name: str, after: int) -> None:
    tables = converted(tmp_path, captures[0])
    before = [asked(tables, f"SELECT * EXCLUDE site FROM {name} ORDER BY ALL") for name in TABLES]
    with pytest.MonkeyPatch.context() as patch:
        interrupt(patch, name, after)
        with pytest.raises(KeyboardInterrupt):
            conversion.convert(captures[0], tables, "rome")
    conversion.convert(captures[0], tables, SITE)
    assert [asked(tables, f"SELECT * EXCLUDE site FROM {name} ORDER BY ALL") for name in TABLES] == before


def test_what_a_killed_process_left_is_removed_and_what_is_in_use_is_not(tmp_path: Path) -> None:
    tables = TableDirectory.create(tmp_path / "tables")
    left = tables.root / ".work-left"
    left.mkdir()
    (left / "rows.duckdb").write_text("large")
    with tables.working() as work:
        TableDirectory.create(tables.root)
        assert work.is_dir()
    assert not left.exists()


def test_one_that_is_removed_meanwhile_disturbs_nobody(tmp_path: Path) -> None:
    tables = TableDirectory.create(tmp_path / "tables")
    (tables.root / ".work-gone").symlink_to(tmp_path / "nowhere")  # it is listed, and cannot be opened
    assert TableDirectory.create(tables.root).key


@pytest.mark.slow
@pytest.mark.parametrize("late", [False, True])
def test_a_copy_with_fewer_records_replaces_nothing(tmp_path: Path, late: bool) -> None:
    records = talk(plugins(), catalog(), report())
    longer, shorter = save(tmp_path / "longer.sqlite", *records), save(tmp_path / "shorter.sqlite", *records[:2])
    tables = converted(tmp_path, longer)
    with pytest.MonkeyPatch.context() as patch:
        if late:  # another process is faster
            patch.setattr(conversion, "_known", lambda *_, **__: None)
        found = conversion.convert(shorter, tables, "rome")
    assert (found.unchanged, found.notes) == (True, (conversion.SHORTER,))
    assert asked(tables, "SELECT site, records FROM captures") == [(SITE, 3)]
    assert asked(tables, "SELECT count(*) FROM exchanges") == [(3,)]


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


def test_a_site_is_the_name_of_a_directory(subtests: pytest.Subtests) -> None:
    for value in ["", ".", "..", "a/b", "a b", "-x", "a" * 64, "é", "a\n"]:
        with subtests.test(value), pytest.raises(InspectorError, match="not the name of a site"):
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


@pytest.mark.slow
@pytest.mark.parametrize("compacted", [False, True])
@pytest.mark.parametrize("damage", ["cut", "changed", "another table"])
def test_a_damaged_part_is_named_with_what_to_do(
    tmp_path: Path, captures: list[Path], damage: str, compacted: bool
) -> None:
    tables = converted(tmp_path, *captures)
    if compacted:
        tables.compact("9999-01-01")
    part = max(tables.root.glob("exchanges/*/*/*.parquet"), key=lambda path: path.stat().st_size)
    data = part.read_bytes()
    if damage == "cut":
        part.write_bytes(data[: len(data) // 2])
    elif damage == "changed":
        part.write_bytes(data[:-300] + bytes(byte ^ 0x5A for byte in data[-300:-8]) + data[-8:])
    else:
        part.write_bytes(next(tables.root.glob("runs/*/*/*.parquet")).read_bytes()[:-4] + b"XXXX")
    for ask in (
        lambda: asked(tables, "SELECT max(path), max(certname) FROM exchanges"), lambda: overview_of(tables),
        lambda: by_sql(tables.root, "SELECT max(path), max(certname) FROM exchanges"),
    ):  # fmt: skip
        with pytest.raises(InspectorError, match="is damaged") as raised:
            ask()
        assert str(part) in raised.value.message
        assert "\x00" not in raised.value.message
    assert raised.value.hint.startswith("Convert" if compacted else "Remove")
    if not compacted:
        subprocess.run(raised.value.hint.partition(": ")[2], shell=True, check=True)  # noqa: S602 - as it is pasted
        for capture in captures:
            conversion.convert(capture, tables, SITE)
        assert asked(tables, COUNTS) == [(3, 9, 6)]


@pytest.mark.slow
def test_what_docs_say_brings_them_from_a_bucket(tmp_path: Path, captures: list[Path]) -> None:
    """A directory is a bucket, too. What was there of the site before goes, another site's stays."""
    script = re.search(r"```python\n(.*?)```", (DOCS / "fleet.md").read_text(), re.DOTALL)
    assert script
    (tmp_path / "paris").mkdir()
    paris = TableDirectory.create(tmp_path / "paris/tables")
    for capture in captures[:2]:
        conversion.convert(capture, paris, "paris")
    together = TableDirectory.create(tmp_path / "together")
    conversion.convert(captures[2], together, "rome")
    places = {"s3://fleet/paris": f"file://{paris.root}", "file:///srv/tables": f"file://{together.root}"}
    text = script[1]
    for given, here in places.items():
        assert given in text
        text = text.replace(given, here)
    sites = "SELECT site, count(*) FROM runs GROUP BY site ORDER BY 1"
    for _ in range(2):
        subprocess.run([sys.executable, "-c", text], check=True)
        assert asked(together, sites) == [("paris", 2), ("rome", 1)]
        paris.compact("9999-01-01")  # of two parts one is made


def by_sql(root: Path, statement: str) -> list[object]:
    with sql.opened(root) as opened, opened.result(statement) as result:
        return list(result.batches)


def test_the_key_is_made_once_and_a_damaged_one_is_said(tmp_path: Path) -> None:
    tables = TableDirectory.create(tmp_path / "tables")
    assert TableDirectory.create(tables.root).key == tables.key
    for damaged in ("no key", "", "00"):
        (tables.root / ".key").write_text(damaged)
        with pytest.raises(InspectorError, match="Cannot read the key"):
            _ = tables.key
    assert [path.name for path in tables.root.iterdir() if path.name.startswith(".key")] == [".key"]


def test_another_key_is_not_made_for_tables_that_are_there(tmp_path: Path, captures: list[Path]) -> None:
    """Hashes of the same value would differ from part to part."""
    tables = converted(tmp_path, captures[0])
    (tables.root / ".key").unlink()
    with pytest.raises(InspectorError, match="their key is gone") as raised:
        TableDirectory.create(tables.root)
    assert raised.value.hint.startswith("Restore .key in it")
    assert not (tables.root / ".key").exists()


@pytest.mark.parametrize("kind", ["pipe", "link", "directory"])
def test_a_part_that_is_no_file_is_neither_waited_for_nor_followed(
    tmp_path: Path, captures: list[Path], kind: str
) -> None:
    tables = converted(tmp_path, captures[0])
    (part,) = tables.root.glob("runs/*/*/*.parquet")
    moved = part.rename(tmp_path / "moved.parquet")
    if kind == "link":
        part.symlink_to(moved)
    else:
        (os.mkfifo if kind == "pipe" else os.mkdir)(part)
    for read in (lambda: by_sql(tables.root, "FROM runs"), lambda: overview_of(tables)):
        with pytest.raises(InspectorError, match="is not a regular file"):
            read()


@pytest.mark.slow
def test_what_is_concluded_from_a_damaged_part_names_it(tmp_path: Path, captures: list[Path]) -> None:
    tables = converted(tmp_path, *captures)
    part = next(tables.root.glob("runs/date=*/site=*/*.parquet"))
    part.write_bytes(part.read_bytes()[:-40])
    with pytest.raises(InspectorError, match=re.escape(part.name)):
        tables.conclude()


def test_a_directory_in_which_nobody_can_write_can_be_read(tmp_path: Path, captures: list[Path]) -> None:
    tables = converted(tmp_path, captures[0])
    (tables.root / ".lock").unlink()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(os, "access", lambda *_: False)
        before = sorted(tables.root.iterdir())
        with TableDirectory.open(tables.root).reading() as connection:
            assert connection.execute("SELECT count(*) FROM runs").fetchall() == [(1,)]
            assert sorted(tables.root.iterdir()) == before


@pytest.mark.slow
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
