"""The process that writes a proxy's tables."""

from __future__ import annotations

import os
import subprocess
from typing import TYPE_CHECKING

import pytest

from inspector import installation
from inspector.fleet.directory import TableDirectory
from inspector.runs.examples import catalog, plugins, report, talk
from tests.support.captures import save
from tests.support.tables_of import asked

if TYPE_CHECKING:
    from pathlib import Path


def worked(tmp_path: Path, *words: str) -> tuple[int, str]:
    command = installation.command(
        "inspector.proxy.tables_worker", str(os.getpid()), str(tmp_path / "tables"), str(tmp_path / "c" / "a.sqlite"),
        *words,
    )  # fmt: skip
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr.strip()


@pytest.mark.slow
def test_it_converts_with_the_sites_rules(tmp_path: Path) -> None:
    save(tmp_path / "c" / "a.sqlite", *talk(plugins(), catalog(status=500), report(result="failed")))
    rules = tmp_path / "rules.yaml"
    rules.write_text("rules: {S01: {severity: warning}}")
    assert worked(tmp_path, "--rules", str(rules)) == (0, "")
    tables = TableDirectory.open(tmp_path / "tables")
    assert asked(tables, "SELECT severity FROM findings WHERE rule = 'S01'") == [("warning",)]
    assert asked(tables, "SELECT rules <> '' FROM captures") == [(True,)]


@pytest.mark.slow
def test_without_a_capture_there_is_nothing_to_do(tmp_path: Path) -> None:
    (tmp_path / "c").mkdir()
    assert worked(tmp_path) == (0, "")


@pytest.mark.slow
def test_it_says_what_failed_and_does_the_rest(tmp_path: Path) -> None:
    save(tmp_path / "c" / "a.sqlite", *talk(plugins()))
    (tmp_path / "c" / "b.sqlite").write_text("no capture")
    status, error = worked(tmp_path)
    assert status == 1
    assert "b.sqlite is not a capture" in error
    assert asked(TableDirectory.open(tmp_path / "tables"), "SELECT records FROM captures") == [(1,)]
