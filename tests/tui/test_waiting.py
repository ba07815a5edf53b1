"""Without a capture the inspector waits for one, and says how it is made."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.support.captures import save
from tests.support.conversations import Agent, together
from tests.tui.screens import indexed
from tests.tui.terminal import Terminal

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.slow
@pytest.mark.parametrize("folder", ["captures", "elsewhere"])
def test_the_first_capture_opens_by_itself(tmp_path: Path, folder: str) -> None:
    arguments = () if folder == "captures" else ("open", folder)
    if arguments:
        (tmp_path / folder).mkdir()
    with Terminal("-m", "inspector.cli", *arguments, cwd=tmp_path) as terminal:
        terminal.wait_for("puppet-inspector run -- puppet agent -t")
        assert f"There is no capture in {folder}/ yet" in terminal.text()
        save(tmp_path / "other" / "c.sqlite", *together(Agent("a.example", "192.0.2.1").run()))
        indexed(tmp_path / "other" / "c.sqlite")
        if not arguments:
            (tmp_path / folder).mkdir()
        for path in sorted((tmp_path / "other").iterdir(), reverse=True):
            path.rename(tmp_path / folder / path.name)
        terminal.wait_for("c.sqlite: 1 node completed")
        terminal.press("q")
        assert terminal.exit_status() == 0


@pytest.mark.slow
def test_who_leaves_before_leaves_nothing(tmp_path: Path) -> None:
    with Terminal("-m", "inspector.cli", cwd=tmp_path) as terminal:
        terminal.wait_for("Waiting for a capture")
        terminal.press("q")
        assert terminal.exit_status() == 0
    assert list(tmp_path.iterdir()) == []
