"""Directories with other releases of Debian: how long they may take, and how a session says that it has none."""

from __future__ import annotations

import os
from types import SimpleNamespace
from typing import TYPE_CHECKING

import pytest

from tests.conftest import not_had
from tests.real import openvox_ca, releases

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root for mounts of its own")
def test_one_that_is_not_made_in_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What was begun is ended."""
    (program := tmp_path / "debootstrap").write_text(f"#!/bin/sh\necho $$ >{tmp_path}/pid\nsleep 1000\n")
    program.chmod(0o755)
    monkeypatch.setattr(releases, "ENVIRONMENT", {"PATH": f"{tmp_path}:{os.environ['PATH']}"})
    monkeypatch.setattr(releases, "_mirror", lambda: "http://nowhere.invalid")
    with pytest.raises(releases.TooSlow, match=r"^no directory with Debian trixie: puppet-agent took more than 1 s$"):
        releases.make("trixie", tmp_path / "root", ["puppet-agent"], seconds=1)
    with pytest.raises(ProcessLookupError):
        os.kill(int((tmp_path / "pid").read_text()), 0)


def test_a_directory_that_was_made_before_gets_what_it_lacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    installed: list[tuple[Path, list[str]]] = []
    lacking = releases.ALSO["sid"]

    def install(system: releases.System, packages: list[str], seconds: float | None) -> None:
        installed.append((system.root, packages))
        for file in lacking.values():
            (system.root / file).parent.mkdir(parents=True, exist_ok=True)
            (system.root / file).touch()

    monkeypatch.setattr(releases, "_install", install)
    monkeypatch.setenv("XDG_CACHE_HOME", f"{tmp_path}")
    (root := releases.cache() / "sid-openvox-agent").mkdir(parents=True)
    assert releases.stored("sid").root == root
    assert releases.stored("sid").root == root
    assert installed == [(root, [*lacking])]


def test_the_last_line_names_what_could_not_be_had() -> None:
    skipped = SimpleNamespace(longrepr=("conftest.py", 3, f"Skipped: {releases.NOT_HAD} sid: took too long"))
    failed = SimpleNamespace(
        longrepr=object(), longreprtext=f"E  Failed: {releases.NOT_HAD} trixie with x: error 1\nmore"
    )
    other = SimpleNamespace(longrepr=("a.py", 1, "Skipped: needs root"))
    assert not_had({"skipped": [other]}) == ""
    line = "NOT PLAYED with other versions of Puppet: no directory with Debian sid: took too long; "
    assert not_had({"skipped": [other, skipped, skipped], "error": [failed]}) == (
        line + "no directory with Debian trixie with x: error 1"
    )
    without = SimpleNamespace(longrepr=("conftest.py", 3, f"Skipped: {openvox_ca.NOT_HAD}: X names none"))
    assert not_had({"skipped": [without]}).endswith(": no openvox-ca could be had: X names none")
