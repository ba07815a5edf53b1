"""``captures``, ``merge`` and ``vacuum`` as a user and a script meet them."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import sqlite3
import time
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from inspector.capture.store import Capture
from inspector.model import Gap
from inspector.summaries import index, inventory
from tests.support import places
from tests.support.captures import keep, save
from tests.support.conversations import START, Agent, together
from tests.support.json_output import valid
from tests.support.text_tables import cells

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.conftest import Run

SAMPLES = places.SAMPLES


@pytest.fixture
def utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two samples, one that is empty, one that is damaged, and what is no capture."""
    for number, name in enumerate(("first-run", "compile-error"), 1):
        shutil.copy(SAMPLES / f"{name}.sqlite", tmp_path)
        os.utime(tmp_path / f"{name}.sqlite", (number, number))
    with Capture.create(tmp_path / "empty.sqlite"):
        pass
    with (tmp_path / "cut.sqlite").open("wb") as file:
        file.write((SAMPLES / "first-run.sqlite").read_bytes()[:20_000])
    (tmp_path / "notes.txt").write_text("no capture")
    for number, name in enumerate(("empty", "cut"), 3):
        os.utime(tmp_path / f"{name}.sqlite", (number, number))
    return tmp_path


def opened(path: Path) -> index.Index:
    found = index.Index.open(index.place(path))
    assert found is not None
    return found


@pytest.mark.usefixtures("utc")
def test_captures_says_what_a_directory_holds(run: Run, folder: Path) -> None:
    status, out, err = run("captures", folder)
    header, *lines, total = out.splitlines()
    rows = cells(header, lines)
    assert (status, err) == (0, "")
    assert tuple(header.split()) == inventory.COLUMNS
    assert rows[0][:6] == ["first-run.sqlite", "2026-11-21 12:10", "2026-11-21 12:10", "94.2 kB", "1", "1"]
    assert (rows[0][9], rows[1][0], rows[1][9]) == ("", "compile-error.sqlite", "")
    assert rows[1][6:9] == ["2", "0", "0"]
    assert rows[2][1:] == ["-", "-", rows[2][3], "-", "-", "-", "-", "-", "empty"]
    assert rows[3][:9] == ["cut.sqlite", "-", "-", "20.0 kB", "-", "-", "-", "-", "-"]
    assert "is damaged or cut off" in rows[3][9]
    assert total.startswith(f"4 captures in {folder}, ")


def test_captures_counts_as_runs_and_check_do(run: Run, folder: Path) -> None:
    _, out, _ = run("captures", folder, "--json")
    first, second, empty, cut = valid("captures", out)
    for row in (first, second):
        _, runs, _ = run("runs", row["capture"], "--json")
        _, found, _ = run("check", row["capture"], "--json")
        severities = [finding["severity"] for finding in json.loads(found)["findings"]]
        assert row["runs"] == len(json.loads(runs))
        assert row["findings"] == {severity: severities.count(severity) for severity in ("error", "warning", "notice")}
        assert row["agents"] == len({load["certname"] for load in json.loads(runs)})
    assert first["records"] == 22
    assert (empty["records"], empty["trouble"], empty["open"]) == (None, None, False)
    assert "damaged" in cut["trouble"]


def test_a_second_look_reads_no_capture_again(run: Run, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = run("captures", folder)
    assert (folder / "first-run.sqlite.index").is_file()
    assert not (folder / "empty.sqlite.index").exists()
    monkeypatch.setattr("inspector.summaries.indexer.build", lambda *_, **__: pytest.fail("it was indexed again"))
    assert run("captures", folder) == before


def test_one_that_is_being_written_is_listed_as_far_as_it_is(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "c.sqlite"
    first, second = together(Agent().run()), together(Agent("b.example", "192.0.2.2", time=START + 60).run("u-b"))
    with Capture.create(path) as capture:
        keep(capture, *first)
        (document,) = valid("captures", run("captures", tmp_path, "--json")[1])
        assert (document["open"], document["runs"], document["records"]) == (True, 1, len(first))
        keep(capture, *second)
        (document,) = valid("captures", run("captures", tmp_path, "--json")[1])
        assert (document["open"], document["agents"], document["records"]) == (True, 2, len(first + second))
        with monkeypatch.context() as patched:
            patched.setattr("inspector.summaries.indexer.build", lambda *_, **__: pytest.fail("it was indexed again"))
            assert run("captures", tmp_path)[1].splitlines()[1].endswith("  open")
    (document,) = valid("captures", run("captures", tmp_path, "--json")[1])
    assert (document["open"], document["runs"]) == (False, 2)
    with closing(opened(path)) as found:
        assert found.state().complete


def test_another_capture_of_the_same_name_is_read_anew(tmp_path: Path) -> None:
    path = save(tmp_path / "c.sqlite", Gap(1.0, "x"))
    assert inventory.look(path).plain().begin == "1970-01-01T00:00:01.000Z"
    save(tmp_path / "other", Gap(2.0, "x")).replace(path)
    assert inventory.look(path).plain().begin == "1970-01-01T00:00:02.000Z"


def test_a_record_that_can_not_be_read_is_reported(run: Run, folder: Path) -> None:
    with closing(sqlite3.connect(folder / "first-run.sqlite")) as db:
        db.execute("UPDATE record SET data = 'x' WHERE seq = 1")
        db.commit()
    document = next(load for load in json.loads(run("captures", folder, "--json")[1]) if "first-run" in load["capture"])
    assert document["records"] == 21
    assert document["trouble"].startswith("Record 1 of ")


def test_an_index_that_cannot_be_written_is_not_damage_of_the_capture(tmp_path: Path) -> None:
    path = save(tmp_path / "c.sqlite", Gap(1.0, "x"))
    index.place(path).mkdir()
    assert inventory.look(path).trouble == "its index cannot be written: Is a directory"


@pytest.mark.parametrize("before", [False, True])
def test_while_somebody_else_reads_it_that_is_reported(tmp_path: Path, *, before: bool) -> None:
    path = save(tmp_path / "c.sqlite", Gap(1.0, "x"))
    if before:  # it has been read once, but grew
        inventory.look(path)
        save(path, Gap(2.0, "x"))
    lock = os.open(f"{index.place(path)}.lock", os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        assert inventory.look(path).trouble == "Another process is reading it."
    finally:
        os.close(lock)


def test_names_of_files_can_not_talk_to_the_terminal(run: Run, tmp_path: Path) -> None:
    save(tmp_path / "a\x1b[31m.sqlite", Gap(1.0, "x"))
    _, out, _ = run("captures", tmp_path)
    assert "\x1b" not in out
    assert "a\\x1b[31m.sqlite" in out


def test_captures_of_the_usual_place(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    status, _, err = run("captures")
    none = "There is no capture in captures/."
    hint = "Name a capture, or start the proxy or `puppet-inspector demo` here."
    assert (status, err) == (2, f"puppet-inspector: {none}\n  {hint}\n")
    assert run("captures", "captures")[2].startswith("puppet-inspector: captures is not a directory.")
    (tmp_path / "captures").mkdir()
    assert run("captures") == (0, f"{none} {hint}\n", "")
    assert run("captures", tmp_path)[1].startswith(f"There is no capture in {tmp_path}/. Captures are the files")
    save(tmp_path / "captures" / "c.sqlite", Gap(1.0, "x"))
    assert run("captures")[1].splitlines()[-1].startswith("1 capture in captures, ")


def test_merge_says_what_it_made(run: Run, folder: Path) -> None:
    first, second, target = folder / "first-run.sqlite", folder / "compile-error.sqlite", folder / "both.sqlite"
    with Capture.open(second) as capture:
        records = 22 + capture.last
    assert run("captures", "merge", first, second, "-o", target) == (0, f"{records} records written to {target}\n", "")
    status, out, err = run("captures", "merge", first, target, "-o", target)
    assert (status, out, err.splitlines()[0]) == (2, "", f"puppet-inspector: {target} already exists.")
    status, out, _ = run("captures", "merge", first, target, "-o", folder / "again.sqlite", "--json")
    assert json.loads(out) == {
        "capture": str(folder / "again.sqlite"), "records": records, "twice": 22, "renamed": 0, "joined": 0,
        "places": [],
    }  # fmt: skip
    assert run("runs", target)[1].count("node1.example") >= 3


def test_vacuum_says_what_it_saved(run: Run, folder: Path) -> None:
    path = folder / "first-run.sqlite"
    with closing(sqlite3.connect(path)) as db:
        db.execute("INSERT INTO blob (sha256, size, data) VALUES ('x', 1, zeroblob(100000))")
        db.commit()
    status, out, _ = run("captures", "vacuum", path, "--json")
    saved = json.loads(out)
    assert (status, saved["capture"], saved["dropped"]) == (0, str(path), 1)
    assert saved["before"] - saved["after"] > 90_000
    size = f"{saved['after'] / 1000:.1f} kB"
    assert run("captures", "vacuum", path) == (0, f"{path}: {size} before, {size} now\n", "")
