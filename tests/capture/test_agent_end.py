"""How an agent ended, in a capture's metadata."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from inspector.capture import agent_end, merge
from inspector.capture.agent_end import AgentEnd
from inspector.capture.store import Capture

if TYPE_CHECKING:
    from pathlib import Path


def ended(status: int, at: float) -> AgentEnd:
    return AgentEnd(at - 1, at, status, (f"Error: {status}",), -3600.5)


def stored(path: Path, end: AgentEnd) -> Path:
    with Capture.create(path) as capture:
        agent_end.write(capture, end)
    return path


def test_the_latest_end_counts(tmp_path: Path) -> None:
    path = stored(tmp_path / "a.sqlite", ended(1, 10))
    stored(path, ended(4, 20))
    with Capture.open(path) as capture:
        assert agent_end.read(capture) == ended(4, 20)


def test_of_merged_captures_too(tmp_path: Path) -> None:
    paths = [stored(tmp_path / "a.sqlite", ended(4, 20)), stored(tmp_path / "b.sqlite", ended(1, 10))]
    merge.merge(paths, tmp_path / "c.sqlite")
    with Capture.open(tmp_path / "c.sqlite") as capture:
        assert agent_end.read(capture) == ended(4, 20)


@pytest.mark.parametrize("text", ["", "{", "[1]", '{"status": 1}', '{"began":1,"ended":"x","status":1}', "[" * 5000])
def test_anything_else_is_no_end(tmp_path: Path, text: str) -> None:
    with Capture.create(tmp_path / "a.sqlite") as capture:
        capture.set_meta([("agent_end", text)])
        assert agent_end.read(capture) is None
