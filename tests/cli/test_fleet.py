"""`fleet report`: one file of a directory of tables."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.runs.examples import plugins, talk
from tests.support.captures import save
from tests.support.fleets import fleet
from tests.support.json_output import valid

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run


def test_a_report_of_the_directory_in_which_one_is(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(fleet(tmp_path, 2).root)
    assert run("fleet", "report", ".")[1].startswith(f"{tmp_path / 'tables.html'} written, ")


def test_captures_are_no_tables(run: Run, tmp_path: Path) -> None:
    save(tmp_path / "c.sqlite", *talk(plugins()))
    _, _, err = run("fleet", "report", tmp_path)
    assert "holds captures, not tables" in err
    assert f"puppet-inspector tables {tmp_path} -o tables/" in err


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
    assert f"`puppet-inspector fleet` has no option {words[0]}." in err
    assert not (tmp_path / "f.html").exists()


def test_a_report_needs_tables(run: Run, tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    capture = save(tmp_path / "a" / "c.sqlite", *talk(plugins()))
    for words in ((tmp_path,), (tmp_path, tmp_path / "a"), (capture,)):
        status, _, err = run("fleet", "report", *words, "-o", tmp_path / "f.html")
        assert status == 2
        assert "puppet-inspector tables" in err
    assert not (tmp_path / "f.html").exists()
