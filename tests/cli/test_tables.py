"""`tables`: captures into Parquet, told in a line each, and what cannot be done in a sentence."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from inspector.cli import tables
from inspector.errors import InspectorError
from inspector.fleet.directory import TableDirectory
from inspector.runs.examples import catalog, plugins, report, talk
from tests.support.captures import save
from tests.support.json_output import valid
from tests.support.places import SAMPLES
from tests.support.tables_of import asked, converted

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run

CAPTURE = SAMPLES / "first-run.sqlite"
COUNT = "SELECT count(*) FROM runs"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A directory with two captures."""
    made = tmp_path / "captures"
    made.mkdir()
    save(made / "a.sqlite", *talk(plugins(), catalog(), report()))
    save(made / "b.sqlite", *talk(plugins(), catalog(), after=90_000))
    return made


def test_it_prints_what_became_of_each(run: Run, folder: Path, tmp_path: Path) -> None:
    words = ("tables", folder, "-o", tmp_path / "t", "--site", "paris", "--compact")
    status, out, err = run(*words)
    assert (status, err) == (0, "")
    assert [line.rpartition("/")[2] for line in out.splitlines()] == ["a.sqlite: 3 records", "b.sqlite: 2 records"]
    assert run(*words)[1].count("unchanged") == 2
    tables = TableDirectory.open(tmp_path / "t")
    assert asked(tables, "SELECT count(*), min(site) FROM runs") == [(2, "paris")]


@pytest.mark.slow
def test_control_characters_in_the_name_of_a_file_reach_no_terminal(run: Run, tmp_path: Path) -> None:
    path = save(tmp_path / "a\x1b[31m.sqlite", *talk(plugins()))
    for command in (("tables",), ("fleet", "analyse")):
        status, out, err = run(*command, path, "-o", tmp_path / "t")
        assert status == 0
        assert "1 record" in out
        assert "\x1b" not in out + err


def test_as_json(run: Run, folder: Path, tmp_path: Path) -> None:
    status, out, _ = run("tables", folder, "-o", tmp_path / "t", "--json")
    made = valid("tables", out)
    assert status == 0
    assert [each["records"] for each in made["captures"]] == [3, 2]
    assert len({each["capture"] for each in made["captures"]}) == 2


def test_one_that_cannot_be_read_is_said_and_the_others_are_done(run: Run, folder: Path, tmp_path: Path) -> None:
    (folder / "c.sqlite").write_text("no capture")
    status, out, err = run("tables", folder, "-o", tmp_path / "t")
    assert status == 2
    assert len(out.splitlines()) == 2
    assert "c.sqlite is not a capture" in err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--site", "a/b"), "'a/b' is not the name of a site"),
        (("-o", "/proc/nothing"), "Cannot write the tables"),
    ],
)
def test_mistakes_are_said(run: Run, folder: Path, tmp_path: Path, words: tuple[str, ...], expected: str) -> None:
    status, _, err = run("tables", folder, "-o", tmp_path / "t", *words)
    assert status == 2
    assert expected in err
    assert not (tmp_path / "t").exists()


def test_without_duckdb_it_says_what_is_missing(
    run: Run, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    status, _, err = run("tables", folder, "-o", tmp_path / "t")
    assert status == 2
    assert "pip install 'puppet-inspector[sql]'" in err


def test_those_of_captures_are_the_same_and_do_not_stay(tmp_path: Path) -> None:
    made = converted(tmp_path, CAPTURE)
    with tables.opened([CAPTURE]) as (directory, status):
        root = directory.root
        assert asked(directory, COUNT) == asked(made, COUNT) == [(1,)]
        assert status == 0
    assert not root.exists()
    with tables.opened([made.root]) as (directory, status):
        assert (directory.root, status) == (made.root, 0)
    assert made.root.exists()


def test_mistakes_in_what_is_given(tmp_path: Path) -> None:
    made = converted(tmp_path, CAPTURE).root
    for given, rules, sentence in (
        ([made, CAPTURE], False, "not the only argument"),
        ([made], True, "Rules are applied when captures are read"),
        ([made / "runs"], False, "There are no tables in"),
        ([tmp_path / "none.sqlite"], False, "none.sqlite"),
    ):
        with pytest.raises(InspectorError, match=sentence), tables.opened(given, rules=rules):
            pass
