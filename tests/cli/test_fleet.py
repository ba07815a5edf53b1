"""`fleet analyse`: what became of each capture, and what only all of them show."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.runs.examples import altered, carried, catalog, made, plugins, report, talk
from tests.support.captures import save
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


def test_it_prints_what_became_of_each_and_what_all_show(run: Run, sites: list[Path], tmp_path: Path) -> None:
    status, out, err = run("fleet", "analyse", *sites, "-o", tmp_path / "t", "--jobs", "1")
    assert (status, err) == (0, "")
    assert out.count(": 3 records") == 2
    assert "B21 error: one public key has 2 certnames: a.example, b.example" in out
    assert out.splitlines()[-1] == "2 captures, 6 records; 1 finding that only several captures show"


def test_as_json(run: Run, sites: list[Path], tmp_path: Path) -> None:
    status, out, _ = run("fleet", "analyse", *sites, "-o", tmp_path / "t", "--jobs", "1", "--json")
    document = valid("fleet", out)
    assert status == 0
    assert [(each["rule"], len(each["runs"])) for each in document["findings"]] == [("B21", 2)]
    assert document["findings"][0]["time"].endswith("Z")


def test_one_that_cannot_be_read_is_said(run: Run, sites: list[Path], tmp_path: Path) -> None:
    (sites[0] / "bad.sqlite").write_text("no capture")
    status, out, err = run("fleet", "analyse", *sites, "-o", tmp_path / "t", "--jobs", "1")
    assert status == 2
    assert "bad.sqlite is not a capture" in err
    assert out.count(": 3 records") == 2


@pytest.mark.parametrize(
    ("words", "expected"),
    [(("--jobs", "0"), "0 processes cannot analyse anything"), (("--scheduler", "nonsense"), "does not answer")],
)
def test_mistakes_are_said(run: Run, sites: list[Path], tmp_path: Path, words: tuple[str, ...], expected: str) -> None:
    status, _, err = run("fleet", "analyse", *sites, "-o", tmp_path / "t", *words)
    assert status == 2
    assert expected in err
