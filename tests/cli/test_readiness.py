"""``puppet-inspector readiness``: its output, its exit status, its mistakes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.explain.readiness.changes import CHANGES
from inspector.runs.examples import catalog, talk
from tests.support import json_output
from tests.support.captures import save
from tests.support.upgrades import FACTS, healthy, quiet, showing

if TYPE_CHECKING:
    from pathlib import Path

    from tests.conftest import Run


@pytest.fixture
def capture(tmp_path: Path) -> Path:
    return save(tmp_path / "a.sqlite", *talk(catalog(facts=FACTS), quiet()))


def test_what_concerns_a_node_is_the_exit_status(run: Run, capture: Path, tmp_path: Path) -> None:
    status, out, err = run("readiness", capture)
    assert (status, err) == (1, "")
    assert out.splitlines()[2].split() == ["change", "since", "nodes", "last", "record"]
    assert out.splitlines()[3].startswith("legacy facts  8      1      ")
    assert run("readiness", save(tmp_path / "b.sqlite", *healthy()))[0] == 0


def test_versions(run: Run, tmp_path: Path) -> None:
    capture = save(tmp_path / "a.sqlite", *showing("report-store"))
    assert run("readiness", capture)[0] == 1
    assert run("readiness", capture, "--for", "8")[0] == 0
    status, _, err = run("readiness", capture, "--for", "7")
    assert status == 2
    assert "invalid choice" in err


def test_several_captures(run: Run, capture: Path, tmp_path: Path) -> None:
    save(tmp_path / "b.sqlite", *talk(catalog(facts=FACTS), quiet(), certname="b.example", after=60))
    _, out, _ = run("readiness", tmp_path)
    assert "legacy facts  8      2      " in out
    assert "record 1 of b.sqlite" in out
    assert "nodes:  b.example, node1.example" in out


def test_a_damaged_capture_is_reported_and_the_others_are_read(run: Run, capture: Path, tmp_path: Path) -> None:
    (tmp_path / "b.sqlite").write_text("none")
    status, out, err = run("readiness", tmp_path)
    assert status == 2
    assert "legacy facts" in out
    assert err.startswith("puppet-inspector: ")


@pytest.mark.slow
def test_json(run: Run, tmp_path: Path) -> None:
    for key in (change.key for change in CHANGES):
        capture = save(tmp_path / f"{key}.sqlite", *showing(key))
        status, out, _ = run("readiness", capture, "--json")
        document = json_output.valid("readiness", out)
        assert (key, status) == (key, 1)
        assert key in [change["key"] for change in document["changes"] if change["nodes"]]
        assert document["captures"] == [str(capture)]
