"""`tables`: captures into Parquet, told in a line each, and what cannot be done in a sentence."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import pytest

from inspector.cli import tables
from inspector.errors import InspectorError
from inspector.fleet.directory import TableDirectory
from inspector.runs.examples import altered, carried, catalog, made, plugins, report, talk
from tests.support.apart import ONE, apart, recorded, sampled
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
    folder = tmp_path / "captures"
    folder.mkdir()
    save(folder / "a.sqlite", *talk(plugins(), catalog(), report()))
    save(folder / "b.sqlite", *talk(plugins(), catalog(), after=90_000))
    return folder


def test_it_prints_what_became_of_each(run: Run, folder: Path, tmp_path: Path) -> None:
    words = ("tables", folder, "-o", tmp_path / "t", "--site", "paris", "--compact")
    status, out, err = run(*words)
    assert (status, err) == (0, "")
    assert sorted(line.rpartition("/")[2] for line in out.splitlines()) == [
        "2 captures, 5 records; nothing that only several captures show", "a.sqlite: 3 records", "b.sqlite: 2 records",
    ]  # fmt: skip
    assert run("fleet", "analyse", *words[1:])[1].count("unchanged") == 2, "it was called that"
    tables = TableDirectory.open(tmp_path / "t")
    assert asked(tables, "SELECT count(*), min(site) FROM runs") == [(2, "paris")]


@pytest.mark.slow
def test_control_characters_in_the_name_of_a_file_reach_no_terminal(run: Run, tmp_path: Path) -> None:
    path = save(tmp_path / "a\x1b[31m.sqlite", *talk(plugins()))
    for options in ((), ("--jobs", "1")):
        status, out, err = run("tables", path, "-o", tmp_path / "t", *options)
        assert status == 0
        assert "1 record" in out
        assert "\x1b" not in out + err


def test_as_json(run: Run, folder: Path, tmp_path: Path) -> None:
    status, out, _ = run("tables", folder, "-o", tmp_path / "t", "--json")
    document = valid("tables", out)
    assert status == 0
    assert [each["records"] for each in document["captures"]] == [3, 2]
    assert len({each["capture"] for each in document["captures"]}) == 2


def test_one_that_cannot_be_read_is_said_and_the_others_are_done(run: Run, folder: Path, tmp_path: Path) -> None:
    (folder / "c.sqlite").write_text("no capture")
    status, out, err = run("tables", folder, "-o", tmp_path / "t")
    assert status == 2
    assert len(out.splitlines()) == 3
    assert "c.sqlite is not a capture" in err
    document = valid("tables", run("tables", folder, "-o", tmp_path / "t", "--json")[1])
    assert [each["error"] is None for each in document["captures"]] == [True, True, False]


def test_captures_of_several_places_are_one_in_the_tables(run: Run, tmp_path: Path) -> None:
    """However they were converted before, and though more come: the rows of what was merged are there once."""
    folder, target = tmp_path / "captures", tmp_path / "t"
    folder.mkdir()
    paths = apart(folder, -420.0)
    for path in paths:
        assert run("tables", path, "-o", target)[0] == 0
    tables = TableDirectory.open(target)
    assert asked(tables, COUNT) == [(3,)], "parts of one run"

    def convert(of: Path = folder, *words: str) -> tuple[str, str]:
        status, out, err = run("tables", of, "-o", target, *words)
        assert status == 0
        return out, err

    out, err = convert()
    assert (out, "3 captures are read as one" in err) == (f"{folder}: {len(sampled())} records\n", True)
    assert convert()[0] == f"{folder}: unchanged, {len(sampled())} records\n"
    names = "SELECT name, len(sources), complete FROM captures"
    runs = "SELECT count(*), count(DISTINCT capture), min(outcome) FROM runs"
    assert (asked(tables, names), asked(tables, runs)) == ([("captures.sqlite", 3, True)], [(1, 1, "complete")])

    _, err = convert(paths[0])
    assert "It is in the tables as a part of several that were read as one, and stays." in err
    assert asked(tables, names) == [("captures.sqlite", 3, True)]

    later = talk(plugins(), catalog(), report())
    recorded(folder / "later.sqlite", ONE, later)
    (row,) = valid("tables", convert(folder, "--json")[0])["captures"]
    assert (row["path"], row["records"], row["unchanged"]) == (str(folder), len(sampled()) + 3, False)
    assert (asked(tables, names), asked(tables, runs)) == ([("captures.sqlite", 4, True)], [(2, 1, "complete")])
    assert asked(tables, "SELECT count(*) FROM exchanges") == [(len(sampled()) + 3,)]


def test_what_was_read_as_one_is_not_lost_when_a_part_of_it_is_gone(run: Run, tmp_path: Path) -> None:
    folder, target = tmp_path / "captures", tmp_path / "t"
    folder.mkdir()
    paths = apart(folder, 0.0)
    assert run("tables", folder, "-o", target)[0] == 0
    paths[0].unlink()
    status, _, err = run("tables", folder, "-o", target)
    assert status == 2
    assert "1 capture that the tables have, read as one with some of these, is not here any more" in err
    assert asked(TableDirectory.open(target), "SELECT outcome FROM runs") == [("complete",)]
    for path in paths[1:]:
        path.unlink()
    recorded(folder / "next.sqlite", ONE, talk(plugins(), catalog(), report()))
    assert run("tables", folder, "-o", target)[0] == 0
    assert asked(TableDirectory.open(target), "SELECT outcome FROM runs") == [("complete",), ("complete",)]


def test_copies_of_captures_of_several_places_are_one_as_well(run: Run, tmp_path: Path) -> None:
    folder, target = tmp_path / "captures", tmp_path / "t"
    folder.mkdir()
    apart(folder, 0.0)
    for _ in range(2):
        assert run("tables", folder, "-o", target, "--shared")[0] == 0
        recorded(folder / "next.sqlite", ONE, talk(plugins(), catalog(), report()))
    found = asked(TableDirectory.open(target), "SELECT count(*), count(DISTINCT capture) FROM runs")
    assert found == [(2, 1)]


def test_captures_to_pass_on_are_converted_together(run: Run, folder: Path, tmp_path: Path) -> None:
    status, _, err = run("tables", folder, "-o", tmp_path / "t", "--shared", "--jobs", "2")
    assert status == 2
    assert "get their pseudonyms together" in err


@pytest.fixture
def sites(tmp_path: Path) -> list[Path]:
    """Two proxies' captures: one key has two names."""
    found = []
    for number, name in enumerate(("a.example", "b.example"), 1):
        leg = {"peer_chain": carried(made(name, "one"))}
        parts = (altered(part, leg=leg) for part in (plugins(), catalog(), report()))
        folder = tmp_path / f"site{number}"
        folder.mkdir()
        save(
            folder / f"{name}.sqlite", *talk(*parts, certname=name, address=f"192.0.2.{number}", after=3600.0 * number)
        )
        found.append(folder)
    return found


@pytest.mark.slow
def test_what_only_all_of_them_show_comes_last_with_the_names_of_captures(
    run: Run, sites: list[Path], tmp_path: Path
) -> None:
    status, out, err = run("tables", *sites, "-o", tmp_path / "t", "--jobs", "1")
    assert (status, err) == (0, "")
    assert out.count(": 3 records") == 2
    assert "B21 error: one public key has 2 certnames: a.example, b.example" in out
    assert "    in a.example.sqlite:1, b.example.sqlite:1\n" in out
    assert out.splitlines()[-1] == "2 captures, 6 records; 1 finding that only several captures show"


@pytest.mark.slow
def test_what_all_show_as_json(run: Run, sites: list[Path], tmp_path: Path) -> None:
    status, out, _ = run("tables", *sites, "-o", tmp_path / "t", "--jobs", "1", "--json")
    document = valid("tables", out)
    assert status == 0
    assert [(each["rule"], len(each["runs"])) for each in document["findings"]] == [("B21", 2)]
    assert document["findings"][0]["places"] == ["a.example.sqlite:1", "b.example.sqlite:1"]
    assert document["findings"][0]["time"].endswith("Z")


@pytest.mark.slow
def test_one_of_several_that_cannot_be_read_is_said(run: Run, sites: list[Path], tmp_path: Path) -> None:
    (sites[0] / "bad.sqlite").write_text("no capture")
    status, out, err = run("tables", *sites, "-o", tmp_path / "t", "--jobs", "1")
    assert status == 2
    assert "bad.sqlite is not a capture" in err
    assert out.count(": 3 records") == 2


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--jobs", "0"), "0 processes cannot convert anything"),
        (("--scheduler", "x:1"), "not the address of a scheduler"),
    ],
)
def test_mistakes_about_processes_are_said(
    run: Run, sites: list[Path], tmp_path: Path, words: tuple[str, ...], expected: str
) -> None:
    status, _, err = run("tables", *sites, "-o", tmp_path / "t", *words)
    assert status == 2
    assert expected in err


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
    known = converted(tmp_path, CAPTURE)
    with tables.opened([CAPTURE]) as (directory, status):
        root = directory.root
        assert asked(directory, COUNT) == asked(known, COUNT) == [(1,)]
        assert status == 0
    assert not root.exists()
    with tables.opened([known.root]) as (directory, status):
        assert (directory.root, status) == (known.root, 0)
    assert known.root.exists()


def test_mistakes_in_what_is_given(tmp_path: Path) -> None:
    root = converted(tmp_path, CAPTURE).root
    for given, rules, sentence in (
        ([root, CAPTURE], False, "not the only argument"),
        ([root], True, "Rules are applied when captures are read"),
        ([root / "runs"], False, "There are no tables in"),
        ([tmp_path / "none.sqlite"], False, "none.sqlite"),
    ):
        with pytest.raises(InspectorError, match=sentence), tables.opened(given, rules=rules):
            pass
