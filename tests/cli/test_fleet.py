"""`fleet analyse`: what became of each capture, and what only all of them show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.runs.examples import altered, carried, catalog, made, plugins, report, talk
from tests.support.captures import save
from tests.support.fleets import fleet
from tests.support.json_output import valid

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run


@pytest.fixture
def sites(tmp_path: Path) -> list[Path]:
    """Two proxies' captures: one key has two names."""
    found = []
    for number, name in enumerate(("a.example", "b.example"), 1):
        leg = {"peer_chain": carried(made(name, "one"))}
        parts = (altered(part, leg=leg) for part in (plugins(), catalog(), report()))
        folder = tmp_path / f"site{number}"
        folder.mkdir()
        save(folder / "c.sqlite", *talk(*parts, certname=name, address=f"192.0.2.{number}", after=3600.0 * number))
        found.append(folder)
    return found


@pytest.mark.slow
def test_it_prints_what_became_of_each_and_what_all_show(run: Run, sites: list[Path], tmp_path: Path) -> None:
    status, out, err = run("fleet", "analyse", *sites, "-o", tmp_path / "t", "--jobs", "1")
    assert (status, err) == (0, "")
    assert out.count(": 3 records") == 2
    assert "B21 error: one public key has 2 certnames: a.example, b.example" in out
    assert out.splitlines()[-1] == "2 captures, 6 records; 1 finding that only several captures show"


@pytest.mark.slow
def test_as_json(run: Run, sites: list[Path], tmp_path: Path) -> None:
    status, out, _ = run("fleet", "analyse", *sites, "-o", tmp_path / "t", "--jobs", "1", "--json")
    document = valid("fleet", out)
    assert status == 0
    assert [(each["rule"], len(each["runs"])) for each in document["findings"]] == [("B21", 2)]
    assert document["findings"][0]["time"].endswith("Z")


@pytest.mark.slow
def test_one_that_cannot_be_read_is_said(run: Run, sites: list[Path], tmp_path: Path) -> None:
    (sites[0] / "bad.sqlite").write_text("no capture")
    status, out, err = run("fleet", "analyse", *sites, "-o", tmp_path / "t", "--jobs", "1")
    assert status == 2
    assert "bad.sqlite is not a capture" in err
    assert out.count(": 3 records") == 2


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (("--jobs", "0"), "0 processes cannot analyse anything"),
        (("--scheduler", "x:1"), "not the address of a scheduler"),
    ],
)
def test_mistakes_are_said(run: Run, sites: list[Path], tmp_path: Path, words: tuple[str, ...], expected: str) -> None:
    status, _, err = run("fleet", "analyse", *sites, "-o", tmp_path / "t", *words)
    assert status == 2
    assert expected in err


def test_a_report_of_the_directory_in_which_one_is(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(fleet(tmp_path, 2).root)
    assert run("fleet", "report", ".")[1].startswith(f"{tmp_path / 'tables.html'} written, ")


def test_captures_are_no_tables(run: Run, sites: list[Path]) -> None:
    _, _, err = run("fleet", "report", sites[0])
    assert "holds captures, not tables" in err
    assert f"puppet-inspector tables {sites[0]} -o tables/" in err


@pytest.mark.slow
def test_a_report_is_one_file(run: Run, tmp_path: Path) -> None:
    tables = fleet(tmp_path, 45)
    status, out, err = run("fleet", "report", tables.root, "-o", tmp_path / "f.html")
    assert (status, err) == (0, "")
    assert out.startswith(f"{tmp_path / 'f.html'} written, ")
    assert out.endswith(": 45 nodes\n")
    assert (tmp_path / "f.html").read_text().startswith("<!DOCTYPE html>")
    assert run("fleet", "report", tables.root, "-o", tmp_path / "f.html")[0] == 2, "never over an existing file"
    document = valid("fleet-report", run("fleet", "report", tables.root, "--json")[1])
    assert len(document["nodes"]) == 45


@pytest.mark.slow
@pytest.mark.parametrize("words", [("--jobs", "2"), ("--scheduler", "tcp://a:1"), ("--site", "paris")])
def test_what_is_for_captures_is_not_for_a_report(run: Run, tmp_path: Path, words: tuple[str, str]) -> None:
    status, out, err = run("fleet", "report", fleet(tmp_path, 2).root, "-o", tmp_path / "f.html", *words)
    assert (status, out) == (2, "")
    assert "are for captures: a report is made of tables." in err
    assert not (tmp_path / "f.html").exists()


def test_a_report_needs_tables(run: Run, sites: list[Path], tmp_path: Path) -> None:
    for words in ((tmp_path,), (sites[0], sites[1]), (sites[0] / "c.sqlite",)):
        status, _, err = run("fleet", "report", *words, "-o", tmp_path / "f.html")
        assert status == 2
        assert "fleet analyse" in err or "puppet-inspector tables" in err
    assert not (tmp_path / "f.html").exists()
