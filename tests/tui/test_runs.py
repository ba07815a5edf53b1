"""The first screen: the runs of a capture."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.tui.screens import SIZES, play, sample, screen_text

if TYPE_CHECKING:
    from pathlib import Path

    from textual.pilot import Pilot

    from inspector.tui.app import Inspector


@pytest.mark.parametrize("size", SIZES)
def test_each_run_has_a_row(tmp_path: Path, size: tuple[int, int]) -> None:
    async def act(pilot: Pilot[None], app: Inspector) -> None:
        text = screen_text(app)
        assert "2 runs of out-of-sync.sqlite" in text
        assert text.count("node1.example") == 2
        assert text.count("complete") == 2

    play(sample("out-of-sync", tmp_path), act, size)
