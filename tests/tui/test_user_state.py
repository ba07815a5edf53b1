"""What is remembered: private files, and nothing that can go wrong reaches the user."""

from __future__ import annotations

import stat
from typing import TYPE_CHECKING

from inspector.tui import user_state

if TYPE_CHECKING:
    from pathlib import Path

    import pytest


def test_what_is_written_is_for_its_owner_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    user_state.write("theme", "light")
    user_state.write("theme", "dark")
    written = user_state.folder() / "theme"
    assert written.read_text() == "dark"
    assert stat.S_IMODE(written.stat().st_mode) == 0o600
    assert stat.S_IMODE(written.parent.stat().st_mode) == 0o700
    assert [path.name for path in written.parent.iterdir()] == ["theme"]


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    user_state.write("theme", "light")
    assert (tmp_path / "file").read_text() == ""
