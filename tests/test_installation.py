"""The command of another process, and what an index is made by."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from inspector import installation

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_the_build_with_its_python_starts_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(installation, "ONE_FILE", True)
    assert installation.command("inspector.a.module", "x") == [sys.executable, "--process", "inspector.a.module", "x"]


def test_an_edited_file_changes_the_digest(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(installation, "PACKAGE", tmp_path)
    monkeypatch.setattr(sys, "executable", str(tmp_path / "program"))
    (tmp_path / "a.py").write_text("1")
    first = installation.digest()
    (tmp_path / "program").write_text("not looked at")
    assert installation.digest() == first
    (tmp_path / "a.py").write_text("12")
    second = installation.digest()
    assert second != first
    monkeypatch.setattr(installation, "ONE_FILE", True)
    third = installation.digest()
    (tmp_path / "program").write_text("another one")
    assert len({first, second, third, installation.digest()}) == 4
